"""Instructions that tinygrad's emulator executes wrongly or not at all, executed here instead, one wavefront at a time.

* Global and flat accesses at addresses that are not multiples of their size, which the hardware splits (HSA requires the
  unaligned access mode), are rounded down there. Flat accesses take a scalar base that they do not have.
* Atomics: those of 64 bits see half of their operand, and gfx9's return nothing, as their return bit has another name.
* ``v_div_scale``, ``v_div_fmas`` and ``v_div_fixup`` are adjusted there to a mode that flushes denormals.
* ``v_ldexp`` multiplies by a power of two that may not be representable.
* ``v_mul_hi_i32_i24`` takes negative operands for positive ones, and CDNA's additions with carry that select bytes or
  words (SDWA) work out the carry after they have written the result, perhaps over an operand.
* ``s_getpc``, ``s_setpc`` and ``s_swappc`` are missing, and gfx90a's ``v_mad_f32``.

Encodings and meanings are from AMD's instruction set manuals (RDNA3, CDNA2, CDNA3). A mend that the emulator no longer
needs does no harm.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from emulation import division, narrow
from emulation.memory_access import memory_access

_VCC, _NULL, _EXEC, _PC = 106, 124, 126, 256
_SCALARS, _VECTOR_REGISTERS = 260, 256
_MAD_F32 = 0xD1C1
_BUFFERS = list(range(6))  # scalar and vector registers, memory, LDS, private memory, accumulators


@dataclass(frozen=True)
class Wave:
    """The registers of one wavefront."""

    scalars: Any
    vectors: Any
    accumulators: Any

    @property
    def lanes(self) -> int:
        return int(self.vectors.shape[1])

    def pair(self, index: int) -> int:
        """Two scalar registers as one value."""
        return int(self.scalars[index]) | int(self.scalars[index + 1]) << 32

    def set_pair(self, index: int, value: int) -> None:
        self.scalars[index], self.scalars[index + 1] = value & 0xFFFFFFFF, value >> 32 & 0xFFFFFFFF

    def mask(self, index: int) -> Any:
        """A lane mask as booleans."""
        value = self.pair(index) if self.lanes == 64 else int(self.scalars[index])
        return np.array([value >> lane & 1 for lane in range(self.lanes)], bool)

    def set_mask(self, index: int, value: Any, active: Any) -> None:
        """Write the bits of active lanes; those of others are zero. RDNA's null register stays what it is."""
        if self.lanes == 32 and index == _NULL:
            return
        number = sum(1 << lane for lane in np.flatnonzero(value & active))
        self.scalars[index] = number & 0xFFFFFFFF
        if self.lanes == 64:
            self.scalars[index + 1] = number >> 32

    def double(self, register: int) -> Any:
        """A pair of vector registers as 64-bit values."""
        low, high = self.vectors[register], self.vectors[register + 1]
        return low.astype(np.uint64) | high.astype(np.uint64) << np.uint64(32)


Execute = Callable[[Wave, Callable[[], None]], bool]
"""Execute an instruction on a wave; False where that was left to the emulator, which advances the program counter."""


@lru_cache(maxsize=4096)
def _views(scalars: int, vectors: int, accumulators: int, lanes: int) -> Wave:
    def view(address: int, *shape: int) -> Any:
        count = int(np.prod(shape))
        return np.ctypeslib.as_array((ctypes.c_uint32 * count).from_address(address)).reshape(shape)

    registers = (_VECTOR_REGISTERS, lanes)
    return Wave(view(scalars, _SCALARS), view(vectors, *registers), view(accumulators, *registers))


def install(emulator: Any) -> None:
    """Let the emulator execute the instructions named above by the functions here."""
    for pseudocode in (emulator.PCODE_CDNA, emulator.PCODE_RDNA3):
        narrow.signed_24_bits(pseudocode)
    decode = emulator._decode_at

    def decode_at(pc: int, arch: str) -> Any:
        raw = bytes((ctypes.c_char * 16).from_address(pc).raw)
        word = int.from_bytes(raw[:12], "little")
        if arch == "cdna" and word >> 16 & 0xFFFF == _MAD_F32:
            return _entry(lambda wave, _: division.mad(wave, word), 8, 64, None), SimpleNamespace(size=lambda: 8)
        instruction = emulator.decode_inst(raw, arch)
        name = getattr(getattr(instruction, "op", None), "name", "")
        execute = _mended(type(instruction).__name__, name, word, arch)
        if execute is None:
            return decode(pc, arch)
        lanes = 64 if arch == "cdna" else 32
        return _entry(execute, instruction.size(), lanes, lambda: decode(pc, arch)[0]), instruction

    emulator._decode_at = decode_at


def _entry(execute: Execute, size: int, lanes: int, emulated: Any) -> Any:
    """What the emulator keeps for an instruction. ``emulated`` gives what it would have kept."""

    def as_it_was(buffers: Any) -> None:
        program, runtime = emulated()
        runtime.fxn(*[buffers[k] for k in program.arg.globals])

    def run(*buffers: Any) -> None:
        wave = _views(buffers[0].value, buffers[1].value, buffers[5].value, lanes)
        at = wave.pair(_PC)
        if execute(wave, lambda: as_it_was(buffers)) and wave.pair(_PC) == at:
            wave.set_pair(_PC, at + size)

    return SimpleNamespace(arg=SimpleNamespace(globals=_BUFFERS)), SimpleNamespace(fxn=run)


def _mended(kind: str, name: str, word: int, arch: str) -> Execute | None:
    if kind in ("FLAT", "GLOBAL"):
        return memory_access(kind, name, word, arch)
    if kind.startswith("SOP1") and name in ("S_GETPC_B64", "S_SETPC_B64", "S_SWAPPC_B64"):
        return _program_counter(name, word)
    if narrow.carries(kind, name, word):
        return lambda wave, _: narrow.with_carry(wave, name, word)
    base = name.removesuffix("_E64")
    for prefix, operation in division.OPERATIONS.items():
        if base in (f"{prefix}_F32", f"{prefix}_F64"):
            bits = int(base[-2:])
            return lambda wave, _: operation(wave, word, bits)
    return None


def _program_counter(name: str, word: int) -> Execute:
    source, destination = word & 0xFF, word >> 16 & 0x7F

    def execute(wave: Wave, _: Any) -> bool:
        following = wave.pair(_PC) + 4
        target = following if name == "S_GETPC_B64" else wave.pair(source)
        if name != "S_SETPC_B64":
            wave.set_pair(destination, following)
        wave.set_pair(_PC, target)
        return True

    return execute
