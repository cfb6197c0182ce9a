"""Instructions that take a float apart, round it or scale it: exact for denormals, signed zeros and infinities too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from emulation.division import FORMATS, Format, read_operand, write_lanes
from emulation.wave import EXEC, Execute


def _fract(x: Any) -> Any:
    """Less than 1, also for the negative numbers that are nearest to 0."""
    below_one = np.nextafter(x.dtype.type(1), x.dtype.type(0))
    return np.where(np.isinf(x), x.dtype.type(np.nan), np.minimum(x - np.floor(x), below_one))


_OF_ONE: dict[str, Callable[[Any], Any]] = {
    "V_RNDNE": np.rint,
    "V_FRACT": _fract,
    "V_FREXP_MANT": lambda x: np.frexp(x)[0],
    "V_FREXP_EXP_I32": lambda x: np.where(np.isfinite(x), np.frexp(x)[1], 0).astype(np.int32),
}
_LDEXP = "V_LDEXP"


def rounding(kind: str, name: str, word: int) -> Execute | None:
    """What executes an instruction, or None where that is left to the emulator."""
    base = name.removesuffix("_E64").removesuffix("_E32")
    operation, _, width = base.rpartition("_")
    if width not in ("F32", "F64") or (operation not in _OF_ONE and operation != _LDEXP):
        return None
    form = FORMATS[int(width[1:])]
    if kind == "VOP1":
        return _of_one(_OF_ONE[operation], form, word & 0x1FF, word >> 32 & 0xFFFFFFFF, word >> 17 & 0xFF, 0, 0)
    if kind != "VOP3" or word >> 15 & 1 or word >> 59 & 3:  # clamped or multiplied
        return None
    destination, literal, absolute, negative = word & 0xFF, word >> 64 & 0xFFFFFFFF, word >> 8 & 1, word >> 61 & 1
    source = word >> 32 & 0x1FF
    if operation == _LDEXP:
        return _scaled(form, source, word >> 41 & 0x1FF, literal, destination, absolute, negative)
    return _of_one(_OF_ONE[operation], form, source, literal, destination, absolute, negative)


def _modified(values: Any, absolute: int, negative: int) -> Any:
    values = np.abs(values) if absolute else values
    return -values if negative else values


def _of_one(
    operation: Callable[[Any], Any], form: Format, source: int, literal: int, destination: int, absolute: int, negative: int
) -> Execute:
    def execute(wave: Any, _: Any) -> bool:
        with np.errstate(all="ignore"):
            values = operation(_modified(read_operand(wave, source, form, literal), absolute, negative))
        active = wave.mask(EXEC)
        if values.dtype == np.int32:
            wave.vectors[destination][active] = values.view(np.uint32)[active]
        else:
            write_lanes(wave, destination, values, active, form)
        return True

    return execute


def _scaled(
    form: Format, source: int, power: int, literal: int, destination: int, absolute: int, negative: int
) -> Execute:
    def execute(wave: Any, _: Any) -> bool:
        value = _modified(read_operand(wave, source, form, literal), absolute, negative)
        exponent = read_operand(wave, power, FORMATS[32], literal).view(np.int32)
        with np.errstate(all="ignore"):
            write_lanes(wave, destination, np.ldexp(value, exponent), wave.mask(EXEC), form)
        return True

    return execute
