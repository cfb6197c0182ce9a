"""Addresses and index checks: the code that every element access of a kernel goes through."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.ir import Expr, SetItem

from numba_offload.device.types import OwnedIndexType, RegionType, ViewType, describe_leaves

i64 = ir.IntType(64)


def view_proxy(context: Any, builder: Any, ty: ViewType, value: Any = None) -> Any:
    """Struct access to a view's fields."""
    return cgutils.create_struct_proxy(ty)(context, builder, value=value)


def unpack(builder: Any, tuple_value: Any, n: int) -> list[Any]:
    """The elements of an index tuple value."""
    return [builder.extract_value(tuple_value, k) for k in range(n)] if n else []


def is_index(ty: types.Type) -> bool:
    """Whether a type can index one axis."""
    return isinstance(types.unliteral(ty), types.Integer | OwnedIndexType)


def as_index(context: Any, builder: Any, value: Any, ty: types.Type) -> Any:
    """An index as i64."""
    if isinstance(ty, OwnedIndexType):
        return value
    return context.cast(builder, value, ty, types.int64 if types.unliteral(ty).signed else types.uint64)


def _host_checked(builder: Any) -> bool:
    return id(getattr(builder, "offload_instruction", None)) in getattr(builder, "offload_in_range", ())


def _array_name(builder: Any, ty: ViewType) -> str:
    if ty.leaves:
        return describe_leaves(ty.leaves)
    inst = getattr(builder, "offload_instruction", None)
    base = inst.target if isinstance(inst, SetItem) else getattr(getattr(inst, "value", None), "value", None)
    if isinstance(getattr(inst, "value", None), Expr) and base is not None and not base.name.startswith("$"):
        return base.unversioned_name
    return "a local array"


def checked_index(
    context: Any, builder: Any, view: ViewType, index: Any, index_type: types.Type, size: Any, axis: int
) -> Any:
    """An index made absolute: negative ones wrap as in NumPy, one out of range leaves the kernel with an IndexError.

    In a Region nothing wraps: whether an element may be read there depends on where it is.
    """
    owned = isinstance(index_type, OwnedIndexType)
    if _host_checked(builder):
        return index
    given = index
    if not owned and types.unliteral(index_type).signed and (
        context.offload_options.unsafe or not isinstance(view, RegionType)
    ):
        constant = isinstance(index, ir.Constant)
        if not constant or index.constant < 0:
            negative = builder.icmp_signed("<", index, ir.Constant(i64, 0))
            index = builder.select(negative, builder.add(index, size), index)
    if context.offload_options.boundscheck:
        # The signed pair: LLVM then drops a check that the user's own guard implies, and vectorises.
        outside = builder.icmp_signed(">=", index, size)
        if not owned:
            outside = builder.or_(builder.icmp_signed("<", index, ir.Constant(i64, 0)), outside)
        with builder.if_then(outside, likely=False):
            context.call_conv.return_index_error(builder, given, size, axis, _array_name(builder, view))
    return index


def element_pointer(context: Any, builder: Any, ty: ViewType, proxy: Any, indices: list[Any]) -> Any:
    """Pointer to the element (or sub-array) at absolute indices of the leading axes."""
    strides = unpack(builder, proxy.strides, ty.ndim)
    shape = unpack(builder, proxy.shape, ty.ndim)
    data = proxy.data
    if ty.layout == "C" and len(indices) == ty.ndim:
        flat = None
        for axis, index in enumerate(indices):
            flat = index if flat is None else builder.add(builder.mul(flat, shape[axis]), index)
        return builder.gep(data, [flat], inbounds=True) if flat is not None else data
    contiguous_last = ty.layout in "CI" and len(indices) == ty.ndim and ty.ndim > 0
    leading = indices[:-1] if contiguous_last else indices
    if leading:
        offset = None
        for axis, index in enumerate(leading):
            step = builder.mul(index, strides[axis])
            offset = step if offset is None else builder.add(offset, step)
        raw = builder.bitcast(data, ir.IntType(8).as_pointer())
        data = builder.bitcast(builder.gep(raw, [offset], inbounds=True), data.type)
    return builder.gep(data, [indices[-1]], inbounds=True) if contiguous_last else data


def store_bytes(context: Any, builder: Any, value: Any, pointer: Any) -> None:
    """Store at an address of any alignment."""
    if isinstance(value.type, ir.LiteralStructType):
        for k in range(len(value.type.elements)):
            at = builder.gep(pointer, [ir.Constant(ir.IntType(32), 0), ir.Constant(ir.IntType(32), k)], inbounds=True)
            store_bytes(context, builder, builder.extract_value(value, k), at)
        return
    if not isinstance(value.type, ir.FloatType | ir.DoubleType):
        builder.store(value, pointer, align=1)
        return
    halves = context.halves(builder, value)
    start = builder.bitcast(pointer, halves[0].type.as_pointer())
    for k, part in enumerate(halves):
        builder.store(part, builder.gep(start, [ir.Constant(i64, k)], inbounds=True), align=1)
