"""Instructions that tinygrad's emulator executes wrongly or not at all, executed here instead, one wavefront at a time.

* Global and flat accesses at addresses that are not multiples of their size, which the hardware splits (HSA requires the
  unaligned access mode), are rounded down there. Flat accesses take a scalar base that they do not have.
* Atomics: those of 64 bits see half of their operand, and gfx9's return nothing, as their return bit has another name.
* ``v_div_scale``, ``v_div_fmas`` and ``v_div_fixup`` are adjusted there to a mode that flushes denormals.
* ``v_ldexp`` multiplies by a power of two that may not be representable, ``v_frexp`` takes denormals for normal numbers,
  ``v_rndne`` loses the sign of zeros, and ``v_fract`` can give 1.
* ``v_mul_hi_i32_i24`` takes negative operands for positive ones, and CDNA's additions with carry that select bytes or
  words (SDWA) work out the carry after they have written the result, perhaps over an operand.
* ``s_getpc``, ``s_setpc`` and ``s_swappc`` are missing, and gfx90a's ``v_mad_f32``.

Encodings and meanings are from AMD's instruction set manuals (RDNA3, CDNA2, CDNA3). A mend that the emulator no longer
needs does no harm.
"""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

from emulation import division, narrow
from emulation.memory_access import memory_access
from emulation.rounding import rounding
from emulation.wave import PC, Execute, Wave, wave_at

_MAD_F32 = 0xD1C1
_BUFFERS = list(range(6))  # scalar and vector registers, memory, LDS, private memory, accumulators


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
        wave = wave_at(buffers[0].value, buffers[1].value, buffers[5].value, lanes)
        at = wave.pair(PC)
        if execute(wave, lambda: as_it_was(buffers)) and wave.pair(PC) == at:
            wave.set_pair(PC, at + size)

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
    return rounding(kind, name, word)


def _program_counter(name: str, word: int) -> Execute:
    source, destination = word & 0xFF, word >> 16 & 0x7F

    def execute(wave: Wave, _: Any) -> bool:
        following = wave.pair(PC) + 4
        target = following if name == "S_GETPC_B64" else wave.pair(source)
        if name != "S_SETPC_B64":
            wave.set_pair(destination, following)
        wave.set_pair(PC, target)
        return True

    return execute
