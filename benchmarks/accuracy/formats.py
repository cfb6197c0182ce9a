"""The floating-point formats, and how far a number of one is from an exact value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from mpmath import mp, mpf

BITS = 200
"""Precision of exact values: enough for any result in which up to 80 bits cancel."""


@dataclass(frozen=True)
class Format:
    """An IEEE format. ``bar``: the error, in units of the last place, that functions are held to."""

    dtype: str
    complex_dtype: str
    precision: int
    smallest_exponent: int
    """Of normal numbers."""
    largest_exponent: int
    bar: float

    @property
    def eps(self) -> float:
        return 2.0 ** (1 - self.precision)

    @property
    def smallest_subnormal_exponent(self) -> int:
        return self.smallest_exponent - self.precision + 1

    @property
    def largest(self) -> float:
        return float(np.finfo(self.dtype).max)


FORMATS = {
    "f4": Format("f4", "c8", 24, -126, 127, 4.0),
    "f8": Format("f8", "c16", 53, -1022, 1023, 2.0),
}


def ulp_error(got: float, exact: Any, fmt: Format) -> float:
    """The distance of a result to the exact value, in units of the last place that the exact value has in the format.

    Infinity counts as the number after the largest, as it does in rounding, and so does any exact value beyond that.
    """
    if math.isnan(got) or mp.isnan(exact):
        return 0.0 if math.isnan(got) and mp.isnan(exact) else math.inf
    if exact == 0:
        return 0.0 if got == 0 else math.inf
    exact = _clipped(exact, fmt)
    return float(mp.ldexp(abs(_as_exact(got, fmt) - exact), -_unit(exact, fmt)))


def modulus_error(got: complex, exact: Any, fmt: Format) -> float:
    """The distance of a complex result to the exact value, in units of the last place of the exact value's modulus."""
    parts = [(float(got.real), exact.real), (float(got.imag), exact.imag)]
    if any(math.isnan(g) or mp.isnan(e) for g, e in parts):
        return 0.0 if all(math.isnan(g) == bool(mp.isnan(e)) for g, e in parts) else math.inf
    modulus = abs(exact)
    if modulus == 0:
        return 0.0 if got == 0 else math.inf
    distance = mp.hypot(*(_as_exact(g, fmt) - _clipped(e, fmt) for g, e in parts))
    return float(mp.ldexp(distance, -_unit(_clipped(modulus, fmt), fmt)))


def _as_exact(value: float, fmt: Format) -> Any:
    if math.isinf(value):
        return mp.ldexp(mpf(math.copysign(1.0, value)), fmt.largest_exponent + 1)
    return mpf(value)


def _clipped(exact: Any, fmt: Format) -> Any:
    end = mp.ldexp(mpf(1), fmt.largest_exponent + 1)
    return max(-end, min(end, exact))


def _unit(exact: Any, fmt: Format) -> int:
    """The exponent of a value's last place."""
    _, _, exponent, bits = exact._mpf_
    return max(exponent + bits - 1, fmt.smallest_exponent) - fmt.precision + 1
