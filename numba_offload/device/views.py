"""Indexing, assigning, slicing and asking after views: typing and lowering, once for every target."""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import (
    RefType,
    impl_ret_borrowed,
    iternext_impl,
    lower_builtin,
    lower_cast,
    lower_getattr,
)
from numba.core.typing import signature
from numba.core.typing.templates import (
    AbstractTemplate,
    AttributeTemplate,
    infer,
    infer_getattr,
    infer_global,
)
from numba.cpython import slicing

from numba_offload.device.access import (
    as_index,
    checked_index,
    element_pointer,
    i64,
    is_index,
    store_bytes,
    unpack,
    view_proxy,
)
from numba_offload.device.models import INDEX, coordinate_type, index_tuple
from numba_offload.device.strategies import call_method
from numba_offload.device.types import (
    AccumulatorType,
    IndicesType,
    MutableArrayType,
    OwnedIndexType,
    ReadArrayType,
    RecordRefType,
    RegionType,
    ViewIterType,
    ViewType,
    describe_leaves,
)

# ---------------------------------------------------------------------------------------------------------- typing


def index_parts(index: types.Type) -> tuple[types.Type, ...]:
    """The parts of an index expression."""
    return tuple(index) if isinstance(index, types.BaseTuple) else (index,)


def _expand(parts: tuple[types.Type, ...], ndim: int) -> list[types.Type | None] | None:
    """Parts with the ellipsis written out and missing axes added: full slices are None. None if it cannot index."""
    real = sum(1 for p in parts if not isinstance(p, types.NoneType | types.EllipsisType))
    if real > ndim or sum(isinstance(p, types.EllipsisType) for p in parts) > 1:
        return None
    expanded: list[types.Type | None] = []
    for part in parts:
        if isinstance(part, types.EllipsisType):
            expanded += [None] * (ndim - real)
        else:
            expanded.append(part)
    if not any(isinstance(p, types.EllipsisType) for p in parts):
        expanded += [None] * (ndim - real)
    ok = all(p is None or is_index(p) or isinstance(p, types.NoneType | types.SliceType) for p in expanded)
    return expanded if ok else None


def element_type(view: ViewType, writable: bool) -> types.Type:
    """What one element of a view is to kernel code."""
    if isinstance(view.dtype, types.Record):
        return RecordRefType(view.dtype, view.leaves, writable)
    return view.dtype


def item_type(view: ViewType, index: types.Type) -> types.Type | None:
    """The type of ``view[index]``, or None where it cannot be indexed so."""
    expanded = _expand(index_parts(index), view.ndim)
    if expanded is None:
        return None
    if all(p is not None and is_index(p) for p in expanded):
        owned = isinstance(view, RegionType) and all(isinstance(p, OwnedIndexType) for p in expanded)
        return element_type(view, owned or isinstance(view, MutableArrayType))
    kept = [p for p in expanded if p is None or not is_index(p)]
    leading_only = all(p is not None and is_index(p) for p in expanded[: len(expanded) - len(kept)])
    untouched = all(p is None for p in kept)
    if view.layout == "U":
        layout = "U"
    elif view.layout == "C" and leading_only and untouched:
        layout = "C"
    elif view.layout in "CI" and kept and kept[-1] is None and expanded[-1] is None:
        layout = "I"
    elif view.layout in "CI" and isinstance(expanded[-1], types.SliceType) and not expanded[-1].has_step:
        layout = "C" if view.ndim == 1 and len(kept) == 1 else "I"
    else:
        layout = "A"
    cls = MutableArrayType if isinstance(view, MutableArrayType) else ReadArrayType
    return cls(view.dtype, len(kept), layout, view.leaves)


@infer_global(operator.getitem)
class ViewGetItem(AbstractTemplate):
    """``view[index]``."""

    def generic(self, args: Any, kws: Any) -> Any:
        view, index = args
        if not isinstance(view, ViewType):
            return None
        item = item_type(view, index)
        return None if item is None else signature(item, view, index)


@infer_global(operator.setitem)
class ViewSetItem(AbstractTemplate):
    """``view[index] = value``. Typed whether or not it is allowed: the ownership analysis gives the better error."""

    def generic(self, args: Any, kws: Any) -> Any:
        view, index, value = args
        if not isinstance(view, ViewType):
            return None
        item = item_type(view, index)
        if item is None:
            return None
        if isinstance(item, RecordRefType):
            same = isinstance(value, RecordRefType) and value.record == item.record
            return signature(types.none, view, index, value) if same else None
        if isinstance(item, ViewType) and isinstance(value, ViewType):
            fits = value.ndim == item.ndim and self.context.can_convert(value.dtype, item.dtype) is not None
            return signature(types.none, view, index, value) if fits else None
        fits = self.context.can_convert(value, view.dtype) is not None
        return signature(types.none, view, index, view.dtype) if fits else None


@infer_global(len)
class ViewLen(AbstractTemplate):
    """``len(view)``."""

    def generic(self, args: Any, kws: Any) -> Any:
        if len(args) == 1 and isinstance(args[0], ViewType) and args[0].ndim:
            return signature(INDEX, args[0])
        return None


def has_block(region: RegionType) -> bool:
    """Whether a thread's elements form one dense block."""
    cls = region.strategy.cls
    return hasattr(cls, "origin") and hasattr(cls, "local_shape") and getattr(cls, "step", None) is None


@infer_getattr
class ViewAttributes(AttributeTemplate):
    """The attributes of every view."""

    key = ViewType

    def resolve_shape(self, view: ViewType) -> types.Type:
        return index_tuple(view.ndim)

    def resolve_size(self, view: ViewType) -> types.Type:
        return INDEX

    def resolve_ndim(self, view: ViewType) -> types.Type:
        return INDEX

    def resolve_itemsize(self, view: ViewType) -> types.Type:
        return INDEX

    def resolve_T(self, view: ViewType) -> types.Type | None:
        if isinstance(view, RegionType | AccumulatorType):
            return None
        cls = MutableArrayType if isinstance(view, MutableArrayType) else ReadArrayType
        return cls(view.dtype, view.ndim, _transposed_layout(view), view.leaves)

    def resolve_local(self, view: ViewType) -> types.Type | None:
        if not isinstance(view, RegionType) or not has_block(view):
            return None
        layout = "A" if view.layout == "A" else ("C" if view.ndim == 1 else "I")
        return MutableArrayType(view.dtype, view.ndim, layout, view.leaves)

    def resolve_origin(self, view: ViewType) -> types.Type | None:
        if not isinstance(view, RegionType) or not hasattr(view.strategy.cls, "origin"):
            return None
        return INDEX if view.ndim == 1 else index_tuple(view.ndim)

    def resolve_indices(self, view: ViewType) -> types.Type | None:
        return types.BoundFunction(_IndicesTemplate, view) if isinstance(view, RegionType) else None

    def generic_resolve(self, view: ViewType, attr: str) -> types.Type | None:
        if isinstance(view, ReadArrayType | MutableArrayType) and isinstance(view.dtype, types.Record):
            # Views load whole elements: packed rows have fields that lie across their natural boundaries.
            known = attr in view.dtype.fields and view.dtype.aligned
            if known and isinstance(view.dtype.typeof(attr), types.Number | types.Boolean):
                return type(view)(view.dtype.typeof(attr), view.ndim, "A", view.leaves)
        return None


def _transposed_layout(view: ViewType) -> str:
    return view.layout if view.ndim < 2 or view.layout == "U" else "A"


class _IndicesTemplate(AbstractTemplate):
    key = "offload.indices"

    def generic(self, args: Any, kws: Any) -> Any:
        return None if args or kws else signature(IndicesType(self.this), recvr=self.this)


@infer
class ViewIter(AbstractTemplate):
    """``for row in view``."""

    key = "getiter"

    def generic(self, args: Any, kws: Any) -> Any:
        (view,) = args
        if isinstance(view, ViewType) and view.ndim:
            item = item_type(view, INDEX)
            return None if item is None else signature(ViewIterType(view, item), view)
        return None


# -------------------------------------------------------------------------------------------------------- lowering


def _flat_parts(context: Any, builder: Any, index_type: types.Type, index: Any) -> list[tuple[types.Type, Any]]:
    if isinstance(index_type, types.BaseTuple):
        return [(t, builder.extract_value(index, k)) for k, t in enumerate(index_type)]
    return [(index_type, index)]


def _expanded_parts(
    context: Any, builder: Any, view: ViewType, index_type: types.Type, index: Any
) -> list[tuple[types.Type | None, Any]]:
    parts = _flat_parts(context, builder, index_type, index)
    real = sum(1 for t, _ in parts if not isinstance(t, types.NoneType | types.EllipsisType))
    out: list[tuple[types.Type | None, Any]] = []
    for ty, value in parts:
        if isinstance(ty, types.EllipsisType):
            out += [(None, None)] * (view.ndim - real)
        else:
            out.append((ty, value))
    if not any(isinstance(t, types.EllipsisType) for t, _ in parts):
        out += [(None, None)] * (view.ndim - real)
    return out


def select(
    context: Any, builder: Any, view: ViewType, value: Any, index_type: types.Type, index: Any
) -> tuple[Any, list[Any], list[Any]]:
    """Pointer, extents and strides of ``view[index]``; every index checked."""
    proxy = view_proxy(context, builder, view, value)
    shape = unpack(builder, proxy.shape, view.ndim)
    strides = unpack(builder, proxy.strides, view.ndim)
    parts = _expanded_parts(context, builder, view, index_type, index)
    if isinstance(view, RegionType) and all(isinstance(t, OwnedIndexType) for t, _ in parts):
        # The ownership analysis has proved that this index lies in this Region.
        return element_pointer(context, builder, view, proxy, [v for _, v in parts]), [], []
    if all(t is not None and is_index(t) for t, _ in parts):
        absolute = [
            checked_index(context, builder, view, as_index(context, builder, v, t), t, shape[axis], axis)
            for axis, (t, v) in enumerate(parts)
        ]
        if isinstance(view, RegionType) and not context.offload_options.unsafe:
            _require_readable(context, builder, view, proxy, absolute)
        return element_pointer(context, builder, view, proxy, absolute), [], []
    offset: Any = ir.Constant(i64, 0)
    out_shape: list[Any] = []
    out_strides: list[Any] = []
    axis = 0
    for ty, part in parts:
        if isinstance(ty, types.NoneType):
            out_shape.append(ir.Constant(i64, 1))
            out_strides.append(ir.Constant(i64, 0))
            continue
        if ty is None:
            out_shape.append(shape[axis])
            out_strides.append(strides[axis])
        elif is_index(ty):
            at = checked_index(context, builder, view, as_index(context, builder, part, ty), ty, shape[axis], axis)
            offset = builder.add(offset, builder.mul(at, strides[axis]))
        else:
            piece = context.make_helper(builder, ty, value=part)
            slicing.guard_invalid_slice(context, builder, ty, piece)
            slicing.fix_slice(builder, piece, shape[axis])
            offset = builder.add(offset, builder.mul(piece.start, strides[axis]))
            out_shape.append(slicing.get_slice_length(builder, piece))
            out_strides.append(slicing.fix_stride(builder, piece, strides[axis]))
        axis += 1
    raw = builder.gep(builder.bitcast(proxy.data, ir.IntType(8).as_pointer()), [offset], inbounds=True)
    return builder.bitcast(raw, proxy.data.type), out_shape, out_strides


def can_read_beyond(region: RegionType) -> bool:
    """Whether the strategy says which elements no thread writes, so that any thread may read them."""
    return hasattr(region.strategy.cls, "readable")


def _require_readable(context: Any, builder: Any, region: RegionType, proxy: Any, indices: list[Any]) -> None:
    """A read of a Region at an index that is not owned: legal only where the strategy says that no thread writes."""
    index: Any = indices[0] if region.ndim == 1 else cgutils.pack_array(builder, indices, i64)
    index_type = INDEX if region.ndim == 1 else index_tuple(region.ndim)
    argtypes = (index_type, index_tuple(region.ndim))
    allowed, ty = call_method(
        context, builder, region.strategy, "readable", proxy.strategy, argtypes, [index, proxy.shape]
    )
    with builder.if_then(builder.not_(context.cast(builder, allowed, ty, types.boolean)), likely=False):
        context.call_conv.return_read_error(builder, indices, describe_leaves(region.leaves), region.strategy.shown)


def make_view(context: Any, builder: Any, ty: ViewType, data: Any, shape: list[Any], strides: list[Any]) -> Any:
    """Assemble a view (not a Region)."""
    proxy = view_proxy(context, builder, ty)
    proxy.data = data
    proxy.shape = cgutils.pack_array(builder, shape, i64)
    proxy.strides = cgutils.pack_array(builder, strides, i64)
    return proxy._getvalue()


def load_element(context: Any, builder: Any, view: ViewType, item: types.Type, pointer: Any) -> Any:
    """The element behind a pointer, as kernel code sees it."""
    if isinstance(item, RecordRefType):
        return builder.bitcast(pointer, ir.IntType(8).as_pointer())
    return context.unpack_value(builder, view.dtype, pointer, align=1 if view.layout == "U" else None)


def store_element(context: Any, builder: Any, view: ViewType, value: Any, pointer: Any) -> None:
    """Assign the element behind a pointer; ``value`` is of the view's dtype."""
    data = context.data_model_manager[view.dtype].as_data(builder, value)
    if view.layout == "U":
        store_bytes(context, builder, data, pointer)
    else:
        builder.store(data, pointer)


@lower_builtin(operator.getitem, ViewType, types.Any)
def view_getitem(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    view, index_type = sig.args
    pointer, shape, strides = select(context, builder, view, args[0], index_type, args[1])
    if isinstance(sig.return_type, ViewType):
        return make_view(context, builder, sig.return_type, pointer, shape, strides)
    return load_element(context, builder, view, sig.return_type, pointer)


def _row_bytes(record: types.Record) -> int:
    return int(record.size)


@lower_builtin(operator.setitem, ViewType, types.Any, types.Any)
def view_setitem(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    view, index_type, value_type = sig.args
    target, index, value = args
    item = item_type(view, index_type)
    pointer, shape, strides = select(context, builder, view, target, index_type, index)
    if isinstance(item, RecordRefType):
        destination = builder.bitcast(pointer, ir.IntType(8).as_pointer())
        cgutils.raw_memmove(builder, destination, value, ir.Constant(i64, _row_bytes(item.record)), 1)
    elif isinstance(item, ViewType):
        _assign_block(context, builder, item, pointer, shape, strides, value_type, value)
    else:
        store_element(context, builder, view, context.cast(builder, value, value_type, view.dtype), pointer)
    return context.get_dummy_value()


def _assign_block(
    context: Any, builder: Any, item: ViewType, pointer: Any, shape: list[Any], strides: list[Any],
    value_type: types.Type, value: Any,
) -> None:
    """Assign a scalar, or a view of the same shape, to every element of a block."""
    target = view_proxy(context, builder, item, make_view(context, builder, item, pointer, shape, strides))
    if not isinstance(value_type, ViewType):
        scalar = context.cast(builder, value, value_type, item.dtype)
        with cgutils.loop_nest(builder, shape, i64) as indices:
            at = element_pointer(context, builder, item, target, list(indices))
            store_element(context, builder, item, scalar, at)
        return
    source = view_proxy(context, builder, value_type, value)
    for mine, theirs in zip(shape, unpack(builder, source.shape, item.ndim), strict=True):
        with builder.if_then(builder.icmp_signed("!=", mine, theirs), likely=False):
            context.call_conv.return_user_exc(builder, ValueError, ("cannot assign an array of another shape",))
    backwards = _copies_backwards(context, builder, item, target, value_type, source)
    with cgutils.loop_nest(builder, shape, i64) as indices:
        order = list(indices)
        if backwards is not None:
            order = [
                builder.select(backwards, builder.sub(builder.sub(n, k), ir.Constant(i64, 1)), k)
                for n, k in zip(shape, order, strict=True)
            ]
        where = element_pointer(context, builder, value_type, source, order)
        element = load_element(context, builder, value_type, value_type.dtype, where)
        at = element_pointer(context, builder, item, target, order)
        store_element(context, builder, item, context.cast(builder, element, value_type.dtype, item.dtype), at)


def _copies_backwards(
    context: Any, builder: Any, item: ViewType, target: Any, value_type: ViewType, source: Any
) -> Any:
    """Within one array NumPy copies as if from a copy: run from the end where the source lies before the target.

    That is exact for equal strides; views of one array with other strides are refused.
    """
    if not (item.leaves & value_type.leaves or not (item.leaves or value_type.leaves)):
        return None
    mine, theirs = unpack(builder, target.strides, item.ndim), unpack(builder, source.strides, item.ndim)
    for a, b in zip(mine, theirs, strict=True):
        with builder.if_then(builder.icmp_signed("!=", a, b), likely=False):
            context.call_conv.return_user_exc(
                builder, ValueError, ("cannot assign a view of the same array with other strides; copy by a loop",)
            )
    down = ir.Constant(ir.IntType(1), 0)
    for a in mine:
        down = builder.or_(down, builder.icmp_signed("<", a, ir.Constant(i64, 0)))
    before = builder.icmp_unsigned("<", builder.ptrtoint(source.data, i64), builder.ptrtoint(target.data, i64))
    return builder.xor(before, down)


@lower_builtin(len, ViewType)
def view_len(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.extract_value(view_proxy(context, builder, sig.args[0], args[0]).shape, 0)


@lower_getattr(ViewType, "shape")
def view_shape(context: Any, builder: Any, ty: ViewType, value: Any) -> Any:
    return view_proxy(context, builder, ty, value).shape


@lower_getattr(ViewType, "size")
def view_size(context: Any, builder: Any, ty: ViewType, value: Any) -> Any:
    size: Any = ir.Constant(i64, 1)
    for extent in unpack(builder, view_proxy(context, builder, ty, value).shape, ty.ndim):
        size = builder.mul(size, extent)
    return size


@lower_getattr(ViewType, "ndim")
def view_ndim(context: Any, builder: Any, ty: ViewType, value: Any) -> Any:
    return ir.Constant(i64, ty.ndim)


@lower_getattr(ViewType, "itemsize")
def view_itemsize(context: Any, builder: Any, ty: ViewType, value: Any) -> Any:
    return ir.Constant(i64, context.get_abi_sizeof(context.get_data_type(ty.dtype)))


@lower_getattr(ViewType, "T")
def view_transposed(context: Any, builder: Any, ty: ViewType, value: Any) -> Any:
    proxy = view_proxy(context, builder, ty, value)
    result = MutableArrayType if isinstance(ty, MutableArrayType) else ReadArrayType
    out = result(ty.dtype, ty.ndim, _transposed_layout(ty), ty.leaves)
    shape = unpack(builder, proxy.shape, ty.ndim)[::-1]
    strides = unpack(builder, proxy.strides, ty.ndim)[::-1]
    return make_view(context, builder, out, proxy.data, shape, strides)


@lower_getattr(ViewType, "indices")
def view_indices_bound(context: Any, builder: Any, ty: ViewType, value: Any) -> Any:
    return value


def region_lattice(context: Any, builder: Any, region: RegionType, value: Any, what: str) -> list[Any]:
    """``origin``, ``local_shape`` or ``step`` of this thread, one i64 per axis."""
    proxy = view_proxy(context, builder, region, value)
    where = coordinate_type(region)
    argtypes = (where, where, index_tuple(region.ndim))
    result, ty = call_method(
        context, builder, region.strategy, what, proxy.strategy, argtypes, [proxy.t, proxy.T, proxy.shape]
    )
    if region.ndim == 1:
        if isinstance(ty, types.BaseTuple):
            result, ty = builder.extract_value(result, 0), ty[0]
        return [context.cast(builder, result, ty, INDEX)]
    return [context.cast(builder, builder.extract_value(result, k), ty[k], INDEX) for k in range(region.ndim)]


@lower_getattr(ViewType, "origin")
def region_origin(context: Any, builder: Any, ty: RegionType, value: Any) -> Any:
    origin = region_lattice(context, builder, ty, value, "origin")
    return origin[0] if ty.ndim == 1 else cgutils.pack_array(builder, origin, i64)


@lower_getattr(ViewType, "local")
def region_local(context: Any, builder: Any, ty: RegionType, value: Any) -> Any:
    layout = "A" if ty.layout == "A" else ("C" if ty.ndim == 1 else "I")
    out = MutableArrayType(ty.dtype, ty.ndim, layout, ty.leaves)
    proxy = view_proxy(context, builder, ty, value)
    origin = region_lattice(context, builder, ty, value, "origin")
    extent = region_lattice(context, builder, ty, value, "local_shape")
    data = element_pointer(context, builder, ty, proxy, origin)
    return make_view(context, builder, out, data, extent, unpack(builder, proxy.strides, ty.ndim))


@lower_builtin("getiter", ViewType)
def view_getiter(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    proxy = context.make_helper(builder, sig.return_type)
    proxy.view = args[0]
    proxy.next = cgutils.alloca_once(builder, i64)
    builder.store(ir.Constant(i64, 0), proxy.next)
    return impl_ret_borrowed(context, builder, sig.return_type, proxy._getvalue())


@lower_builtin("iternext", ViewIterType)
@iternext_impl(RefType.UNTRACKED)
def view_iternext(context: Any, builder: Any, sig: Any, args: Any, result: Any) -> None:
    (iter_type,) = sig.args
    proxy = context.make_helper(builder, iter_type, value=args[0])
    view = iter_type.view
    position = builder.load(proxy.next)
    size = builder.extract_value(view_proxy(context, builder, view, proxy.view).shape, 0)
    more = builder.icmp_signed("<", position, size)
    result.set_valid(more)
    with builder.if_then(more):
        builder.store(builder.add(position, ir.Constant(i64, 1), flags=("nsw",)), proxy.next)
        pointer, shape, strides = select(context, builder, view, proxy.view, INDEX, position)
        item = iter_type.yield_type
        if isinstance(item, ViewType):
            result.yield_(make_view(context, builder, item, pointer, shape, strides))
        else:
            result.yield_(load_element(context, builder, view, item, pointer))


def _view_cast(context: Any, builder: Any, fromty: ViewType, toty: ViewType, val: Any) -> Any:
    """Widening the leaves or forgetting contiguity changes the type only."""
    return val


for _cls in (ReadArrayType, MutableArrayType, RegionType, AccumulatorType):
    lower_cast(_cls, _cls)(_view_cast)
