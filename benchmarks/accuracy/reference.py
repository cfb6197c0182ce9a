"""Exact values of the functions, as mpmath numbers of many more bits than any result has.

What would be far outside every format's range is cut off, since computing it would take all memory.
"""

from __future__ import annotations

from typing import Any

from mpmath import mp, mpf

HUGE = mp.ldexp(mpf(1), 20000)
TINY = mp.ldexp(mpf(1), -20000)
_EXPONENT = 13000
"""exp of more overflows every format, of less underflows."""


def exp(x: Any) -> Any:
    if x > _EXPONENT:
        return HUGE
    return TINY if x < -_EXPONENT else mp.exp(x)


def exp2(x: Any) -> Any:
    return exp(x * mp.ln2)


def expm1(x: Any) -> Any:
    if x > _EXPONENT:
        return HUGE
    # mpmath's own adds an amount of guard bits that depends on the argument only up to a point.
    return -1 + TINY if x < -_EXPONENT else _sum_of_small(x) if abs(x) < 1e-30 else mp.expm1(x)


def _sum_of_small(x: Any) -> Any:
    return x + x * x / 2 + x**3 / 6 + x**4 / 24


def cosh(x: Any) -> Any:
    return HUGE if abs(x) > _EXPONENT else mp.cosh(x)


def sinh(x: Any) -> Any:
    return mp.sign(x) * HUGE if abs(x) > _EXPONENT else mp.sinh(x)


def tanh(x: Any) -> Any:
    return mp.sign(x) * (1 - TINY) if abs(x) > _EXPONENT else mp.tanh(x)


def log(x: Any) -> Any:
    return mp.log(x)


def log2(x: Any) -> Any:
    return mp.log(x) / mp.ln2


def log10(x: Any) -> Any:
    return mp.log(x) / mp.ln10


def log1p(x: Any) -> Any:
    return mp.log1p(x)


def cbrt(x: Any) -> Any:
    return mp.sign(x) * mp.cbrt(abs(x))


def erf(x: Any) -> Any:
    return mp.sign(x) * (1 - TINY) if abs(x) > 200 else mp.erf(x)


def erfc(x: Any) -> Any:
    if x > 200:
        return TINY
    return 2 - TINY if x < -200 else mp.erfc(x)


def gamma(x: Any) -> Any:
    if x > 2000:
        return HUGE
    if x < 0 and x == mp.floor(x):
        return mp.nan
    if x < -2000:
        return TINY if int(mp.floor(x)) % 2 == 0 else -TINY
    return mp.gamma(x)


def lgamma(x: Any) -> Any:
    if x <= 0 and x == mp.floor(x):
        return mp.inf
    if x > 0:
        return mp.loggamma(x)
    return mp.log(mp.pi / abs(mp.sinpi(x))) - mp.loggamma(1 - x)


def hypot(x: Any, y: Any) -> Any:
    return mp.sqrt(x * x + y * y)


def power(x: Any, y: Any) -> Any:
    """For a positive base, or a negative one and an integer."""
    size = exp(y * mp.log(abs(x)))
    return -size if x < 0 and int(y) % 2 else size


def logaddexp(x: Any, y: Any) -> Any:
    return max(x, y) + mp.log1p(exp(-abs(x - y)))


def logaddexp2(x: Any, y: Any) -> Any:
    return max(x, y) + mp.log1p(exp2(-abs(x - y))) / mp.ln2


def degrees(x: Any) -> Any:
    return x * 180 / mp.pi


def radians(x: Any) -> Any:
    return x * mp.pi / 180


# Complex numbers


def complex_power(x: Any, y: Any) -> Any:
    return mp.exp(y * mp.log(x))


_SMALL = 1e-25
"""Below it four terms of a series are exact to all bits, and mpmath's own formulas are not in both parts."""


def complex_log1p(z: Any) -> Any:
    return z - z * z / 2 + z**3 / 3 - z**4 / 4 if abs(z) < _SMALL else mp.log(1 + z)


def complex_expm1(z: Any) -> Any:
    return z + z * z / 2 + z**3 / 6 + z**4 / 24 if abs(z) < _SMALL else mp.exp(z) - 1


def complex_atan(z: Any) -> Any:
    return z - z**3 / 3 if abs(z) < _SMALL else mp.atan(z)


def complex_atanh(z: Any) -> Any:
    return z + z**3 / 3 if abs(z) < _SMALL else mp.atanh(z)


def complex_log10(z: Any) -> Any:
    return mp.log(z) / mp.ln10


def complex_log2(z: Any) -> Any:
    return mp.log(z) / mp.ln2


def complex_exp2(z: Any) -> Any:
    return mp.exp(z * mp.ln2)
