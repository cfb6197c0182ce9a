"""Sine, cosine and tangent of float64 next to multiples of pi/2, where libraries lose the digits that count.

There the result is the angle's distance from that multiple. C libraries compute it with an absolute error of about
2**-110 (glibc) or 2**-104 (AMD's), which is nothing to a result of ordinary size, but hundreds of units in the last place
where the distance is 2**-60. Such distances are computed again here, after M. Payne and R. Hanek (1983): only those digits
of 2/pi count whose product with the angle is neither whole turns nor below the result.

Part of kernel code only, of targets whose contexts ask for it (``corrects_angles``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import Registry
from numba.core.typing import signature
from numba.cpython import mathimpl
from numba.extending import intrinsic

from numba_offload.device.fused import fma

registry = Registry("offload angles")

UFUNCS: dict[Any, dict[str, Callable[..., Any]]] = {}
"""Implementations, by their loops' types, that take the place of those in Numba's table."""

_NEAR = 2.0**-44
"""Below this a sine is its angle, whose square no longer counts, and a library's error may show."""

_LARGE = 2.0**25
"""Up to here the libraries have digits enough, next to every multiple of pi/2."""

_DIGIT_BITS = 24
_BASE = 1 << _DIGIT_BITS
_FRACTION_DIGITS = 7
"""Of the distance in quarter turns, which is 2**-61 at the least: 54 bits more than its own 53."""

# 2/pi = sum of digit[k] * 2**(-24 * (k - _LEADING)); enough of them for angles below 2**1024.
_LEADING = 4
_TWO_OVER_PI = (
    *[0] * _LEADING,
    0x000000, 0xA2F983, 0x6E4E44, 0x1529FC, 0x2757D1, 0xF534DD, 0xC0DB62, 0x95993C, 0x439041, 0xFE5163, 0xABDEBB, 0xC561B7,
    0x246E3A, 0x424DD2, 0xE00649, 0x2EEA09, 0xD1921C, 0xFE1DEB, 0x1CB129, 0xA73EE8, 0x8235F5, 0x2EBB44, 0x84E99C, 0x7026B4,
    0x5F7E41, 0x3991D6, 0x398353, 0x39F49C, 0x845F8B, 0xBDF928, 0x3B1FF8, 0x97FFDE, 0x05980F, 0xEF2F11, 0x8B5A0A, 0x6D1F6D,
    0x367ECF, 0x27CB09, 0xB74F46, 0x3F669E, 0x5FEA2D, 0x7527BA, 0xC7EBE5, 0xF17B3D, 0x0739F7, 0x8A5292, 0xEA6BFB, 0x5FB11F,
    0x8D5D08, 0x560330,
)  # fmt: skip
_PI_2, _PI_2_REST = 1.5707963267948966, 6.123233995736766e-17


@intrinsic
def _digit(typingctx: Any, k: Any) -> Any:
    """Digit ``k`` of the table, as int64."""
    if not isinstance(k, types.Integer):
        return None

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        name, width = "numba_offload.two_over_pi", ir.IntType(32)
        table = builder.module.globals.get(name)
        if table is None:
            ty = ir.ArrayType(width, len(_TWO_OVER_PI))
            table = cgutils.add_global_variable(builder.module, ty, name, context.constant_addrspace)
            table.linkage, table.global_constant = "internal", True
            table.initializer = ir.Constant(ty, list(_TWO_OVER_PI))
        index = context.cast(builder, args[0], sig.args[0], types.int64)
        at = builder.gep(table, [ir.Constant(index.type, 0), index], inbounds=True)
        return builder.zext(builder.load(at), ir.IntType(64))

    return types.int64(k), generate


def _distance(x: Any) -> Any:
    """How far an angle of 1 or more is from the nearest multiple of pi/2, in radians."""
    mask = _BASE - 1
    mantissa, exponent = math.frexp(x)
    exponent -= 53
    first = exponent // _DIGIT_BITS
    shift = exponent - first * _DIGIT_BITS
    whole = int(mantissa * 2.0**53)
    # x = (m0 + m1 * 2**24 + m2 * 2**48 + m3 * 2**72) * 2**(24 * first)
    m0 = (whole & mask) << shift
    m1 = (((whole >> _DIGIT_BITS) & mask) << shift) + (m0 >> _DIGIT_BITS)
    m2 = ((whole >> 2 * _DIGIT_BITS) << shift) + (m1 >> _DIGIT_BITS)
    m3 = m2 >> _DIGIT_BITS
    m0, m1, m2 = m0 & mask, m1 & mask, m2 & mask
    carry = 0
    below, below_rest, above, above_rest = 0.0, 0.0, 0.0, 0.0
    for place in range(_FRACTION_DIGITS, 0, -1):
        k = _LEADING + first + place
        carry += m0 * _digit(k) + m1 * _digit(k + 1) + m2 * _digit(k + 2) + m3 * _digit(k + 3)
        # From the multiple below, and to that above; what is lost when a digit is added (Dekker's sum) is kept.
        digit = float(carry & mask)
        total = digit + below
        below_rest = (below_rest + (below - (total - digit))) * (1.0 / _BASE)
        below = total * (1.0 / _BASE)
        digit = float(mask - (carry & mask))
        total = digit + above
        above_rest = (above_rest + (above - (total - digit))) * (1.0 / _BASE)
        above = total * (1.0 / _BASE)
        carry >>= _DIGIT_BITS
    turns, rest = (below, below_rest) if below < above else (above, above_rest)
    return fma(turns, _PI_2, turns * _PI_2_REST + rest * _PI_2)


_DOUBLE = ir.DoubleType()


def _double(value: float) -> Any:
    return ir.Constant(_DOUBLE, value)


def _choose(builder: Any, rare: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    """What one of two computes, of which the first is rarely needed."""
    with builder.if_else(rare, likely=False) as branches:
        found = []
        for branch, value in zip(branches, (then, otherwise), strict=True):
            with branch:
                found.append((value(), builder.block))
    result = builder.phi(_DOUBLE)
    for value, block in found:
        result.add_incoming(value, block)
    return result


def _intrinsic(builder: Any, name: str, *args: Any) -> Any:
    fnty = ir.FunctionType(_DOUBLE, [_DOUBLE] * len(args))
    return builder.call(cgutils.get_or_insert_function(builder.module, fnty, f"llvm.{name}.f64"), args)


def _correct(name: str, of_library: Any, function: Any, ufunc: Any, *, unbounded: bool = False) -> None:
    """Give a function of angles an implementation that computes again what is next to 0, and next to infinity."""

    def corrected(context: Any, builder: Any, sig: Any, size: Any, y: Any) -> Any:
        result = _intrinsic(builder, "fabs", y)
        tiny = doubtful = builder.fcmp_ordered("<", result, _double(_NEAR))
        if unbounded:
            doubtful = builder.or_(tiny, builder.fcmp_ordered(">", result, _double(1 / _NEAR)))
        doubtful = builder.and_(doubtful, builder.fcmp_ordered(">", size, _double(_LARGE)))

        def again() -> Any:
            exact = context.compile_internal(builder, _distance, sig, [size])
            if unbounded:
                exact = builder.select(tiny, exact, builder.fdiv(_double(1.0), exact))
            return _intrinsic(builder, "copysign", exact, y)

        return _choose(builder, doubtful, again, lambda: y)

    def of_double(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        (x,) = args

        def plain() -> Any:
            return of_library(context, builder, sig, args)

        if not context.corrects_angles:
            return plain()
        size = _intrinsic(builder, "fabs", x)
        if not context.joins_sine_and_cosine:
            return corrected(context, builder, sig, size, plain())

        # LLVM joins a sine and a cosine of one angle, if they stand in one basic block. Conditions on the angle leave them
        # together, those on the results would not; and a call of another name is not taken out of both branches.
        def of_large() -> Any:
            function = cgutils.insert_pure_function(builder.module, ir.FunctionType(_DOUBLE, [_DOUBLE]), name)
            return corrected(context, builder, sig, size, builder.call(function, [x]))

        return _choose(builder, builder.fcmp_ordered(">", size, _double(_LARGE)), of_large, plain)

    def of_integer(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        x = context.cast(builder, args[0], sig.args[0], types.float64)
        return of_double(context, builder, signature(types.float64, types.float64), [x])

    registry.lower(function, types.float64)(of_double)
    registry.lower(function, types.Integer)(of_integer)
    UFUNCS[ufunc] = {"d->d": of_double}


_correct("sin", mathimpl.sin_impl, math.sin, np.sin)
_correct("cos", mathimpl.cos_impl, math.cos, np.cos)
_correct("tan", mathimpl.tan_impl, math.tan, np.tan, unbounded=True)
