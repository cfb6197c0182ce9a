"""Arithmetic that Numba leaves to the machine, or makes raise, with NumPy's meaning on every target.

Part of kernel code only: the implementations are not registered for Numba's own compilers.
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import Registry
from numba.cpython.numbers import int_floordiv_impl

registry = Registry("offload numbers")


def _shift_operands(context: Any, builder: Any, sig: Any, args: Any) -> tuple[Any, Any, Any]:
    """The value, the amount without the bits that a shift may not have, and whether it had none of them."""
    value, amount = (context.cast(builder, a, t, sig.return_type) for a, t in zip(args, sig.args, strict=True))
    width = sig.return_type.bitwidth
    inside = builder.icmp_unsigned("<", amount, ir.Constant(amount.type, width))
    return value, builder.and_(amount, ir.Constant(amount.type, width - 1)), inside


# LLVM's shifts by the width or more give poison: a bounds check on an index made of one may be optimised away.


@registry.lower(operator.lshift, types.Integer, types.Integer)
@registry.lower(operator.ilshift, types.Integer, types.Integer)
def shift_left(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    value, amount, inside = _shift_operands(context, builder, sig, args)
    return builder.select(inside, builder.shl(value, amount), ir.Constant(value.type, 0))


@registry.lower(operator.rshift, types.Integer, types.Integer)
@registry.lower(operator.irshift, types.Integer, types.Integer)
def shift_right(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    value, amount, inside = _shift_operands(context, builder, sig, args)
    if sig.return_type.signed:
        last = ir.Constant(amount.type, sig.return_type.bitwidth - 1)
        return builder.ashr(value, builder.select(inside, amount, last))
    return builder.select(inside, builder.lshr(value, amount), ir.Constant(value.type, 0))


@registry.lower(operator.floordiv, types.int64, types.int64)
@registry.lower(operator.ifloordiv, types.int64, types.int64)
def floor_divide(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """As Numba's, but the lowest integer // -1 wraps around instead of giving 0."""
    quotient = int_floordiv_impl(context, builder, sig, args)
    value, divisor = args
    by_minus_one = builder.icmp_signed("==", divisor, ir.Constant(divisor.type, -1))
    return builder.select(by_minus_one, builder.neg(value), quotient)


@registry.lower_cast(types.Float, types.Integer)
def float_to_integer(context: Any, builder: Any, fromty: Any, toty: Any, val: Any) -> Any:
    """Truncation; NaN gives 0 and what lies beyond the integer's range its nearest end, on every target.

    LLVM's plain conversion gives poison there, and a bounds check on an index made of poison may be optimised away.
    """
    source, result = val.type, context.get_value_type(toty)
    kind = "fptosi" if toty.signed else "fptoui"
    name = f"llvm.{kind}.sat.i{toty.bitwidth}.f{fromty.bitwidth}"
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, [source]), name)
    return builder.call(function, [val])


def _divide_complex(a: Any, b: Any) -> Any:
    if abs(b.real) >= abs(b.imag):
        if b.real == 0:
            # Both parts are zero.
            return complex(a.real / abs(b.real), a.imag / abs(b.real))
        ratio = b.imag / b.real
        denominator = b.real + b.imag * ratio
        return complex((a.real + a.imag * ratio) / denominator, (a.imag - a.real * ratio) / denominator)
    ratio = b.real / b.imag
    denominator = b.real * ratio + b.imag
    return complex((a.real * ratio + a.imag) / denominator, (a.imag * ratio - a.real) / denominator)


@registry.lower(operator.truediv, types.Complex, types.Complex)
@registry.lower(operator.itruediv, types.Complex, types.Complex)
def divide_complex(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """IEEE by zero, where Python, and Numba after it, raises."""
    return context.compile_internal(builder, _divide_complex, sig, args)
