"""The device pass for CUDA: PTX, and machine code, from a kernel's source. Needs neither a GPU nor a driver."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from llvmlite import ir
from numba.core.compiler_lock import global_compiler_lock

from numba_offload.targets.codegen import Machine
from numba_offload.targets.cuda.arch import DEFAULT_ARCH, TRIPLE, machine_for
from numba_offload.targets.cuda.context import LIBDEVICE_MATH, OffloadCUDA, OffloadCUDAContext
from numba_offload.targets.cuda.libdevice import load_libdevice
from numba_offload.targets.cuda.ptxas import assemble
from numba_offload.targets.gpu.compile import DeviceLibrary, build_module
from numba_offload.targets.image import KernelImage
from numba_offload.targets.lowering import device_toolchain
from numba_offload.targets.source import KernelSource
from numba_offload.targets.toolchain import Toolchain

_LIBDEVICE = DeviceLibrary("__nv_", load_libdevice)


def ptx_for(source: KernelSource, arch: str = DEFAULT_ARCH) -> KernelImage:
    """Compile a kernel for an architecture (``sm_80``, ``sm_90`` ...).

    Raises TargetError where the architecture is unknown, or the kernel calls what CUDA has not.
    """
    machine = machine_for(arch)
    module = build_module(source, cuda_toolchain(), machine, LIBDEVICE_MATH, _LIBDEVICE, _keep_denormals)
    return module.image("ptx", module.code.assembly().encode())


def cubin_for(source: KernelSource, arch: str = DEFAULT_ARCH) -> KernelImage:
    """Compile a kernel to machine code, which is for this architecture and newer ones of its major version.

    Raises TargetError as ``ptx_for`` does, and where NVIDIA's assembler is missing or refuses.
    """
    image = ptx_for(source, arch)
    return replace(image, kind="cubin", data=assemble(image.data, arch, source.name))


def _keep_denormals(module: ir.Module) -> None:
    """libdevice asks this flag whether to flush denormals to zero."""
    flag: list[Any] = [ir.Constant(ir.IntType(32), 4), "nvvm-reflect-ftz", ir.Constant(ir.IntType(32), 0)]
    module.add_named_metadata("llvm.module.flags", flag)


@global_compiler_lock
@cache
def cuda_toolchain() -> Toolchain:
    """CUDA's compiler, made once."""
    return device_toolchain("cuda", OffloadCUDA, OffloadCUDAContext, Machine(TRIPLE, DEFAULT_ARCH), True)
