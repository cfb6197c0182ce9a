"""Where a thread is in its launch: the indexing names of CUDA, on every target."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import RequireLiteralValue
from numba.core.extending import intrinsic, typeof_impl
from numba.core.imputils import lower_constant, lower_getattr_generic
from numba.core.typing import signature
from numba.core.typing.templates import AttributeTemplate, infer_getattr

from numba_offload.device.access import i64
from numba_offload.device.models import INDEX, index_tuple
from numba_offload.device.types import Dim3Type


class Dim3:
    """``threadIdx``, ``blockIdx``, ``blockDim`` or ``gridDim``: in kernel code it has ``.x``, ``.y`` and ``.z``."""

    def __init__(self, which: str) -> None:
        self.which = which

    def __repr__(self) -> str:
        return f"<{self.which} of kernel code>"


THREAD_INDEX, BLOCK_INDEX, BLOCK_EXTENT, GRID_EXTENT = (
    Dim3(name) for name in ("threadIdx", "blockIdx", "blockDim", "gridDim")
)


@typeof_impl.register(Dim3)
def typeof_dim3(value: Dim3, c: Any) -> types.Type:
    return Dim3Type(value.which)


@infer_getattr
class Dim3Attributes(AttributeTemplate):
    """``threadIdx.x``."""

    key = Dim3Type

    def generic_resolve(self, ty: Dim3Type, attr: str) -> types.Type | None:
        return INDEX if attr in ("x", "y", "z") else None


@lower_constant(Dim3Type)
def dim3_constant(context: Any, builder: Any, ty: Any, value: Any) -> Any:
    return context.get_dummy_value()


@lower_getattr_generic(Dim3Type)
def dim3_getattr(context: Any, builder: Any, ty: Dim3Type, value: Any, attr: str) -> Any:
    axis = "xyz".index(attr)
    if ty.which == "threadIdx":
        return context.thread_in_block(builder, axis)
    if ty.which == "blockIdx":
        return context.block_in_grid(builder, axis)
    if ty.which == "blockDim":
        return context.thread_value(builder, "block", axis)
    return blocks_along(context, builder, axis)


def blocks_along(context: Any, builder: Any, axis: int) -> Any:
    """Blocks of the launch along an axis."""
    threads = context.thread_value(builder, "threads", axis)
    block = context.thread_value(builder, "block", axis)
    return builder.udiv(builder.sub(builder.add(threads, block), ir.Constant(i64, 1)), block)


def _axes(ndim: Any, name: str) -> int:
    if not isinstance(ndim, types.IntegerLiteral):
        raise RequireLiteralValue(f"{name}(ndim) takes a literal 1, 2 or 3")
    if ndim.literal_value not in (1, 2, 3):
        raise RequireLiteralValue(f"{name}({ndim.literal_value}): ndim is 1, 2 or 3")
    return int(ndim.literal_value)


def _positions(field: str, name: str) -> Any:
    def typed(typingctx: Any, ndim: Any) -> Any:
        axes = _axes(ndim, name)

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            values = [context.thread_value(builder, field, axis) for axis in range(axes)]
            return values[0] if axes == 1 else cgutils.pack_array(builder, values)

        return signature(INDEX if axes == 1 else index_tuple(axes), ndim), generate

    return typed


@intrinsic(prefer_literal=True)
def grid(typingctx: Any, ndim: Any) -> Any:
    """This thread's position in the launch: an int for ``grid(1)``, else a tuple (x, y[, z])."""
    return _positions("position", "grid")(typingctx, ndim)


@intrinsic(prefer_literal=True)
def gridsize(typingctx: Any, ndim: Any) -> Any:
    """The launch's extents in threads: an int for ``gridsize(1)``, else a tuple (x, y[, z])."""
    return _positions("threads", "gridsize")(typingctx, ndim)
