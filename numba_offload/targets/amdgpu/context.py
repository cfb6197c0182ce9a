"""Lowering for AMD GPUs: work-item and work-group ids, calling convention, private memory, names of mathematics."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba.core import cgutils
from numba.core.target_extension import GPU

from numba_offload.targets.gpu.context import OffloadGPUContext, i64
from numba_offload.targets.gpu.mathlib import MathLibrary

_HIDDEN_GROUP_SIZE = 12
"""Bytes into the implicit arguments of code object version 5: three 16-bit extents of the block."""


class OffloadAMDGPU(GPU):
    """Numba's name for the target; implementations for GPUs and target-neutral ones apply."""


class OffloadAMDGPUContext(OffloadGPUContext):
    """See the module's text."""

    kernel_convention = "amdgpu_kernel"
    device_scope = "agent"
    corrects_angles = True
    constant_addrspace = 4
    # Caches of the device may hold a line for its own scope; the host's memory is everybody's.
    record_scope = ""

    def hardware_thread(self, builder: Any, axis: int) -> Any:
        return _id(builder, f"workitem.id.{'xyz'[axis]}")

    def hardware_block(self, builder: Any, axis: int) -> Any:
        return _id(builder, f"workgroup.id.{'xyz'[axis]}")

    def hardware_block_extent(self, builder: Any, axis: int) -> Any:
        constant = ir.PointerType(ir.IntType(8), addrspace=4)
        fnty = ir.FunctionType(constant, [])
        implicit = cgutils.get_or_insert_function(builder.module, fnty, "llvm.amdgcn.implicitarg.ptr")
        offset = ir.Constant(i64, _HIDDEN_GROUP_SIZE + 2 * axis)
        at = builder.gep(builder.call(implicit, []), [offset], inbounds=True)
        extent = builder.load(builder.bitcast(at, ir.PointerType(ir.IntType(16), addrspace=4)))
        return builder.zext(extent, i64)


def _id(builder: Any, name: str) -> Any:
    read = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(ir.IntType(32), []), f"llvm.amdgcn.{name}"
    )
    return builder.zext(builder.call(read, []), i64)


_ALLOCA = re.compile(r'^(\s*)%("?)([^"\s]+)\2 = alloca ([^\n]+)$', re.MULTILINE)


def private_allocas(text: str) -> str:
    """A module's text with its stack slots in private memory (address space 5), where the back end wants them.

    Each slot keeps its name as a pointer of any address space; inlining and LLVM's own inference undo the detour.
    """

    def moved(match: re.Match[str]) -> str:
        indent, quote, bare, rest = match.groups()
        name, slot = f"%{quote}{bare}{quote}", f"%{quote}{bare}.private{quote}"
        ty, comma, alignment = rest.partition(", align")
        return (
            f"{indent}{slot} = alloca {ty}{comma}{alignment}, addrspace(5)\n"
            f"{indent}{name} = addrspacecast ptr addrspace(5) {slot} to ptr"
        )

    return _ALLOCA.sub(moved, text)


@dataclass(frozen=True)
class OCML(MathLibrary):
    """ROCm's mathematics."""

    def rename(self, text: str) -> str:
        return private_allocas(super().rename(text))


_OTHER_NAMES = {"powi": "pown"}


def _ocml_name(function: str, bits: int) -> str:
    return f"__ocml_{_OTHER_NAMES.get(function, function)}_f{bits}"


AMD_MATH = OCML(
    "amdgpu",
    _ocml_name,
    frozenset({"ldexp", "frexp", "exp.f32", "exp2.f32", "log.f32", "log2.f32", "log10.f32"}),
    frozenset({"expm1", "log1p"}),
)
