"""Lowering for NVIDIA GPUs: special registers, calling convention, names of mathematics."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils
from numba.core.target_extension import GPU

from numba_offload.targets.gpu.context import OffloadGPUContext, i64
from numba_offload.targets.gpu.mathlib import MathLibrary


class OffloadCUDA(GPU):
    """Numba's name for the target; implementations for GPUs and target-neutral ones apply."""


class OffloadCUDAContext(OffloadGPUContext):
    """See the module's text."""

    kernel_convention = "ptx_kernel"
    device_scope = "device"

    def hardware_thread(self, builder: Any, axis: int) -> Any:
        return _special_register(builder, f"tid.{'xyz'[axis]}")

    def hardware_block(self, builder: Any, axis: int) -> Any:
        return _special_register(builder, f"ctaid.{'xyz'[axis]}")

    def hardware_block_extent(self, builder: Any, axis: int) -> Any:
        return _special_register(builder, f"ntid.{'xyz'[axis]}")


def _special_register(builder: Any, name: str) -> Any:
    fnty = ir.FunctionType(ir.IntType(32), [])
    read = cgutils.get_or_insert_function(builder.module, fnty, f"llvm.nvvm.read.ptx.sreg.{name}")
    return builder.zext(builder.call(read, []), i64)


def _libdevice_name(function: str, bits: int) -> str:
    return f"__nv_{function}{'f' if bits == 32 else ''}"


LIBDEVICE_MATH = MathLibrary("cuda", _libdevice_name, frozenset())
"""libdevice follows the C library's names."""
