"""The CUDA target: kernels on one NVIDIA GPU."""

from __future__ import annotations

from numba_offload.targets.cuda.compiler import ptx_for
from numba_offload.targets.cuda.driver import CUDADriver
from numba_offload.targets.cuda.libdevice import libdevice_inputs
from numba_offload.targets.gpu.target import GPUTarget
from numba_offload.targets.image import KernelImage
from numba_offload.targets.source import KernelSource


class CUDATarget(GPUTarget):
    """Runs kernels on an NVIDIA GPU.

    Raises TargetError, saying what is missing and how to install it, where there is none. ``driver`` stands in for the
    real one in tests.
    """

    name = "cuda"
    visible_devices = "CUDA_VISIBLE_DEVICES"

    def __init__(self, driver: CUDADriver | None = None) -> None:
        super().__init__(driver if driver is not None else CUDADriver())

    def inputs(self) -> tuple[str, ...]:
        return libdevice_inputs()

    def build(self, source: KernelSource) -> KernelImage:
        return ptx_for(source, self.arch)
