"""The CPU's kernel entries: loops over threads whose bounds are the guards, so that LLVM vectorises them.

``entry(args, dims, steps, data)`` has the signature of the work items of Numba's threading layer: ``args[0]`` is the
first chunk's number, ``dims[0]`` how many follow, ``data`` the packed arguments. The launch's threads are cut into
``chunks`` of consecutive ones.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types

from numba_offload.targets.callconv import STATE, i32, i64
from numba_offload.targets.entry import (
    LaunchTypes,
    LinearThread,
    Thread,
    assume,
    assume_threads_fit,
    call_body,
    declare_body,
    declare_entry,
    failed,
    record_failure,
)
from numba_offload.targets.layout import Slot

_zero = ir.Constant(i64, 0)
_one = ir.Constant(i64, 1)
_SLOT_BYTES = 8


def build_entry(
    context: Any,
    module: ir.Module,
    name: str,
    fndesc: Any,
    argtypes: tuple[types.Type, ...],
    layout: list[Slot],
    unsafe: bool,
    positions: bool,
    may_fail: bool,
    assumed: frozenset[Any],
) -> None:
    """Emit ``name`` and the loop it calls. ``positions``: threads need their coordinates, not just a linear id."""
    body = declare_body(context, module, fndesc)
    loop_name = f"{name}.threads"
    extra = [*LaunchTypes, i64, i64]  # the range of threads
    loop, builder, flat, rest = declare_entry(module, loop_name, layout, extra, unsafe)
    loop.linkage = "internal"
    loop.attributes.add("noinline")
    threads, block, record, low, high = rest[:3], rest[3:6], rest[6], rest[7], rest[8]
    for value in (low, *threads, *block):
        assume(builder, builder.icmp_signed(">=", value, _zero))
    state = cgutils.alloca_once(builder, STATE)

    def run(thread: Thread) -> None:
        assume_threads_fit(builder, layout, flat, argtypes, thread, assumed)
        code = call_body(context, builder, body, argtypes, flat, thread, state)
        if may_fail:
            with builder.if_then(failed(builder, code), likely=False):
                record_failure(builder, record, state, code)
                builder.ret_void()

    if positions:
        _grid_loop(builder, threads, block, low, high, run)
    else:
        total = builder.mul(builder.mul(threads[0], threads[1]), threads[2])
        with _counted(builder, low, high) as t:
            run(LinearThread([t, _zero, _zero], threads, block, t, total))
    builder.ret_void()
    _build_work_item(context, module, name, loop, layout)


class _counted:
    """``for i in range(low, high)`` with no wrap-around flagged, as a context manager."""

    def __init__(self, builder: Any, low: Any, high: Any) -> None:
        self.builder, self.low, self.high = builder, low, high

    def __enter__(self) -> Any:
        b = self.builder
        self.head = b.append_basic_block("threads.head")
        body = b.append_basic_block("threads.body")
        self.end = b.append_basic_block("threads.end")
        start = b.block
        b.branch(self.head)
        b.position_at_end(self.head)
        self.index = b.phi(self.low.type)
        self.index.add_incoming(self.low, start)
        b.cbranch(b.icmp_signed("<", self.index, self.high), body, self.end)
        b.position_at_end(body)
        return self.index

    def __exit__(self, *exc: Any) -> None:
        b = self.builder
        following = b.add(self.index, _one, flags=("nsw", "nuw"))
        self.index.add_incoming(following, b.block)
        b.branch(self.head)
        b.position_at_end(self.end)


def _grid_loop(builder: Any, threads: list[Any], block: list[Any], low: Any, high: Any, run: Any) -> None:
    """Threads ``low`` to ``high`` row by row: x innermost and consecutive."""
    tx, ty, _ = threads
    last = builder.sub(high, _one)
    first_row, last_row = builder.udiv(low, tx), builder.udiv(last, tx)
    with _counted(builder, first_row, builder.add(last_row, _one, flags=("nsw", "nuw"))) as row:
        y, z = builder.urem(row, ty), builder.udiv(row, ty)
        at_first, at_last = builder.icmp_signed("==", row, first_row), builder.icmp_signed("==", row, last_row)
        begin = builder.select(at_first, builder.urem(low, tx), _zero)
        end = builder.select(at_last, builder.add(builder.urem(last, tx), _one), tx)
        with _counted(builder, begin, end) as x:
            run(Thread([x, y, z], threads, block))


def _build_work_item(context: Any, module: ir.Module, name: str, loop: ir.Function, layout: list[Slot]) -> None:
    """Unpack the argument block and run the loop over the range that the threading layer hands out."""
    byte_pointer = ir.IntType(8).as_pointer()
    fnty = ir.FunctionType(
        ir.VoidType(), [byte_pointer.as_pointer(), i64.as_pointer(), i64.as_pointer(), byte_pointer]
    )
    function = ir.Function(module, fnty, name)
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    args, dims, _, data = function.args
    first = builder.ptrtoint(builder.load(args), i64)
    after = builder.add(first, builder.load(dims))
    parameters = loop.args[:-2]
    values = [_load_slot(builder, data, k, p.type) for k, p in enumerate(parameters)]
    total = _load_slot(builder, data, len(parameters), i64)
    chunks = _load_slot(builder, data, len(parameters) + 1, i64)
    size, rest = builder.udiv(total, chunks), builder.urem(total, chunks)

    def start_of(chunk: Any) -> Any:
        extra = builder.select(builder.icmp_unsigned("<", chunk, rest), chunk, rest)
        return builder.add(builder.mul(chunk, size), extra)

    builder.call(loop, [*values, start_of(first), start_of(after)])
    builder.ret_void()


def _load_slot(builder: Any, data: Any, number: int, ty: ir.Type) -> Any:
    raw = builder.gep(data, [ir.Constant(i32, number * _SLOT_BYTES)])
    return builder.load(builder.bitcast(raw, ty.as_pointer()))
