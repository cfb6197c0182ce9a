"""``acc.update(index, value)``: an atomic update of a shared array."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.imputils import lower_builtin, lower_getattr
from numba.core.typing import signature
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, infer_getattr

from numba_offload.device.access import is_index
from numba_offload.device.types import AccumulatorType, OwnedIndexType
from numba_offload.device.views import index_parts, select

OPERATIONS = ("+", "min", "max", "&", "|", "^")
"""What an Accumulator can do: all associative and commutative."""


def supports(op: str, dtype: types.Type) -> bool:
    """Whether an operation exists for a dtype."""
    if isinstance(dtype, types.Boolean):
        return op in ("&", "|", "^")
    if isinstance(dtype, types.Integer):
        return op in OPERATIONS
    if isinstance(dtype, types.Float):
        return op in ("+", "min", "max")
    return isinstance(dtype, types.Complex) and op == "+"


@infer_getattr
class AccumulatorAttributes(AttributeTemplate):
    """``acc.update``."""

    key = AccumulatorType

    def resolve_update(self, acc: AccumulatorType) -> types.Type:
        return types.BoundFunction(_UpdateTemplate, acc)


def _same_kind(value: types.Type, dtype: types.Type) -> bool:
    """As ``np.add.at`` casts: an integer may become a float, a float no integer, a complex number no real one."""
    kinds: tuple[Any, ...] = (types.Boolean, types.Integer, types.Float, types.Complex)
    plain = types.int64 if isinstance(value, OwnedIndexType) else types.unliteral(value)

    def rank(ty: types.Type) -> int:
        return next((k for k, kind in enumerate(kinds) if isinstance(ty, kind)), len(kinds))

    return rank(plain) <= rank(dtype)


class _UpdateTemplate(AbstractTemplate):
    key = "offload.update"

    def generic(self, args: Any, kws: Any) -> Any:
        if len(args) != 2 or kws:
            return None
        index, value = args
        parts = index_parts(index)
        if len(parts) != self.this.ndim or not all(is_index(p) for p in parts):
            return None
        if not _same_kind(value, self.this.dtype) or self.context.can_convert(value, self.this.dtype) is None:
            return None
        return signature(types.none, index, self.this.dtype, recvr=self.this)


@lower_getattr(AccumulatorType, "update")
def accumulator_update_bound(context: Any, builder: Any, ty: AccumulatorType, value: Any) -> Any:
    return value


def _operation(op: str, dtype: types.Type) -> str:
    if op == "+":
        return "fadd" if isinstance(dtype, types.Float) else "add"
    if op in ("min", "max"):
        if isinstance(dtype, types.Float):
            return f"f{op}"
        return op if dtype.signed else f"u{op}"
    return {"&": "and", "|": "or", "^": "xor"}[op]


@lower_builtin("offload.update", AccumulatorType, types.Any, types.Any)
def accumulator_update(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    acc, index_type, value_type = sig.args
    pointer, _, _ = select(context, builder, acc, args[0], index_type, args[1])
    value = context.cast(builder, args[2], value_type, acc.dtype)
    if isinstance(acc.dtype, types.Complex):
        number = context.make_complex(builder, acc.dtype, value=value)
        part = context.get_value_type(acc.dtype.underlying_float)
        first = builder.bitcast(pointer, part.as_pointer())
        for k, piece in enumerate((number.real, number.imag)):
            at = builder.gep(first, [ir.Constant(ir.IntType(32), k)], inbounds=True)
            builder.atomic_rmw("fadd", at, piece, context.atomic_ordering)
        return context.get_dummy_value()
    if isinstance(acc.dtype, types.Boolean):
        value = builder.zext(value, ir.IntType(8))
    builder.atomic_rmw(_operation(acc.op, acc.dtype), pointer, value, context.atomic_ordering)
    return context.get_dummy_value()
