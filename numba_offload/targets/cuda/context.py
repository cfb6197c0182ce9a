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
    record_scope = device_scope

    def hardware_thread(self, builder: Any, axis: int) -> Any:
        return _special_register(builder, f"tid.{'xyz'[axis]}")

    def hardware_block(self, builder: Any, axis: int) -> Any:
        return _special_register(builder, f"ctaid.{'xyz'[axis]}")

    def hardware_block_extent(self, builder: Any, axis: int) -> Any:
        return _special_register(builder, f"ntid.{'xyz'[axis]}")

    def halves(self, builder: Any, value: Any) -> tuple[Any, Any]:
        # Where PTX stores the low byte of a register that an arithmetic instruction on doubles defined, ptxas 13.0
        # stores the low byte of the double converted to an integer (seen on an H200: 2 for 2.5). LLVM cannot fold what
        # is unpacked in assembly back into that register.
        double = isinstance(value.type, ir.DoubleType)
        half = ir.IntType(32 if double else 16)
        kind, source = ("b64", "d") if double else ("b32", "f")
        place = "r" if double else "h"
        fnty = ir.FunctionType(ir.LiteralStructType([half, half]), [value.type])
        both = builder.asm(fnty, f"mov.{kind} {{$0, $1}}, $2;", f"={place},={place},{source}", [value], False)
        return builder.extract_value(both, 0), builder.extract_value(both, 1)


def _special_register(builder: Any, name: str) -> Any:
    fnty = ir.FunctionType(ir.IntType(32), [])
    read = cgutils.get_or_insert_function(builder.module, fnty, f"llvm.nvvm.read.ptx.sreg.{name}")
    return builder.zext(builder.call(read, []), i64)


def _libdevice_name(function: str, bits: int) -> str:
    return f"__nv_{function}{'f' if bits == 32 else ''}"


LIBDEVICE_MATH = MathLibrary("cuda", _libdevice_name)
"""libdevice follows the C library's names."""
