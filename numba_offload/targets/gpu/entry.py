"""A GPU's kernel entries: every hardware thread finds out who it is, and runs the body unless it is surplus."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types

from numba_offload.targets.callconv import STATE, i64, state_field
from numba_offload.targets.entry import (
    LAUNCH_PARAMETERS,
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
from numba_offload.targets.gpu.context import OffloadGPUContext
from numba_offload.targets.layout import Slot

GPU_LAUNCH_PARAMETERS = (
    *LAUNCH_PARAMETERS, "first.x", "first.y", "first.z", "origin.x", "origin.y", "origin.z"
)  # fmt: skip
"""Where one launch takes the device several: the coordinates of this one's first thread, and of its first block."""

GPU_LAUNCH_FORMAT = "13q"

_zero = ir.Constant(i64, 0)
_one = ir.Constant(i64, 1)


def build_entry(
    context: OffloadGPUContext,
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
    """Emit the kernel ``name``: the body's flat parameters, then ``GPU_LAUNCH_PARAMETERS``.

    ``positions``: threads need their coordinates. Without, the launch is laid out along x (see ``launch_shape``), and
    a thread reads a third of the registers and checks a third of the bounds.
    """
    body = declare_body(context, module, fndesc)
    kernel, builder, flat, rest = declare_entry(module, name, layout, [*LaunchTypes, *[i64] * 6], unsafe)
    kernel.calling_convention = context.kernel_convention
    for parameter, title in zip(rest, GPU_LAUNCH_PARAMETERS, strict=True):
        parameter.name = f"launch.{title}"
    threads, block, record, first, origin = rest[:3], rest[3:6], rest[6], rest[7:10], rest[10:13]
    # A record is nobody's argument: without this, LLVM must assume that storing a failure changes an array.
    record.add_attribute("noalias")
    state = cgutils.alloca_once(builder, STATE)
    for axis in range(3):
        builder.store(origin[axis], state_field(builder, state, "origin", axis))

    for value in (*first, *origin):
        assume(builder, builder.icmp_signed(">=", value, _zero))

    def position(axis: int) -> Any:
        return builder.add(context.hardware_position(builder, axis), first[axis], flags=("nsw", "nuw"))

    if positions:
        at = [position(axis) for axis in range(3)]
        inside = builder.icmp_signed("<", at[0], threads[0])
        for axis in (1, 2):
            inside = builder.and_(inside, builder.icmp_signed("<", at[axis], threads[axis]))
        thread = Thread(at, threads, block)
    else:
        linear = position(0)
        inside = builder.icmp_signed("<", linear, threads[0])
        thread = LinearThread([linear, _zero, _zero], [threads[0], _one, _one], block, linear, threads[0])
    with builder.if_then(inside):
        assume_threads_fit(builder, layout, flat, argtypes, thread, assumed)
        code = call_body(context, builder, body, argtypes, flat, thread, state)
        if may_fail:
            with builder.if_then(failed(builder, code), likely=False):
                record_failure(builder, record, state, code, scope=context.record_scope)
    builder.ret_void()
