"""Kernel entries: take flat parameters, build the views of a thread, run the kernel's body, record a failure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types

from numba_offload.device.models import coordinate_type
from numba_offload.device.types import RegionType, StrategyType, ViewType
from numba_offload.errors import TargetError
from numba_offload.targets.callconv import PAYLOAD_SLOTS, i32, i64, state_field
from numba_offload.targets.layout import POINTER, Slot, entry_layout, llvm_layout, slots
from numba_offload.targets.options import THREADS_FIT

ERROR_RECORD = ir.LiteralStructType(
    [i32, i32, i32, i32, ir.ArrayType(i64, PAYLOAD_SLOTS), ir.ArrayType(i64, 3), ir.ArrayType(i64, 3)]
)
"""claimed, site, line, padding; payload; position of the thread; extents of the block."""

ERROR_RECORD_FORMAT = "iiii3q3q3q"

LAUNCH_PARAMETERS = ("threads.x", "threads.y", "threads.z", "block.x", "block.y", "block.z", "error")
"""What follows a kernel's own parameters."""

_zero = ir.Constant(i64, 0)
_one = ir.Constant(i64, 1)


@dataclass
class Thread:
    """Who a thread is, as i64 values: position, logical extents and block extents along x, y, z."""

    position: list[Any]
    threads: list[Any]
    block: list[Any]

    def linear(self, builder: Any) -> tuple[Any, Any]:
        """Linear id and number of threads."""
        x, y, z = self.position
        tx, ty, tz = self.threads
        t = builder.add(builder.mul(builder.add(builder.mul(z, ty), y), tx), x)
        return t, builder.mul(builder.mul(tx, ty), tz)

    def in_blocks(self, builder: Any) -> tuple[Any, Any, Any, Any]:
        """Linear block, linear lane, number of blocks, threads of a block."""
        x, y, z = (builder.udiv(p, b) for p, b in zip(self.position, self.block, strict=True))
        gx, gy, gz = (
            builder.udiv(builder.sub(builder.add(t, b), _one), b)
            for t, b in zip(self.threads, self.block, strict=True)
        )
        lx, ly, lz = (builder.urem(p, b) for p, b in zip(self.position, self.block, strict=True))
        bx, by, bz = self.block
        block = builder.add(builder.mul(builder.add(builder.mul(z, gy), y), gx), x)
        lane = builder.add(builder.mul(builder.add(builder.mul(lz, by), ly), bx), lx)
        return block, lane, builder.mul(builder.mul(gx, gy), gz), builder.mul(builder.mul(bx, by), bz)


@dataclass
class LinearThread(Thread):
    """A thread of a launch along x only, whose linear id is already known."""

    id: Any = None
    total: Any = None

    def linear(self, builder: Any) -> tuple[Any, Any]:
        return self.id, self.total


def _strategy_value(context: Any, builder: Any, ty: StrategyType, flat: Iterator[Any]) -> Any:
    from numba_offload.device.models import index_array_type

    proxy = cgutils.create_struct_proxy(ty)(context, builder)
    for name in ty.runtime:
        setattr(proxy, f"r_{name}", next(flat))
    for name in ty.index_arrays:
        array = cgutils.create_struct_proxy(index_array_type())(context, builder)
        array.data = builder.bitcast(next(flat), array.data.type)
        array.shape = cgutils.pack_array(builder, [next(flat)], i64)
        array.strides = cgutils.pack_array(builder, [ir.Constant(i64, 8)], i64)
        setattr(proxy, f"a_{name}", array._getvalue())
    for name, nested in ty.nested:
        setattr(proxy, f"n_{name}", _strategy_value(context, builder, nested, flat))
    return proxy._getvalue()


def _view_value(context: Any, builder: Any, ty: ViewType, flat: Iterator[Any], thread: Thread) -> Any:
    proxy = cgutils.create_struct_proxy(ty)(context, builder)
    proxy.data = builder.bitcast(next(flat), proxy.data.type)
    shape = [next(flat) for _ in range(ty.ndim)]
    itemsize = ir.Constant(i64, context.get_abi_sizeof(context.get_data_type(ty.dtype)))
    if ty.layout == "C":
        strides: list[Any] = []
        step = itemsize
        for extent in reversed(shape):
            strides.insert(0, step)
            step = builder.mul(step, extent)
    else:
        strides = [next(flat) for _ in range(ty.ndim)]
        if ty.layout == "I" and ty.ndim:
            strides[-1] = itemsize
    proxy.shape = cgutils.pack_array(builder, shape, i64)
    proxy.strides = cgutils.pack_array(builder, strides, i64)
    if isinstance(ty, RegionType):
        if ty.coordinates == "linear":
            proxy.t, proxy.T = thread.linear(builder)
        elif ty.coordinates == "block":
            block, lane, blocks, size = thread.in_blocks(builder)
            proxy.t = cgutils.pack_array(builder, [block, lane], i64)
            proxy.T = cgutils.pack_array(builder, [blocks, size], i64)
        else:
            assert coordinate_type(ty).count == ty.ndim
            proxy.t = cgutils.pack_array(builder, thread.position[: ty.ndim][::-1], i64)
            proxy.T = cgutils.pack_array(builder, thread.threads[: ty.ndim][::-1], i64)
        proxy.strategy = _strategy_value(context, builder, ty.strategy, flat)
    return proxy._getvalue()


def build_value(context: Any, builder: Any, ty: types.Type, flat: Iterator[Any], thread: Thread) -> Any:
    """An argument of the kernel's body from the entry's flat parameters."""
    ty = types.unliteral(ty)
    if isinstance(ty, ViewType):
        return _view_value(context, builder, ty, flat, thread)
    if isinstance(ty, StrategyType):
        return _strategy_value(context, builder, ty, flat)
    if isinstance(ty, types.BaseTuple):
        parts = [build_value(context, builder, part, flat, thread) for part in ty]
        return context.make_tuple(builder, ty, parts)
    if isinstance(ty, types.Complex):
        value = context.make_complex(builder, ty)
        value.real, value.imag = next(flat), next(flat)
        return value._getvalue()
    if ty == types.none:
        return context.get_dummy_value()
    value = next(flat)
    return builder.trunc(value, ir.IntType(1)) if ty == types.boolean else value


def flat_slots(names: tuple[str, ...], argtypes: tuple[types.Type, ...]) -> list[Slot]:
    """The slots of all arguments of a kernel."""
    return [slot for name, ty in zip(names, argtypes, strict=True) for slot in slots(ty, name)]


_TYPES: dict[str, ir.Type] = {
    POINTER: ir.IntType(8).as_pointer(),
    "double": ir.DoubleType(),
    "float": ir.FloatType(),
    **{f"i{width}": ir.IntType(width) for width in (8, 16, 32, 64)},
}
"""Of what an entry's parameters may be."""


def mark_pointers(function: ir.Function, layout: list[Slot], unsafe: bool) -> None:
    """What alias check and types promise about data pointers, told to LLVM."""
    if unsafe:
        return
    for argument, slot in zip(function.args, layout, strict=False):
        if slot.llvm == POINTER:
            argument.add_attribute("noalias")


def assume(builder: Any, condition: Any) -> None:
    """Tell LLVM what the host has established."""
    module = builder.module
    fnty = ir.FunctionType(ir.VoidType(), [ir.IntType(1)])
    builder.call(cgutils.get_or_insert_function(module, fnty, "llvm.assume"), [condition])


def assume_extents(builder: Any, layout: list[Slot], flat: list[Any]) -> None:
    """Extents are never negative."""
    for slot, value in zip(layout, flat, strict=True):
        if ".shape[" in slot.name:
            assume(builder, builder.icmp_signed(">=", value, _zero))


def assume_threads_fit(
    builder: Any, layout: list[Slot], flat: list[Any], argtypes: Any, thread: Thread, assumed: frozenset[Any]
) -> None:
    """This thread's coordinates lie within the Regions, and its id within the index arrays, that the host has settled."""
    extents = {slot.name: value for slot, value in zip(layout, flat, strict=True)}
    for region in _regions(argtypes):
        if len(region.leaves) != 1:
            continue
        (leaf,) = region.leaves
        within: list[tuple[Any, Any]] = []
        if (THREADS_FIT, leaf) in assumed:
            if region.coordinates == "linear":
                within.append((thread.linear(builder)[0], extents[f"{leaf}.shape[0]"]))
            else:
                shape = [extents[f"{leaf}.shape[{k}]"] for k in range(region.ndim)]
                within += zip(thread.position[: region.ndim][::-1], shape, strict=True)
        for name in region.strategy.index_arrays:
            array = f"{leaf}.strategy.{name}"
            if (THREADS_FIT, array) in assumed:
                within.append((thread.linear(builder)[0], extents[f"{array}.size"]))
        for position, extent in within:
            assume(builder, builder.icmp_signed("<", position, extent))


def _regions(argtypes: Any) -> Iterator[RegionType]:
    for ty in argtypes:
        if isinstance(ty, RegionType):
            yield ty
        elif isinstance(ty, types.BaseTuple):
            yield from _regions(tuple(ty))


def call_body(
    context: Any, builder: Any, body: Any, argtypes: Any, flat: list[Any], thread: Thread, state: Any
) -> Any:
    """Build one thread's arguments and run the kernel's body; returns the status code."""
    for axis in range(3):
        builder.store(thread.position[axis], state_field(builder, state, "position", axis))
        builder.store(thread.threads[axis], state_field(builder, state, "threads", axis))
        builder.store(thread.block[axis], state_field(builder, state, "block", axis))
    builder.store(ir.Constant(i32, 0), state_field(builder, state, "line"))
    values = iter(flat)
    args = [build_value(context, builder, ty, values, thread) for ty in argtypes]
    packed = context.get_arg_packer(argtypes).as_arguments(builder, args)
    result = cgutils.alloca_once(builder, body.function_type.args[0].pointee)
    return builder.call(body, [result, state, *packed])


def failed(builder: Any, code: Any) -> Any:
    """Whether a status code is a failure: neither 0 (ok) nor -2 (returned None)."""
    ok = builder.or_(
        builder.icmp_signed("==", code, ir.Constant(i32, 0)), builder.icmp_signed("==", code, ir.Constant(i32, -2))
    )
    return builder.not_(ok)


def _claim(builder: Any, flag: Any, scope: str) -> Any:
    """Whether this thread is the first to set a flag."""
    zero, one = ir.Constant(i32, 0), ir.Constant(i32, 1)
    # llvmlite prints the ordering as it is, and knows no scopes.
    ordering = f'syncscope("{scope}") monotonic' if scope else "monotonic"
    return builder.extract_value(builder.cmpxchg(flag, zero, one, ordering, "monotonic"), 1)


def record_failure(builder: Any, record: Any, state: Any, code: Any, scope: str = "") -> None:
    """The first thread to fail claims the launch's error record and fills it in.

    ``scope`` names the threads that may fail together, in LLVM's words for the target ("": the whole system).
    """
    zero32 = ir.Constant(i32, 0)

    def field(*path: int) -> Any:
        return builder.gep(record, [zero32, *(ir.Constant(i32, p) for p in path)], inbounds=True)

    with builder.if_then(_claim(builder, field(0), scope)):
        builder.store(code, field(1))
        builder.store(builder.load(state_field(builder, state, "line")), field(2))
        for slot in range(PAYLOAD_SLOTS):
            builder.store(builder.load(state_field(builder, state, "payload", slot)), field(4, slot))
        for axis in range(3):
            builder.store(builder.load(state_field(builder, state, "position", axis)), field(5, axis))
            builder.store(builder.load(state_field(builder, state, "block", axis)), field(6, axis))


def entry_name(kernel: str) -> str:
    """A kernel's name as every assembler takes it."""
    return "kernel_" + re.sub(r"\W", "_", kernel, flags=re.ASCII)


def declare_body(context: Any, module: ir.Module, fndesc: Any) -> ir.Function:
    """The kernel's body, for inlining into its entry."""
    body = context.declare_function(module, fndesc)
    body.attributes.add("alwaysinline")
    return body


def declare_entry(
    module: ir.Module, name: str, layout: list[Slot], extra: list[ir.Type], unsafe: bool
) -> tuple[ir.Function, Any, list[Any], list[Any]]:
    """An entry function with flat parameters; returns it, a builder, its flat values and the extra ones."""
    fnty = ir.FunctionType(ir.VoidType(), [_TYPES[s.llvm] for s in layout] + extra)
    function = ir.Function(module, fnty, name)
    for argument, slot in zip(function.args, layout, strict=False):
        argument.name = slot.name.replace("[", ".").replace("]", "")
    have, want = entry_layout(function.args[: len(layout)]), llvm_layout(layout)
    if have != want:
        raise TargetError(
            f"kernel entry {name!r}: this target lays its arguments out as {have}, but the host packs {want}; the kernel was "
            "not compiled"
        )
    mark_pointers(function, layout, unsafe)
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    flat = list(function.args[: len(layout)])
    assume_extents(builder, layout, flat)
    return function, builder, flat, list(function.args[len(layout) :])


LaunchTypes = [i64] * 6 + [ERROR_RECORD.as_pointer()]


def needs_positions(argtypes: Iterable[types.Type]) -> bool:
    """Whether an argument's strategy wants a thread's coordinates rather than its linear id."""
    for ty in argtypes:
        if isinstance(ty, types.BaseTuple):
            if needs_positions(tuple(ty)):
                return True
        elif getattr(ty, "coordinates", "linear") != "linear":
            return True
    return False
