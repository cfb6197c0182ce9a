"""The CUDA target: kernels on one NVIDIA GPU."""

from __future__ import annotations

from numba_offload.targets.base import BuiltFor
from numba_offload.targets.cuda.arch import TRIPLE, capability_of, runs_cubin
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
        self._cuda = driver if driver is not None else CUDADriver()
        super().__init__(self._cuda)

    def inputs(self) -> tuple[str, ...]:
        return libdevice_inputs()

    def build(self, source: KernelSource) -> KernelImage:
        return ptx_for(source, self.arch)

    def suits(self, code: BuiltFor) -> tuple[int, ...] | None:
        capability = capability_of(code.arch)
        if code.triple != TRIPLE or capability is None:
            return None
        device = self._cuda.capability
        if code.kind == "cubin" and runs_cubin(device, capability):
            return 2, *capability
        # The driver translates PTX for older architectures, which takes time at every load.
        return (1, *capability) if code.kind == "ptx" and capability <= device else None

    def described(self) -> str:
        return "cuda (compute capability {}.{})".format(*self._cuda.capability)
