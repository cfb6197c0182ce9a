"""Mathematics of real numbers in kernels: what Numba has not, and what it computes otherwise than NumPy or less exactly.

Part of kernel code only: neither typing nor implementations are registered for Numba's own compilers.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import Registry
from numba.core.typing import signature, templates
from numba.cpython import mathimpl
from numba.np import npyfuncs

from numba_offload.device.fused import fma, rounded_product

registry = Registry("offload mathematics")
typing_registry = templates.Registry()

UFUNCS: dict[Any, dict[str, Callable[..., Any]]] = {}
"""Implementations, by their loops' types, that take the place of those in Numba's table."""

_FLOATS = (types.float32, types.float64)
_WIDE_INTEGERS = (types.int64, types.uint64)
_i32 = ir.IntType(32)


def _typed(result: Callable[[Any], Any], arity: int, *functions: Any) -> None:
    """Give functions a type: for floats of each width, and for integers, which become float64."""
    widths = [(ty, ty) for ty in _FLOATS] + [(ty, types.float64) for ty in _WIDE_INTEGERS]

    class Template(templates.ConcreteTemplate):
        cases = [signature(result(to), *[ty] * arity) for ty, to in widths]  # noqa: RUF012 - as Numba has it

    for function in functions:
        typing_registry.register_global(function)(Template)


_typed(lambda ty: ty, 1, math.cbrt)
_typed(lambda ty: ty, 2, math.fmod, math.remainder, np.heaviside)
_typed(lambda ty: types.Tuple((ty, ty)), 1, math.modf, np.modf)
_typed(lambda ty: types.Tuple((ty, types.int32)), 1, np.frexp)


def _lower(arity: int, *functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register an implementation that takes floats of one width, for these and for integers."""

    def decorate(implementation: Callable[..., Any]) -> Callable[..., Any]:
        def of_integers(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            wide = signature(sig.return_type, *[types.float64] * arity)
            values = [context.cast(builder, a, t, types.float64) for a, t in zip(args, sig.args, strict=True)]
            return implementation(context, builder, wide, values)

        for function in functions:
            registry.lower(function, *[types.Float] * arity)(implementation)
            registry.lower(function, *[types.Integer] * arity)(of_integers)
        return implementation

    return decorate


def _library_call(builder: Any, name: str, args: Any) -> Any:
    """A call of the C library's function for doubles ``name``, or of its twin for floats."""
    ty = args[0].type
    wanted = name if isinstance(ty, ir.DoubleType) else f"{name}f"
    function = cgutils.insert_pure_function(builder.module, ir.FunctionType(ty, [ty] * len(args)), name=wanted)
    return builder.call(function, args)


def _intrinsic(builder: Any, name: str, *args: Any) -> Any:
    ty = args[0].type
    typed = f"llvm.{name}.{ty.intrinsic_name}"
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ty, [ty] * len(args)), typed)
    return builder.call(function, args)


def _ufunc(ufunc: Any, *loops: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def decorate(implementation: Callable[..., Any]) -> Callable[..., Any]:
        UFUNCS.setdefault(ufunc, {}).update(dict.fromkeys(loops, implementation))
        return implementation

    return decorate


# Roots and powers


def _nearer_cbrt(x: Any, root: Any) -> Any:
    """One step of Newton's method, whose residual is computed in twice the precision."""
    if x == 0 or not math.isfinite(x):
        return root
    scale = 1.0
    if abs(x) < 1e-200:
        # Away from subnormal numbers, in which the residual would lose its digits.
        x, root, scale = x * 2.0**600, root * 2.0**200, 2.0**-200
    square = root * root
    rest = fma(root, root, -square)
    residual = fma(square, root, -x) + rest * root
    return (root - residual / (3 * square)) * scale


@_ufunc(np.cbrt, "f->f", "d->d")
@_lower(1, math.cbrt)
def cube_root(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """Numba's np.cbrt is a power, 1/3 of which is rounded."""
    root = _library_call(builder, "cbrt", args)
    if not context.corrects_cbrt or sig.args[0] != types.float64:
        return root
    corrected = signature(sig.return_type, sig.args[0], sig.args[0])
    return context.compile_internal(builder, _nearer_cbrt, corrected, (args[0], root))


def _power_of_integer(x: Any, n: Any) -> Any:
    # LLVM knows exponents that are written in the source: these are then all that remains.
    if n == 0:
        return 1.0
    if n == 1:
        return x
    if n == 2:
        return x * x
    if n == 3:
        return x * x * x
    if n == 4:
        return (x * x) * (x * x)
    if n == -1:
        return 1.0 / x
    if n > 1024 or n < -1024:
        return math.pow(x, float(n))
    # By squaring, each number with what rounding it has lost.
    high, low, left = x, 0.0, n
    if n < 0:
        high, left = 1.0 / x, -n
        low = -fma(high, x, -1.0) * high
        if not math.isfinite(low):
            low = 0.0
    result, rest = 1.0, 0.0
    while left != 0:
        if left & 1:
            product = rounded_product(result, high)
            rest = fma(result, high, -product) + (result * low + rest * high)
            result = product
        square = rounded_product(high, high)
        low = fma(high, high, -square) + 2.0 * high * low
        high = square
        left >>= 1
    total = result + rest
    # What is beyond all numbers has no rest, and a sum has not the sign of a zero.
    return total if math.isfinite(total) and total != 0.0 else result


def power_of_integer(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """NumPy's is as exact as a power of floats. Numba's, by squaring alone, is off by half a unit per factor."""
    x, n = context.cast(builder, args[0], sig.args[0], types.float64), args[1]
    if sig.args[1] == types.uint64:
        # Beyond the largest int64 a power is as with it: as floats all such exponents are even.
        largest = ir.Constant(n.type, 2**63 - 1)
        n = builder.select(builder.icmp_unsigned(">", n, largest), largest, n)
    else:
        n = context.cast(builder, n, sig.args[1], types.int64)
    wide = signature(types.float64, types.float64, types.int64)
    power = context.compile_internal(builder, _power_of_integer, wide, (x, n))
    return context.cast(builder, power, types.float64, sig.return_type)


for _integer in sorted(types.integer_domain, key=str):
    for _power in (operator.pow, operator.ipow, pow):
        registry.lower(_power, types.Float, _integer)(power_of_integer)


# Special functions


def _in_double(function: Any) -> None:
    """A float32's value from double precision: vendors' own for float32 lose all digits near their zeros."""

    @registry.lower(function, types.float32)
    def wide(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        implementation = context.get_function(function, signature(types.float64, types.float64))
        value = implementation(builder, [builder.fpext(args[0], ir.DoubleType())])
        return builder.fptrunc(value, ir.FloatType())


_in_double(math.gamma)
_in_double(math.lgamma)


_LN2 = math.log(2)
_LOG2E = {np.float32: (1.442695, 1.9259629e-8), np.float64: (1.4426950408889634, 2.0355273740931033e-17)}
"""1 / log(2) as a sum of two numbers of each width."""


def _log_of_sum(exp: Any, width: Any, base_2: bool) -> Any:
    """The logarithm of the sum of two powers of ``exp``'s base, to that base, in ``width``."""
    # Constants of the width: in kernel code a Python float is a double.
    zero, half = width(0.0), width(0.5)
    log_of_base, log_of_2 = (width(_LN2), width(1.0)) if base_2 else (width(1.0), width(_LN2))
    scale, scale_rest = map(width, _LOG2E[width]) if base_2 else (width(1.0), zero)

    def log_of_sum(x: Any, y: Any) -> Any:
        if x == y:
            return x + log_of_2  # infinities of one sign too
        high, low = (x, y) if x > y else (y, x)
        distance = low - high
        if distance > -half:
            # 1 + exp(distance) is nearly 2: only what it is less is rounded.
            return high + (log_of_2 + math.log1p(half * math.expm1(distance * log_of_base)) * scale)
        if not distance <= zero:
            return distance  # not a number
        part = exp(distance)
        # What the subtraction lost (Knuth's two-sum): where the result is small against the distance, it shows.
        back = distance - low
        lost = (low - (distance - back)) - (high + back)
        if math.isfinite(lost):
            part += part * lost * log_of_base
        value = math.log1p(part)
        product = rounded_product(value, scale)
        rest = fma(value, scale, -product) + value * scale_rest
        total = high + product
        back = total - high
        rest += (high - (total - back)) + (product - back)
        return total + rest if math.isfinite(rest) else total

    return log_of_sum


def _implement_log_of_sum(ufunc: Any, exp: Any, base_2: bool) -> None:
    for loop, width in (("ff->f", np.float32), ("dd->d", np.float64)):
        python = _log_of_sum(exp, width, base_2)

        @_ufunc(ufunc, loop)
        def log_of_sum(context: Any, builder: Any, sig: Any, args: Any, python: Any = python) -> Any:
            return context.compile_internal(builder, python, sig, args)


_implement_log_of_sum(np.logaddexp, math.exp, False)
_implement_log_of_sum(np.logaddexp2, math.exp2, True)


# Parts of numbers


@_lower(1, math.modf, np.modf)
def modf(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """Fraction and whole part, both with the sign of the argument."""
    (x,) = args
    whole = _intrinsic(builder, "trunc", x)
    infinite = mathimpl.is_inf(builder, x)
    fraction = builder.select(infinite, ir.Constant(x.type, 0.0), builder.fsub(x, whole))
    return context.make_tuple(builder, sig.return_type, [_intrinsic(builder, "copysign", fraction, x), whole])


@_lower(1, math.frexp, np.frexp)
def frexp(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """On the number's bits: the libraries write the exponent through a pointer, of various kinds."""
    (x,) = args
    double = isinstance(x.type, ir.DoubleType)
    bits_type, digits, bias = (ir.IntType(64), 52, 1022) if double else (_i32, 23, 126)

    def constant(value: int) -> Any:
        return ir.Constant(bits_type, value)

    def exponent(bits: Any) -> Any:
        return builder.and_(builder.lshr(bits, constant(digits)), constant(2 * bias + 3))

    plain = builder.bitcast(x, bits_type)
    tiny = builder.icmp_unsigned("==", exponent(plain), constant(0))
    # Subnormal numbers are scaled to have all digits.
    scaled = builder.bitcast(builder.fmul(x, ir.Constant(x.type, 2.0**64)), bits_type)
    bits = builder.select(tiny, scaled, plain)
    raw = exponent(bits)
    unscaled = builder.sub(raw, builder.select(tiny, constant(bias + 64), constant(bias)))
    mask = (1 << digits) - 1 | 1 << (63 if double else 31)
    mantissa = builder.or_(builder.and_(bits, constant(mask)), constant(bias << digits))
    infinite = builder.icmp_unsigned("==", raw, constant(2 * bias + 3))
    itself = builder.or_(infinite, builder.fcmp_ordered("==", x, ir.Constant(x.type, 0.0)))
    power = builder.select(itself, constant(0), unscaled)
    power = builder.trunc(power, _i32) if double else power
    value = builder.select(itself, x, builder.bitcast(mantissa, x.type))
    return context.make_tuple(builder, sig.return_type, [value, power])


@_ufunc(np.ldexp, "fl->f", "dl->d")
def ldexp(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """An exponent that does not fit a C int is as good as the nearest that does."""
    value, power = args
    for end, condition in ((2**31 - 1, ">"), (-(2**31), "<")):
        limit = ir.Constant(power.type, end)
        power = builder.select(builder.icmp_signed(condition, power, limit), limit, power)
    narrow = signature(sig.return_type, sig.args[0], types.int32)
    return mathimpl.ldexp_impl(context, builder, narrow, (value, builder.trunc(power, _i32)))


@_ufunc(np.spacing, "f->f", "d->d")
def spacing(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """As NumPy: the same for both zeros."""
    (x,) = args
    zero = ir.Constant(x.type, 0.0)
    unsigned = builder.select(builder.fcmp_ordered("==", x, zero), zero, x)
    return npyfuncs.np_real_spacing_impl(context, builder, sig, [unsigned])


@_ufunc(np.sign, "f->f", "d->d")
def sign(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """As NumPy: 0 for both zeros, and nan for nan."""
    (x,) = args
    zero, one = ir.Constant(x.type, 0.0), ir.Constant(x.type, 1.0)
    known = builder.fcmp_ordered("!=", x, zero)
    size = builder.select(known, _intrinsic(builder, "copysign", one, x), zero)
    return builder.select(mathimpl.is_nan(builder, x), x, size)


@_lower(2, np.heaviside)
def heaviside(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    x, at_zero = args
    zero = ir.Constant(x.type, 0.0)
    step = builder.select(builder.fcmp_ordered("<", x, zero), zero, ir.Constant(x.type, 1.0))
    result = builder.select(builder.fcmp_ordered("==", x, zero), at_zero, step)
    return builder.select(mathimpl.is_nan(builder, x), x, result)


# Division and rounding


@_lower(2, math.fmod)
def fmod(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.frem(*args)


@_lower(2, math.remainder)
def remainder(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return _library_call(builder, "remainder", args)


def _as_operator(ufunc: Any, function: Any, *loops: str) -> None:
    """NumPy's function is the operator; Numba's copy of it takes shortcuts for zeros, infinities and quotients."""

    @_ufunc(ufunc, *loops)
    def same(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return context.get_function(function, sig)(builder, args)


_as_operator(np.remainder, operator.mod, "ff->f", "dd->d")
_as_operator(np.floor_divide, operator.floordiv, "ff->f", "dd->d")
_as_operator(np.divmod, divmod, "ff->ff", "dd->dd")


@registry.lower(round, types.Float)
def round_to_integer(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """Numba's conversion gives poison for what no integer is near."""
    whole = _intrinsic(builder, "rint", args[0])
    return context.cast(builder, whole, sig.args[0], sig.return_type)
