"""AMD code objects taken apart: segments, symbols, and the metadata that a runtime launches kernels by."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgpack

_LOAD, _NOTE = 1, 4
_DYNAMIC_SYMBOLS = 11
_EM_AMDGPU = 224


@dataclass(frozen=True)
class Segment:
    """Bytes of the file, and where in the loaded object they belong."""

    address: int
    data: bytes
    size: int


@dataclass(frozen=True)
class CodeObject:
    """A linked code object (ELF64, little-endian)."""

    data: bytes

    @cached_property
    def machine(self) -> int:
        """Of the ELF header; AMD GPUs are 224."""
        return int(struct.unpack_from("<H", self.data, 18)[0])

    @cached_property
    def _program_headers(self) -> list[tuple[int, ...]]:
        (offset,) = struct.unpack_from("<Q", self.data, 32)
        size, count = struct.unpack_from("<HH", self.data, 54)
        return [struct.unpack_from("<IIQQQQQQ", self.data, offset + size * k) for k in range(count)]

    @cached_property
    def _sections(self) -> list[tuple[int, ...]]:
        (offset,) = struct.unpack_from("<Q", self.data, 40)
        size, count = struct.unpack_from("<HH", self.data, 58)
        return [struct.unpack_from("<IIQQQQIIQQ", self.data, offset + size * k) for k in range(count)]

    @cached_property
    def segments(self) -> list[Segment]:
        """What is loaded."""
        return [
            Segment(address, self.data[offset : offset + stored], size)
            for kind, _, offset, address, _, stored, size, _ in self._program_headers
            if kind == _LOAD
        ]

    @cached_property
    def size(self) -> int:
        """Of the loaded object."""
        return max(segment.address + segment.size for segment in self.segments)

    @cached_property
    def symbols(self) -> dict[str, int]:
        """Where in the loaded object the exported names are."""
        found = {}
        for section in self._sections:
            if section[1] != _DYNAMIC_SYMBOLS:
                continue
            strings = self._sections[section[6]][4]
            for at in range(section[4], section[4] + section[5], 24):
                name, _, _, _, value, _ = struct.unpack_from("<IBBHQQ", self.data, at)
                start = strings + name
                found[self.data[start : self.data.index(b"\0", start)].decode()] = value
        return found

    @cached_property
    def metadata(self) -> dict[str, Any]:
        """The note of AMD's: target, and each kernel's arguments, registers and memory."""
        for kind, _, offset, _, _, _, _, _ in self._program_headers:
            if kind == _NOTE:
                name, size, _ = struct.unpack_from("<III", self.data, offset)
                start = offset + 12 + (name + 3 & ~3)
                made: dict[str, Any] = msgpack.unpackb(self.data[start : start + size])
                return made
        raise ValueError("the code object has no metadata")

    @property
    def arch(self) -> str:
        """``gfx90a`` ..."""
        return str(self.metadata["amdhsa.target"]).split("--")[-1].split(":")[0]

    def kernel(self, name: str) -> dict[str, Any]:
        """A kernel's metadata. Raises KeyError where there is none of the name."""
        for kernel in self.metadata["amdhsa.kernels"]:
            if kernel[".name"] == name:
                return dict(kernel)
        raise KeyError(name)

    def explicit_arguments(self, name: str) -> list[dict[str, Any]]:
        """A kernel's own arguments, without those that the runtime adds."""
        return [a for a in self.kernel(name).get(".args", []) if not a[".value_kind"].startswith("hidden_")]


def is_for_amd(data: bytes) -> bool:
    """Whether bytes are an ELF file for AMD GPUs."""
    return data[:4] == b"\x7fELF" and CodeObject(data).machine == _EM_AMDGPU
