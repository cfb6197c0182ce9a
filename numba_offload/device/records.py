"""Rows of structured arrays, in place: fields read and, where the row is this thread's own, written."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.imputils import lower_builtin, lower_cast, lower_getattr_generic, lower_setattr_generic
from numba.core.typing import signature
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, infer, infer_getattr

from numba_offload.device.access import i64, store_bytes, unpack, view_proxy
from numba_offload.device.types import MutableArrayType, ReadArrayType, RecordRefType
from numba_offload.device.views import make_view

_byte_pointer = ir.IntType(8).as_pointer()


def _packed(record: types.Record) -> types.Record:
    """The same fields without a promise of alignment."""
    fields = [(name, field._asdict()) for name, field in record.fields.items()]
    return types.Record(fields, record.size, False)


def field_type(row: RecordRefType, name: str) -> types.Type | None:
    """What a field of a row is to kernel code."""
    if name not in row.record.fields:
        return None
    ty = row.record.typeof(name)
    if isinstance(ty, types.Record):
        # Wherever a packed row lies, so does what is inside it.
        inner = ty if row.record.aligned else _packed(ty)
        return RecordRefType(inner, row.leaves, row.writable)
    if isinstance(ty, types.NestedArray):
        cls = MutableArrayType if row.writable else ReadArrayType
        return cls(ty.dtype, ty.ndim, "C" if row.record.aligned else "U", row.leaves)
    return ty


@infer_getattr
class RowAttributes(AttributeTemplate):
    """``row.field``."""

    key = RecordRefType

    def generic_resolve(self, row: RecordRefType, attr: str) -> types.Type | None:
        return field_type(row, attr)


@infer
class RowGetItem(AbstractTemplate):
    """``row["field"]``."""

    key = "static_getitem"

    def generic(self, args: Any, kws: Any) -> Any:
        row, name = args
        if isinstance(row, RecordRefType) and isinstance(name, str):
            ty = field_type(row, name)
            if ty is not None:
                return signature(ty, row, types.literal(name))
        return None


@infer
class RowSetItem(AbstractTemplate):
    """``row["field"] = value``."""

    key = "static_setitem"

    def generic(self, args: Any, kws: Any) -> Any:
        row, name, value = args
        if isinstance(row, RecordRefType) and isinstance(name, str):
            ty = field_type(row, name)
            if ty is not None and self.context.can_convert(value, ty) is not None:
                return signature(types.void, row, types.literal(name), ty)
        return None


def _field_pointer(context: Any, builder: Any, row: RecordRefType, value: Any, name: str) -> Any:
    raw = builder.gep(value, [ir.Constant(i64, row.record.offset(name))], inbounds=True)
    return builder.bitcast(raw, context.get_data_type(row.record.typeof(name)).as_pointer())


def _alignment(context: Any, row: RecordRefType, name: str) -> int:
    """Fields of packed records lie where they lie."""
    natural = context.get_abi_alignment(context.get_data_type(row.record.typeof(name)))
    return natural if row.record.aligned and row.record.offset(name) % natural == 0 else 1


def load_field(context: Any, builder: Any, row: RecordRefType, value: Any, name: str) -> Any:
    """A field's value, or the place of a nested row or array."""
    ty = row.record.typeof(name)
    if isinstance(ty, types.Record):
        return builder.gep(value, [ir.Constant(i64, row.record.offset(name))], inbounds=True)
    pointer = _field_pointer(context, builder, row, value, name)
    if isinstance(ty, types.NestedArray):
        view: Any = field_type(row, name)
        data = builder.bitcast(pointer, context.get_data_type(ty.dtype).as_pointer())
        shape = [ir.Constant(i64, n) for n in ty.shape]
        return make_view(context, builder, view, data, shape, [ir.Constant(i64, s) for s in ty.strides])
    return context.unpack_value(builder, ty, pointer, align=_alignment(context, row, name))


def store_field(context: Any, builder: Any, row: RecordRefType, value: Any, name: str, new: Any, given: Any) -> None:
    """Write one field; its neighbours and the padding are not touched."""
    ty = row.record.typeof(name)
    pointer = _field_pointer(context, builder, row, value, name)
    data = context.data_model_manager[ty].as_data(builder, context.cast(builder, new, given, ty))
    if _alignment(context, row, name) == 1:
        store_bytes(context, builder, data, pointer)
    else:
        builder.store(data, pointer)


@lower_getattr_generic(RecordRefType)
def row_getattr(context: Any, builder: Any, row: RecordRefType, value: Any, attr: str) -> Any:
    return load_field(context, builder, row, value, attr)


@lower_setattr_generic(RecordRefType)
def row_setattr(context: Any, builder: Any, sig: Any, args: Any, attr: str) -> None:
    store_field(context, builder, sig.args[0], args[0], attr, args[1], sig.args[1])


@lower_builtin("static_getitem", RecordRefType, types.StringLiteral)
def row_getitem(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return load_field(context, builder, sig.args[0], args[0], sig.args[1].literal_value)


@lower_builtin("static_setitem", RecordRefType, types.StringLiteral, types.Any)
def row_setitem(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    store_field(context, builder, sig.args[0], args[0], sig.args[1].literal_value, args[2], sig.args[2])
    return context.get_dummy_value()


@lower_getattr_generic(ReadArrayType)
@lower_getattr_generic(MutableArrayType)
def column_getattr(context: Any, builder: Any, view: Any, value: Any, attr: str) -> Any:
    """``x.field``: one field of every row, in place."""
    out = context.typing_context.resolve_getattr(view, attr)
    proxy = view_proxy(context, builder, view, value)
    raw = builder.bitcast(proxy.data, _byte_pointer)
    moved = builder.gep(raw, [ir.Constant(i64, view.dtype.offset(attr))], inbounds=True)
    data = builder.bitcast(moved, context.get_data_type(out.dtype).as_pointer())
    shape, strides = unpack(builder, proxy.shape, view.ndim), unpack(builder, proxy.strides, view.ndim)
    return make_view(context, builder, out, data, shape, strides)


@lower_cast(RecordRefType, RecordRefType)
def row_cast(context: Any, builder: Any, fromty: Any, toty: Any, val: Any) -> Any:
    return val
