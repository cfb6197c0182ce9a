"""The steps of AMD's division, and scaling by powers of two, exact where the hardware is: rounded once."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from emulation.wave import EXEC, LITERAL, VCC

_INLINE = {240: 0.5, 241: -0.5, 242: 1.0, 243: -1.0, 244: 2.0, 245: -2.0, 246: 4.0, 247: -4.0, 248: 1 / (2 * math.pi)}


class Format:
    """A binary floating-point format, and the constants of its division."""

    def __init__(self, bits: int) -> None:
        self.bits = bits
        self.float: Any = np.float64 if bits == 64 else np.float32
        self.uint: Any = np.uint64 if bits == 64 else np.uint32
        self.mantissa = 52 if bits == 64 else 23
        self.bias = 1023 if bits == 64 else 127
        self.scale = 128 if bits == 64 else 64
        """Scaled operands are multiplied by two to this power, or its negative."""
        self.near_overflow = 768 if bits == 64 else 96
        self.tiny = 53 if bits == 64 else 23
        self.smallest = 1 - self.bias - self.mantissa

    def exponent(self, value: Any) -> int:
        """The biased exponent."""
        return int(np.array(value, self.float).view(self.uint)) >> self.mantissa & (2 * self.bias + 1)

    def denormal(self, value: Any) -> bool:
        return bool(value != 0 and self.exponent(value) == 0)

    def round(self, value: Fraction, negative_zero: bool = False) -> Any:
        """A rational number to the nearest of the format, ties to even."""
        if value == 0:
            return self.float(-0.0 if negative_zero else 0.0)
        magnitude = abs(value)
        exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
        if magnitude < Fraction(2) ** exponent:
            exponent -= 1
        unit = max(exponent - self.mantissa, self.smallest)
        number = round(magnitude / Fraction(2) ** unit)  # Fraction's rounding is to even
        overflows = number.bit_length() + unit > self.bias + 1
        result = math.inf if overflows else math.ldexp(number, unit)
        return self.float(-result if value < 0 else result)


FORMATS = {32: Format(32), 64: Format(64)}


def read_operand(wave: Any, code: int, form: Format, literal: int) -> Any:
    """A source operand of all lanes."""
    if code == LITERAL:
        # Of a 64-bit float, a literal is the upper half.
        return np.full(wave.lanes, literal << 32 if form.bits == 64 else literal, form.uint).view(form.float)
    if code >= 256:
        register = code - 256
        bits = wave.double(register) if form.bits == 64 else wave.vectors[register].copy()
        return bits.view(form.float)
    if code in _INLINE:
        return np.full(wave.lanes, _INLINE[code], form.float)
    if 128 <= code <= 208:
        number = code - 128 if code <= 192 else 192 - code
        return np.full(wave.lanes, np.array(number, np.int64).astype(form.uint), form.uint).view(form.float)
    value = wave.pair(code) if form.bits == 64 else int(wave.scalars[code])
    return np.full(wave.lanes, value, form.uint).view(form.float)


def _operands(wave: Any, word: int, form: Format, absolute: int) -> list[Any]:
    out = []
    for k in range(3):
        value = read_operand(wave, word >> 32 + 9 * k & 0x1FF, form, word >> 64 & 0xFFFFFFFF)
        if absolute >> k & 1:
            value = np.abs(value)
        out.append(-value if word >> 61 + k & 1 else value)
    return out


def write_lanes(wave: Any, register: int, values: Any, active: Any, form: Format) -> None:
    bits = np.asarray(values, form.float).view(form.uint)
    wave.vectors[register][active] = (bits & form.uint(0xFFFFFFFF)).astype(np.uint32)[active]
    if form.bits == 64:
        wave.vectors[register + 1][active] = (bits >> np.uint64(32)).astype(np.uint32)[active]


def _scaled(value: Any, power: int, form: Format) -> Any:
    value = form.float(value)
    if not np.isfinite(value) or value == 0:
        return value
    return form.round(Fraction(float(value)) * Fraction(2) ** power)


def _scale_lane(s0: Any, denominator: Any, numerator: Any, form: Format) -> tuple[Any, bool]:
    """One operand of a division made ready, and whether the quotient is to be scaled back."""
    d, n = form.exponent(denominator), form.exponent(numerator)
    if denominator == 0 or numerator == 0:
        return form.float(np.nan), False
    if not (np.isfinite(denominator) and np.isfinite(numerator)):
        return s0, False
    is_denominator, is_numerator = s0 == denominator, s0 == numerator
    largest = 2 * form.bias
    quotient_tiny = n - d <= 1 - form.bias
    reciprocal_tiny = d >= largest - 1
    if n - d >= form.near_overflow:
        return (_scaled(s0, form.scale, form), True) if is_denominator else (s0, True)
    if form.denormal(denominator):
        return _scaled(s0, form.scale, form), False
    if reciprocal_tiny and quotient_tiny:
        return (_scaled(s0, -form.scale, form), True) if is_denominator else (s0, True)
    if reciprocal_tiny:
        return _scaled(s0, -form.scale, form), False
    if quotient_tiny:
        return (_scaled(s0, form.scale, form), True) if is_numerator else (s0, True)
    if n <= form.tiny:
        return _scaled(s0, form.scale, form), False
    return s0, False


def _div_scale(wave: Any, word: int, bits: int) -> bool:
    form, active = FORMATS[bits], wave.mask(EXEC)
    s0, s1, s2 = _operands(wave, word, form, 0)
    values, flags = s0.copy(), np.zeros(wave.lanes, bool)
    for lane in np.flatnonzero(active):
        values[lane], flags[lane] = _scale_lane(s0[lane], s1[lane], s2[lane], form)
    write_lanes(wave, word & 0xFF, values, active, form)
    wave.set_mask(word >> 8 & 0x7F, flags, active)
    return True


def _div_fmas(wave: Any, word: int, bits: int) -> bool:
    form, active, scaled = FORMATS[bits], wave.mask(EXEC), wave.mask(VCC)
    s0, s1, s2 = _operands(wave, word, form, word >> 8 & 7)
    values = np.zeros(wave.lanes, form.float)
    for lane in np.flatnonzero(active):
        a, b, c = s0[lane], s1[lane], s2[lane]
        if not (np.isfinite(a) and np.isfinite(b) and np.isfinite(c)):
            with np.errstate(all="ignore"):
                values[lane] = a * b + c
            continue
        exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
        if scaled[lane]:
            # A quotient that was made small is scaled up, one that was made large is scaled down.
            up = form.exponent(c) > form.bias
            exact *= Fraction(2) ** (form.scale if up else -form.scale)
        values[lane] = form.round(exact, bool(np.signbit(c)))
    write_lanes(wave, word & 0xFF, values, active, form)
    return True


def _fixup_lane(quotient: Any, denominator: Any, numerator: Any, form: Format) -> Any:
    negative = bool(np.signbit(denominator)) != bool(np.signbit(numerator))
    if np.isnan(numerator) or np.isnan(denominator):
        return form.float(np.nan)
    if (denominator == 0 and numerator == 0) or (np.isinf(denominator) and np.isinf(numerator)):
        return form.float(np.nan)
    difference = form.exponent(numerator) - form.exponent(denominator)
    exact = denominator == 0 or numerator == 0 or np.isinf(denominator) or np.isinf(numerator)
    if denominator == 0 or np.isinf(numerator) or (not exact and difference > form.bias + 2):
        value = form.float(np.inf)
    elif exact or difference < form.smallest - 1:
        value = form.float(0)
    else:
        value = form.float(abs(quotient))
    return -value if negative else value


def _div_fixup(wave: Any, word: int, bits: int) -> bool:
    form, active = FORMATS[bits], wave.mask(EXEC)
    s0, s1, s2 = _operands(wave, word, form, word >> 8 & 7)
    values = s0.copy()
    for lane in np.flatnonzero(active):
        values[lane] = _fixup_lane(s0[lane], s1[lane], s2[lane], form)
    write_lanes(wave, word & 0xFF, values, active, form)
    return True


def mad(wave: Any, word: int) -> bool:
    """``v_mad_f32``: a product and a sum, each rounded, that take and give denormals as zeros."""
    form, active = FORMATS[32], wave.mask(EXEC)
    s0, s1, s2 = (_flushed(value) for value in _operands(wave, word, form, word >> 8 & 7))
    with np.errstate(all="ignore"):
        values = _flushed(_flushed(s0 * s1) + s2)
    write_lanes(wave, word & 0xFF, values, active, form)
    return True


def _flushed(values: Any) -> Any:
    return np.where(np.abs(values) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), values), values)


OPERATIONS: dict[str, Callable[[Any, int, int], bool]] = {
    "V_DIV_SCALE": _div_scale,
    "V_DIV_FMAS": _div_fmas,
    "V_DIV_FIXUP": _div_fixup,
}
