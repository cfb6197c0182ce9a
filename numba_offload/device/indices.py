"""Owned indices: where they come from, and what plain integers they become."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.extending import intrinsic, overload
from numba.core.imputils import RefType, impl_ret_borrowed, iternext_impl, lower_builtin, lower_cast
from numba.core.typing import signature

from numba_offload.device.access import i64, unpack, view_proxy
from numba_offload.device.models import INDEX, coordinate_type, index_tuple
from numba_offload.device.strategies import call_method
from numba_offload.device.types import (
    AxisIndicesIterType,
    AxisIndicesType,
    IndicesIterType,
    IndicesType,
    OwnedIndexType,
    RegionType,
)
from numba_offload.device.views import region_lattice


@lower_builtin("offload.indices", RegionType)
def region_indices(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    proxy = cgutils.create_struct_proxy(sig.return_type)(context, builder)
    proxy.region = args[0]
    return proxy._getvalue()


def _is_lattice(region: RegionType) -> bool:
    return hasattr(region.strategy.cls, "origin") and hasattr(region.strategy.cls, "local_shape")


def _has_step(region: RegionType) -> bool:
    return getattr(region.strategy.cls, "step", None) is not None


def _strategy_call(context: Any, builder: Any, region: RegionType, value: Any, name: str, *extra: Any) -> Any:
    proxy = view_proxy(context, builder, region, value)
    where = coordinate_type(region)
    if name == "count":
        argtypes: tuple[Any, ...] = (where, where, index_tuple(region.ndim))
        arguments = [proxy.t, proxy.T, proxy.shape]
    else:
        argtypes = (where, INDEX, where, index_tuple(region.ndim))
        arguments = [proxy.t, *extra, proxy.T, proxy.shape]
    return call_method(context, builder, region.strategy, name, proxy.strategy, argtypes, arguments)


@lower_builtin("getiter", IndicesType)
def indices_getiter(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    (indices_type,) = sig.args
    region = indices_type.region
    value = cgutils.create_struct_proxy(indices_type)(context, builder, value=args[0]).region
    iterator = context.make_helper(builder, sig.return_type)
    iterator.region = value
    iterator.next = cgutils.alloca_once(builder, i64)
    builder.store(ir.Constant(i64, 0), iterator.next)
    if region.ndim == 1 and _is_lattice(region):
        iterator.origin = region_lattice(context, builder, region, value, "origin")[0]
        iterator.count = region_lattice(context, builder, region, value, "local_shape")[0]
        if _has_step(region):
            iterator.step = region_lattice(context, builder, region, value, "step")[0]
        else:
            iterator.step = ir.Constant(i64, 1)
    else:
        count, ty = _strategy_call(context, builder, region, value, "count")
        iterator.count = context.cast(builder, count, ty, INDEX)
        iterator.origin = iterator.step = ir.Constant(i64, 0)
    return impl_ret_borrowed(context, builder, sig.return_type, iterator._getvalue())


@lower_builtin("iternext", IndicesIterType)
@iternext_impl(RefType.UNTRACKED)
def indices_iternext(context: Any, builder: Any, sig: Any, args: Any, result: Any) -> None:
    (iter_type,) = sig.args
    region = iter_type.region
    iterator = context.make_helper(builder, iter_type, value=args[0])
    slot = builder.load(iterator.next)
    more = builder.icmp_signed("<", slot, iterator.count)
    result.set_valid(more)
    with builder.if_then(more):
        builder.store(builder.add(slot, ir.Constant(i64, 1), flags=("nsw", "nuw")), iterator.next)
        if region.ndim == 1 and _is_lattice(region):
            moved = builder.mul(slot, iterator.step, flags=("nsw",)) if _has_step(region) else slot
            result.yield_(builder.add(iterator.origin, moved, flags=("nsw", "nuw")))
            return
        index, ty = _strategy_call(context, builder, region, iterator.region, "index", slot)
        if region.ndim == 1:
            if isinstance(ty, types.BaseTuple):
                index, ty = builder.extract_value(index, 0), ty[0]
            result.yield_(context.cast(builder, index, ty, INDEX))
        else:
            parts = [context.cast(builder, builder.extract_value(index, k), ty[k], INDEX) for k in range(region.ndim)]
            result.yield_(cgutils.pack_struct(builder, parts))


# ----------------------------------------------------------------------------- nested loops over several axes


def splits(ty: types.Type) -> bool:
    """Whether a loop over this value becomes nested loops, one per axis."""
    return isinstance(ty, IndicesType) and ty.region.ndim > 1 and _is_lattice(ty.region)


@intrinsic
def outer_axis(typingctx: Any, indices: Any) -> Any:
    """The outermost loop of ``indices()`` over several axes."""
    region = indices.region

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        value = cgutils.create_struct_proxy(sig.args[0])(context, builder, value=args[0]).region
        out = cgutils.create_struct_proxy(sig.return_type)(context, builder)
        out.region = value
        out.origin = cgutils.pack_array(builder, region_lattice(context, builder, region, value, "origin"))
        out.extent = cgutils.pack_array(builder, region_lattice(context, builder, region, value, "local_shape"))
        if _has_step(region):
            steps = region_lattice(context, builder, region, value, "step")
        else:
            steps = [ir.Constant(i64, 1)] * region.ndim
        out.step = cgutils.pack_array(builder, steps)
        return out._getvalue()

    return signature(AxisIndicesType(region, 0), indices), generate


@intrinsic
def inner_axis(typingctx: Any, outer: Any, prefix: Any) -> Any:
    """The loop inside ``outer`` at the indices ``prefix`` of the axes so far."""
    inner = AxisIndicesType(outer.region, outer.level + 1)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        given = cgutils.create_struct_proxy(sig.args[0])(context, builder, value=args[0])
        out = cgutils.create_struct_proxy(sig.return_type)(context, builder)
        out.region, out.origin, out.extent, out.step = given.region, given.origin, given.extent, given.step
        out.prefix = args[1]
        return out._getvalue()

    return signature(inner, outer, prefix), generate


@lower_builtin("getiter", AxisIndicesType)
def axis_getiter(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    iterator = context.make_helper(builder, sig.return_type)
    iterator.indices = args[0]
    iterator.next = cgutils.alloca_once(builder, i64)
    builder.store(ir.Constant(i64, 0), iterator.next)
    return impl_ret_borrowed(context, builder, sig.return_type, iterator._getvalue())


@lower_builtin("iternext", AxisIndicesIterType)
@iternext_impl(RefType.UNTRACKED)
def axis_iternext(context: Any, builder: Any, sig: Any, args: Any, result: Any) -> None:
    (iter_type,) = sig.args
    level, region = iter_type.level, iter_type.region
    iterator = context.make_helper(builder, iter_type, value=args[0])
    indices = cgutils.create_struct_proxy(AxisIndicesType(region, level))(context, builder, value=iterator.indices)
    slot = builder.load(iterator.next)
    more = builder.icmp_signed("<", slot, builder.extract_value(indices.extent, level))
    result.set_valid(more)
    with builder.if_then(more):
        builder.store(builder.add(slot, ir.Constant(i64, 1), flags=("nsw", "nuw")), iterator.next)
        if _has_step(region):
            slot = builder.mul(slot, builder.extract_value(indices.step, level), flags=("nsw",))
        here = builder.add(builder.extract_value(indices.origin, level), slot, flags=("nsw", "nuw"))
        so_far = unpack(builder, indices.prefix, level) if level else []
        values = [*so_far, here]
        if level == region.ndim - 1:
            result.yield_(cgutils.pack_struct(builder, values))
        else:
            result.yield_(cgutils.pack_array(builder, values))


# ------------------------------------------------------------------------------------- owned index as an integer


@lower_cast(OwnedIndexType, types.Number)
def owned_to_number(context: Any, builder: Any, fromty: Any, toty: Any, val: Any) -> Any:
    return context.cast(builder, val, INDEX, toty)


@lower_cast(OwnedIndexType, types.Boolean)
def owned_to_bool(context: Any, builder: Any, fromty: Any, toty: Any, val: Any) -> Any:
    return builder.icmp_signed("!=", val, ir.Constant(i64, 0))


@lower_cast(OwnedIndexType, OwnedIndexType)
def owned_to_owned(context: Any, builder: Any, fromty: Any, toty: Any, val: Any) -> Any:
    return val


@intrinsic
def plain_index(typingctx: Any, index: Any) -> Any:
    """An owned index as a plain integer."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return args[0]

    return signature(INDEX, index), generate


def _first_owned(*args: Any) -> bool:
    return any(isinstance(a, OwnedIndexType) for a in args)


@overload(int, strict=False)
def owned_int(x: Any) -> Any:
    if isinstance(x, OwnedIndexType):
        return lambda x: plain_index(x)
    return None


@overload(float, strict=False)
def owned_float(x: Any) -> Any:
    if isinstance(x, OwnedIndexType):
        return lambda x: float(plain_index(x))
    return None


@overload(bool, strict=False)
def owned_bool(x: Any) -> Any:
    if isinstance(x, OwnedIndexType):
        return lambda x: plain_index(x) != 0
    return None


@overload(abs, strict=False)
def owned_abs(x: Any) -> Any:
    if isinstance(x, OwnedIndexType):
        return lambda x: plain_index(x)
    return None


def _plain(x: Any) -> Any:
    raise NotImplementedError


@overload(_plain, strict=False)
def _plain_overload(x: Any) -> Any:
    if isinstance(x, OwnedIndexType):
        return lambda x: plain_index(x)
    return lambda x: x


@overload(min, strict=False)
def owned_min(a: Any, b: Any) -> Any:
    if _first_owned(a, b):
        return lambda a, b: min(_plain(a), _plain(b))
    return None


@overload(max, strict=False)
def owned_max(a: Any, b: Any) -> Any:
    if _first_owned(a, b):
        return lambda a, b: max(_plain(a), _plain(b))
    return None


@overload(divmod, strict=False)
def owned_divmod(a: Any, b: Any) -> Any:
    if _first_owned(a, b):
        return lambda a, b: divmod(_plain(a), _plain(b))
    return None
