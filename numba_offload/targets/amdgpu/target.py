"""The AMD GPU target: kernels on one GPU through HIP."""

from __future__ import annotations

from numba_offload.targets.amdgpu.arch import TRIPLE
from numba_offload.targets.amdgpu.compiler import code_object_for
from numba_offload.targets.amdgpu.devicelibs import device_library_inputs
from numba_offload.targets.amdgpu.driver import HIPDriver
from numba_offload.targets.amdgpu.linker import linker_inputs
from numba_offload.targets.base import BuiltFor
from numba_offload.targets.gpu.target import GPUTarget
from numba_offload.targets.image import KernelImage
from numba_offload.targets.source import KernelSource


class AMDGPUTarget(GPUTarget):
    """Runs kernels on an AMD GPU.

    Raises TargetError, saying what is missing and how to install it, where there is none. ``driver`` stands in for the
    real one in tests.
    """

    name = "amdgpu"
    visible_devices = "HIP_VISIBLE_DEVICES"

    def __init__(self, driver: HIPDriver | None = None) -> None:
        super().__init__(driver if driver is not None else HIPDriver())

    def inputs(self) -> tuple[str, ...]:
        return (*device_library_inputs(), *linker_inputs())

    def build(self, source: KernelSource) -> KernelImage:
        return code_object_for(source, self.arch)

    def suits(self, code: BuiltFor) -> tuple[int, ...] | None:
        return (1,) if (code.kind, code.triple, code.arch) == ("object", TRIPLE, self.arch) else None
