"""AMD code objects executed on the CPU, instruction by instruction, by the emulator of the tinygrad project.

Nothing of tinygrad is here: ``TINYGRAD_SRC`` names a source checkout (its emulator is in no wheel), and a ``clang`` is on
the path. Where either is missing, :func:`why_unavailable` says so, and tests that need it are skipped.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import mmap
import os
import shutil
import struct
import sys
import types
from functools import lru_cache
from typing import Any

import numpy as np

from emulation import mends
from emulation.code_object import CodeObject

_EMULATED = {"gfx90a": "cdna", "gfx942": "cdna", "gfx1100": "rdna3"}
"""The architectures that the emulator has been seen right for."""

ARCHITECTURES = tuple(_EMULATED)
_LDS_GRANULE = 512
_LDS_SHIFT, _LDS_BITS = 15, 0x1FF
_BUFFER_INVALIDATE = {"rdna3": bytes.fromhex("0000ace000000000")}
_TWO_NOPS = bytes.fromhex("000080bf000080bf")


def why_unavailable() -> str | None:
    """Why no AMD code can be executed here, or None."""
    source = os.environ.get("TINYGRAD_SRC")
    if not source:
        return "TINYGRAD_SRC is not set; it names a source checkout of tinygrad, whose emulator executes AMD code"
    if not os.path.isfile(os.path.join(source, "test", "mockgpu", "amd", "emu.py")):
        return f"TINYGRAD_SRC={source!r} has no test/mockgpu/amd/emu.py"
    if shutil.which("clang") is None:
        return "the emulator needs a clang on the path"
    return None


@lru_cache(maxsize=1)
def _emulator() -> Any:
    source = os.environ["TINYGRAD_SRC"]
    os.environ.setdefault("DEV", "CPU")
    sys.path.insert(0, source)
    known = sys.modules.get("test")
    package = types.ModuleType("test")  # Python's own library has a package of that name
    package.__path__ = [os.path.join(source, "test")]
    sys.modules["test"] = package
    try:
        module: Any = importlib.import_module("test.mockgpu.amd.emu")
    finally:
        if known is not None:
            sys.modules["test"] = known
        sys.path.remove(source)
    # It flushes denormals while it runs; kernels of ours are compiled to keep them, and so does the hardware.
    module._MXCSRContext = contextlib.nullcontext
    mends.install(module)
    return module


class LoadedCodeObject:
    """A code object in this process's memory. Its addresses are the host's."""

    def __init__(self, data: bytes) -> None:
        self.object = CodeObject(data)
        self.arch = _EMULATED[self.object.arch]
        self._memory = mmap.mmap(-1, (self.object.size + 0x3FFF) & ~0xFFF)
        self.base = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        for segment in self.object.segments:
            self._memory[segment.address : segment.address + len(segment.data)] = segment.data
        # An acquire fence does nothing where there is no cache, and the emulator does not know the instruction.
        unknown = _BUFFER_INVALIDATE.get(self.arch)
        at = self._memory.find(unknown) if unknown else -1
        while unknown and at >= 0:
            self._memory[at : at + 8] = _TWO_NOPS
            at = self._memory.find(unknown, at + 8)

    def launch(self, name: str, grid: tuple[int, int, int], block: tuple[int, int, int], arguments: list[bytes]) -> None:
        """Run every work-item of a launch. ``grid`` counts work-groups; ``arguments`` are the explicit ones."""
        kernel = self.object.kernel(name)
        descriptor = self.object.symbols[kernel[".symbol"]]
        _, private, kernarg_bytes = struct.unpack_from("<III", self._memory, descriptor)
        (entry,) = struct.unpack_from("<q", self._memory, descriptor + 16)
        resources, properties = struct.unpack_from("<IH", self._memory, descriptor + 52)
        kernarg = self._kernel_arguments(kernel, kernarg_bytes, grid, block, arguments)
        pointer = kernarg.ctypes.data
        # User registers in the order of the HSA ABI: private segment buffer, dispatch and queue pointers, arguments.
        user = []
        for bit, words in ((0, 4), (1, 2), (2, 2)):
            user += [0] * (words if properties >> bit & 1 else 0)
        if properties >> 3 & 1:
            user += [pointer & 0xFFFFFFFF, pointer >> 32]
        granules = -(-int(kernel[".group_segment_fixed_size"]) // _LDS_GRANULE)
        resources = resources & ~(_LDS_BITS << _LDS_SHIFT) | granules << _LDS_SHIFT
        _emulator().run_asm(
            self.base + descriptor + entry, self.object.size, *grid, *block, pointer, resources, private, self.arch, user
        )

    def _kernel_arguments(
        self, kernel: dict[str, Any], size: int, grid: tuple[int, ...], block: tuple[int, ...], arguments: list[bytes]
    ) -> Any:
        made = np.zeros(size + 256, np.uint8)
        hidden = {"hidden_grid_dims": 3}
        for axis, letter in enumerate("xyz"):
            hidden[f"hidden_block_count_{letter}"] = grid[axis]
            hidden[f"hidden_group_size_{letter}"] = block[axis]
        given = iter(arguments)
        for argument in kernel.get(".args", []):
            kind, at, length = argument[".value_kind"], argument[".offset"], argument[".size"]
            value = hidden.get(kind, 0).to_bytes(length, "little") if kind.startswith("hidden_") else next(given)
            assert len(value) == length, f"argument {argument} is given {len(value)} bytes"
            made[at : at + length] = np.frombuffer(value, np.uint8)
        assert next(given, None) is None, "there are more arguments than the kernel takes"
        return made
