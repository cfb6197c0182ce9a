"""The device pass for AMD GPUs: a code object from a kernel's source. Needs neither a GPU nor ROCm's runtime."""

from __future__ import annotations

from functools import cache
from typing import Any

from llvmlite import ir
from numba.core.compiler_lock import global_compiler_lock

from numba_offload.targets.amdgpu.arch import (
    CODE_OBJECT_VERSION,
    DEFAULT_ARCH,
    TRIPLE,
    architecture,
    machine_for,
)
from numba_offload.targets.amdgpu.context import AMD_MATH, OffloadAMDGPU, OffloadAMDGPUContext
from numba_offload.targets.amdgpu.devicelibs import load_device_libraries
from numba_offload.targets.amdgpu.linker import link_code_object
from numba_offload.targets.codegen import Machine
from numba_offload.targets.gpu.compile import DeviceLibrary, build_module
from numba_offload.targets.image import KernelImage
from numba_offload.targets.lowering import device_toolchain
from numba_offload.targets.source import KernelSource
from numba_offload.targets.toolchain import Toolchain


def code_object_for(source: KernelSource, arch: str = DEFAULT_ARCH) -> KernelImage:
    """Compile and link a kernel for an architecture (``gfx90a``, ``gfx942``, ``gfx1100``, ``gfx1201`` ...).

    The image is a shared ELF object, as HIP loads it.

    Raises TargetError where the architecture is unknown, the kernel calls what AMD's libraries have not, or a tool is missing.
    """
    machine = machine_for(arch)
    library = DeviceLibrary("__oc", lambda: load_device_libraries(architecture(arch)))
    module = build_module(source, amdgpu_toolchain(), machine, AMD_MATH, library, _set_version)
    return module.image("object", link_code_object(module.code.object_file(), source.name))


def _set_version(module: ir.Module) -> None:
    flag: list[Any] = [
        ir.Constant(ir.IntType(32), 1), "amdhsa_code_object_version", ir.Constant(ir.IntType(32), CODE_OBJECT_VERSION)
    ]  # fmt: skip
    module.add_named_metadata("llvm.module.flags", flag)


@global_compiler_lock
@cache
def amdgpu_toolchain() -> Toolchain:
    """AMD's compiler, made once."""
    return device_toolchain("amdgpu", OffloadAMDGPU, OffloadAMDGPUContext, Machine(TRIPLE, DEFAULT_ARCH), True)
