"""Mathematics of complex numbers in kernels, where Numba's loses digits: near the unit circle, near 0, in powers.

Part of kernel code only: the implementations are not registered for Numba's own compilers.
"""

from __future__ import annotations

import cmath
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import types
from numba.core.imputils import Registry
from numba.core.typing import signature, templates

from numba_offload.device.fused import fma, rounded_product

registry = Registry("offload complex mathematics")
typing_registry = templates.Registry()

UFUNCS: dict[Any, dict[str, Callable[..., Any]]] = {}
"""Implementations, by their loops' types, that take the place of those in Numba's table."""


class _OfOneNumber(templates.ConcreteTemplate):
    cases = [signature(ty, ty) for ty in (types.complex64, types.complex128)]  # noqa: RUF012 - as Numba has it


def _implement(python: Any, ufunc: Any = None, *functions: Any) -> None:
    """Compile a Python function of one complex number in place of Numba's implementations."""

    def implementation(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return context.compile_internal(builder, python, sig, args)

    for function in functions:
        # Some of Numba's are overloads, which bring their type and their implementation together.
        typing_registry.register_global(function)(_OfOneNumber)
        registry.lower(function, types.Complex)(implementation)
    if ufunc is not None:
        UFUNCS.setdefault(ufunc, {}).update({"F->F": implementation, "D->D": implementation})


def _log(z: Any) -> Any:
    x, y = abs(z.real), abs(z.imag)
    if x < y:
        x, y = y, x
    # The modulus less 1, from its square: near the unit circle the modulus itself has lost the digits that count.
    more = (x - 1) * (x + 1) + y * y
    size = 0.5 * math.log1p(more) if -0.5 < more < 3 else math.log(math.hypot(x, y))
    return complex(size, math.atan2(z.imag, z.real))


_implement(_log, np.log, cmath.log)

_LN2, _LN2_REST, _LN10 = 0.6931471805599453, 2.3190468138462996e-17, math.log(10)


def _log2(z: Any) -> Any:
    natural = cmath.log(z)
    return complex(natural.real / _LN2, natural.imag / _LN2)


def _log10(z: Any) -> Any:
    natural = cmath.log(z)
    return complex(natural.real / _LN10, natural.imag / _LN10)


_implement(_log2, np.log2)
_implement(_log10, np.log10, cmath.log10)


def _log1p(z: Any) -> Any:
    x, y = z.real, z.imag
    more = x * (x + 2) + y * y
    size = 0.5 * math.log1p(more) if -0.5 < more < 3 else math.log(math.hypot(1 + x, y))
    return complex(size, math.atan2(y, 1 + x))


_implement(_log1p, np.log1p)


def _exp2(z: Any) -> Any:
    x, y = np.float64(z.real), np.float64(z.imag)
    if not (math.isfinite(x) and math.isfinite(y)):
        return cmath.exp(complex(x, y * _LN2))
    size = math.exp2(z.real)
    if y == 0:
        return complex(size, y)
    angle = rounded_product(y, _LN2)
    # What rounding the product has lost: an angle of many turns needs it.
    rest = fma(y, _LN2, -angle) + y * _LN2_REST
    c, s = math.cos(angle), math.sin(angle)
    return complex(size * (c - s * rest), size * (s + c * rest))


_implement(_exp2, np.exp2)


def _expm1(z: Any) -> Any:
    x, y = z.real, z.imag
    half = math.sin(0.5 * y)
    return complex(math.expm1(x) * math.cos(y) - 2 * half * half, math.exp(x) * math.sin(y))


_implement(_expm1, np.expm1)


# Hyperbolic and trigonometric functions: Numba's formulas, and the C standard's results (Annex G) where a part is
# zero, which is not to be multiplied by an infinity, or has no sine.


def _sinh(z: Any) -> Any:
    x, y = z.real, z.imag
    if y == 0:
        return complex(math.sinh(x), y)
    if not math.isfinite(y) and (x == 0 or math.isinf(x)):
        return complex(x, math.nan)
    return complex(math.sinh(x) * math.cos(y), math.cosh(x) * math.sin(y))


def _cosh(z: Any) -> Any:
    x, y = z.real, z.imag
    if y == 0:
        return complex(math.cosh(x), y * math.copysign(1, x))
    if not math.isfinite(y):
        if x == 0:
            return complex(math.nan, 0)
        if math.isinf(x):
            return complex(abs(x), math.nan)
    return complex(math.cosh(x) * math.cos(y), math.sinh(x) * math.sin(y))


def _tanh(z: Any) -> Any:
    x, y = z.real, z.imag
    if y == 0:
        return complex(math.tanh(x), y)
    if x == 0 and not math.isfinite(y):
        return complex(x, math.nan)
    if math.isinf(x):
        return complex(math.copysign(1, x), math.copysign(0, math.sin(2 * y)) if math.isfinite(y) else 0)
    # CPython's formula.
    real, turned = math.tanh(x), math.tan(y)
    narrowed = 1 / math.cosh(x)
    product = real * turned
    below = 1 + product * product
    return complex(real * (1 + turned * turned) / below, ((turned / below) * narrowed) * narrowed)


_implement(_sinh, np.sinh, cmath.sinh)
_implement(_cosh, np.cosh, cmath.cosh)
_implement(_tanh, np.tanh, cmath.tanh)


def _sin(z: Any) -> Any:
    turned = cmath.sinh(complex(-z.imag, z.real))
    return complex(turned.imag, -turned.real)


def _cos(z: Any) -> Any:
    return cmath.cosh(complex(-z.imag, z.real))


def _tan(z: Any) -> Any:
    turned = cmath.tanh(complex(-z.imag, z.real))
    return complex(turned.imag, -turned.real)


_implement(_sin, np.sin, cmath.sin)
_implement(_cos, np.cos, cmath.cos)
_implement(_tan, np.tan, cmath.tan)


def _acosh(z: Any) -> Any:
    return cmath.acosh(z)


# Numba's copy of NumPy's own subtracts near 1.
_implement(_acosh, np.arccosh)


def _reciprocal(z: Any) -> Any:
    x, y = z.real, z.imag
    if abs(y) <= abs(x):
        ratio = y / x
        below = x + y * ratio
        return complex(1 / below, -ratio / below)
    ratio = x / y
    below = x * ratio + y
    return complex(ratio / below, -1 / below)


_implement(_reciprocal, np.reciprocal)


def _power(a: Any, b: Any) -> Any:
    if b == 0:
        return complex(1.0, 0.0)
    if b == 1:
        return a
    if b == 2:
        return a * a
    if b == 3:
        return a * a * a
    if a == 0:
        undefined = b.imag != 0 or b.real < 0
        return complex(math.nan, math.nan) if undefined else complex(0.0, 0.0)
    length, angle = math.hypot(a.real, a.imag), math.atan2(a.imag, a.real)
    if 0.5 < length < 2:
        log = cmath.log(a).real
        size = math.exp(b.real * log - b.imag * angle)
    else:
        log = math.log(length)
        size = math.pow(length, b.real)
        if b.imag != 0:
            size *= math.exp(-b.imag * angle)
    turn = b.real * angle
    if b.imag != 0:
        turn += b.imag * log
    return complex(size * math.cos(turn), size * math.sin(turn))


def power(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """In double precision for both widths, as Numba's, which is a function of its runtime."""
    wide = types.complex128
    values = [context.cast(builder, a, t, wide) for a, t in zip(args, sig.args, strict=True)]
    result = context.compile_internal(builder, _power, signature(wide, wide, wide), values)
    return context.cast(builder, result, wide, sig.return_type)


for _operator in (operator.pow, operator.ipow, pow):
    registry.lower(_operator, types.Complex, types.Complex)(power)
for _function in (np.power, np.float_power):
    UFUNCS[_function] = {"FF->F": power, "DD->D": power}
