"""Integer instructions on parts of registers: CDNA's additions and subtractions with carry that select bytes and words."""

from __future__ import annotations

from typing import Any

import numpy as np

from emulation.wave import EXEC, VCC

_WHOLE = 6  # of a selection: all four bytes
_WIDTH_AND_SHIFT = {0: (8, 0), 1: (8, 8), 2: (8, 16), 3: (8, 24), 4: (16, 0), 5: (16, 16), _WHOLE: (32, 0)}


def signed_24_bits(pseudocode: dict[Any, str]) -> None:
    """Let products of 24-bit numbers extend their signs: the emulator does in 32 bits, but not directly in 64."""
    for operation, text in pseudocode.items():
        for operand in ("S0", "S1"):
            text = text.replace(f"64'I({operand}.i24)", f"64'I(32'I({operand}.i24))")
        pseudocode[operation] = text


def carries(kind: str, name: str, word: int) -> bool:
    """Whether this is an instruction for :func:`with_carry`.

    The emulator works out the carry after the result, which may be in a register that the operands are in.
    """
    return kind == "VOP2_SDWA" and "_CO_U32" in name and word >> 40 & 7 == _WHOLE


def with_carry(wave: Any, name: str, word: int) -> bool:
    """``v_add_co``, ``v_sub_co`` and so on, with selections. The carry is in VCC."""
    first = _selected(wave, word >> 32, bool(word >> 55 & 1), word >> 48)
    second = _selected(wave, word >> 9, bool(word >> 63 & 1), word >> 56)
    if "REV" in name:
        first, second = second, first
    active = wave.mask(EXEC)
    taken = wave.mask(VCC).astype(np.int64) if "ADDC" in name or "SUBB" in name else 0
    result = first + second + taken if "ADD" in name else first - second - taken
    destination = wave.vectors[word >> 17 & 0xFF]
    destination[active] = (result & 0xFFFFFFFF).astype(np.uint32)[active]
    wave.set_mask(VCC, (result < 0) | (result >> 32 > 0), active)
    return True


def _selected(wave: Any, register: int, scalar: bool, selection: int) -> Any:
    """The selected part of a register, of all lanes, as it counts in 32 unsigned bits."""
    register &= 0xFF
    values = np.full(wave.lanes, wave.scalars[register]) if scalar else wave.vectors[register]
    width, shift = _WIDTH_AND_SHIFT[selection & 7]
    part = values.astype(np.int64) >> shift & (1 << width) - 1
    negative = bool(selection >> 3 & 1) & (part >> width - 1 == 1)
    return np.where(negative, part - (1 << width), part) & 0xFFFFFFFF
