"""NVIDIA's driver through ``cuda.bindings``: one device's primary context, and every return code looked at."""

from __future__ import annotations

import importlib
import math
from typing import Any

from numba_offload.errors import TargetError
from numba_offload.targets.base import DeviceLimits, Extent
from numba_offload.targets.cuda.arch import arch_for
from numba_offload.targets.gpu.driver import GPUDriver, LoadedFunction
from numba_offload.targets.gpu.native_lanes import NativeCopies, loaded_copies
from numba_offload.targets.image import KernelImage

_INSTALL = (
    "Install numba-offload[cuda13] (driver 580 and newer) or numba-offload[cuda12] (driver 525 and newer)"
)
_PORTABLE, _MAPPED = 1, 2  # CU_MEMHOSTALLOC_PORTABLE, CU_MEMHOSTALLOC_DEVICEMAP
_NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING
_LOG_BYTES = 16384
_LIBRARY = "libcuda.so.1"
_COPIES = ("cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuEventRecord", "cuEventQuery", "cuEventSynchronize")
"""As NativeCopies wants them."""
_BROKEN = {700, 702, 710, 714, 715, 716, 717, 718, 719}
"""Errors after which the context cannot be used (illegal address, launch failure ...)."""


def load_bindings() -> Any:
    """The module of driver functions. Raises TargetError with a remedy where it is not installed."""
    try:
        return importlib.import_module("cuda.bindings.driver")
    except Exception as error:
        raise TargetError(
            f"the CUDA target needs cuda.bindings, which cannot be imported ({error}). {_INSTALL}"
        ) from error


class CUDADriver(GPUDriver):
    """NVIDIA's driver for one device. ``api`` is ``cuda.bindings.driver``, or a stand-in for tests."""

    vendor = "CUDA"

    def __init__(self, api: Any = None, ordinal: int = 0) -> None:
        super().__init__()
        self.api = api if api is not None else load_bindings()
        self._library = _LIBRARY if api is None else None
        try:
            self.call("starting the driver", self.api.cuInit, 0)
            count = int(self.call("counting devices", self.api.cuDeviceGetCount))
        except TargetError as error:
            raise TargetError(f"the CUDA target does not work here: {error}") from error
        except Exception as error:  # the bindings look for the driver's library at the first call
            raise TargetError(
                f"the CUDA target found no NVIDIA driver ({error}). Install a driver for the GPU of this machine"
            ) from error
        if count == 0:
            raise TargetError("the CUDA target found a driver but no device; check CUDA_VISIBLE_DEVICES")
        self.count = count
        self.ordinal = ordinal
        self.device = self.call("opening the device", self.api.cuDeviceGet, ordinal)
        context = self.call("opening the device's context", self.api.cuDevicePrimaryCtxRetain, self.device)
        self._context = context
        self._context_handle = int(context)
        about = self.api.CUdevice_attribute
        self.capability = (
            self.attribute(about.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
            self.attribute(about.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
        )
        self.arch = arch_for(self.capability)
        self.limits = self._limits()

    def call(self, doing: str, function: Any, *args: Any) -> Any:
        """Call a driver function; its result, or TargetError saying what failed and what the driver calls it."""
        result = function(*args)
        if result[0]:
            raise self._failure(doing, result[0])
        return result[1] if len(result) > 1 else None

    def _failure(self, doing: str, code: Any) -> TargetError:
        return TargetError(f"CUDA: {doing} failed with {self.describe(code)}")

    def failure(self, doing: str, code: int) -> TargetError:
        return self._failure(doing, self.api.CUresult(code))

    def describe(self, code: Any) -> str:
        """An error code's name and text, and what to do where the context is lost."""
        name = self.api.cuGetErrorName(code)[1]
        text = self.api.cuGetErrorString(code)[1]
        said = f"{_text(name)} ({_text(text)})"
        if int(code) in _BROKEN:
            said += ". The device can no longer be used in this process; start it again"
        return said

    def attribute(self, which: Any) -> int:
        """A device attribute."""
        return int(self.call(f"asking for {which}", self.api.cuDeviceGetAttribute, which, self.device))

    def _limits(self) -> DeviceLimits:
        about = self.api.CUdevice_attribute

        def axes(what: str) -> Extent:
            x, y, z = (self.attribute(getattr(about, f"CU_DEVICE_ATTRIBUTE_MAX_{what}_DIM_{axis}")) for axis in "XYZ")
            return x, y, z

        grid = axes("GRID")
        per_block = self.attribute(about.CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)
        return DeviceLimits(per_block, axes("BLOCK"), grid, total_threads=min(2**63 - 1, math.prod(grid) * per_block))

    def current(self) -> _Current:
        return _Current(self)

    # -------------------------------------------------------------------------------------------------------- memory

    def allocate(self, nbytes: int) -> int:
        return int(self.call(f"allocating {nbytes} bytes", self.api.cuMemAlloc, nbytes))

    def free(self, address: int) -> None:
        self.call("freeing memory", self.api.cuMemFree, address)

    def allocate_mapped(self, nbytes: int) -> tuple[int, int]:
        host = int(self.call("allocating error records", self.api.cuMemHostAlloc, nbytes, _PORTABLE | _MAPPED))
        return host, int(self.call("mapping error records", self.api.cuMemHostGetDevicePointer, host, 0))

    def allocate_pinned(self, nbytes: int) -> int:
        return int(self.call(f"page-locking {nbytes} bytes", self.api.cuMemHostAlloc, nbytes, _PORTABLE))

    def free_pinned(self, address: int) -> None:
        self.call("freeing page-locked memory", self.api.cuMemFreeHost, address)

    def memory_info(self) -> tuple[int, int]:
        found = self.api.cuMemGetInfo()
        self.call("asking for free memory", lambda: found)
        return int(found[1]), int(found[2])

    def copy_to_device(self, destination: int, source: int, nbytes: int, stream: int) -> None:
        self.call("copying to the device", self.api.cuMemcpyHtoDAsync, destination, source, nbytes, stream)

    def copy_to_host(self, destination: int, source: int, nbytes: int, stream: int) -> None:
        self.call("copying to the host", self.api.cuMemcpyDtoHAsync, destination, source, nbytes, stream)

    def native_copies(self) -> NativeCopies | None:
        return loaded_copies(self._library, _COPIES) if self._library is not None else None

    def copy_within(self, destination: int, source: int, nbytes: int, stream: int) -> None:
        self.call("copying on the device", self.api.cuMemcpyDtoDAsync, destination, source, nbytes, stream)

    def page_locked(self, address: int) -> bool:
        which = self.api.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE
        return not self.api.cuPointerGetAttribute(which, address)[0]

    def ordinal_of(self, address: int) -> int | None:
        which = self.api.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        code, found = self.api.cuPointerGetAttribute(which, address)
        return None if code else int(found)

    # ------------------------------------------------------------------------------------------------------- kernels

    def load(self, image: KernelImage, name: str) -> LoadedFunction:
        module = self._load_module(image, name)
        function = self.call("finding the kernel", self.api.cuModuleGetFunction, module, image.entry.encode())
        most = self.api.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK
        threads = int(self.call("asking for a block's threads", self.api.cuFuncGetAttribute, most, function))
        return LoadedFunction(function, module, threads)

    def _load_module(self, image: KernelImage, name: str) -> Any:
        api = self.api
        log = bytearray(_LOG_BYTES)
        options = [
            api.CUjit_option.CU_JIT_ERROR_LOG_BUFFER,
            api.CUjit_option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        ]
        # PTX is text, and ends with a zero.
        code, module = api.cuModuleLoadDataEx(image.data + b"\0", len(options), options, [log, _LOG_BYTES])
        if code:
            said = bytes(log).split(b"\0", 1)[0].decode(errors="replace").strip()
            what = f"kernel {name!r}: the driver cannot load its {image.kind} for {image.arch}"
            raise TargetError(f"{what}: {self.describe(code)}\n{said}".rstrip())
        return module

    def launch(
        self, doing: str, function: Any, grid: Extent, block: Extent, stream: int, parameters: int
    ) -> None:
        self.call(doing, self.api.cuLaunchKernel, function, *grid, *block, 0, stream, parameters, 0)

    # ------------------------------------------------------------------------------------------------------- streams

    def wait(self, doing: str, stream: int | None) -> None:
        if stream is None:
            self.call(doing, self.api.cuCtxSynchronize)
        else:
            self.call(doing, self.api.cuStreamSynchronize, stream)

    def create_stream(self) -> int:
        return int(self.call("creating a stream", self.api.cuStreamCreate, _NON_BLOCKING))

    def create_event(self) -> Any:
        flag = self.api.CUevent_flags.CU_EVENT_DISABLE_TIMING
        return self.call("creating an event", self.api.cuEventCreate, int(flag))

    def record_event(self, event: Any, stream: int) -> None:
        self.call("ordering streams", self.api.cuEventRecord, event, stream)

    def wait_event(self, event: Any, stream: int) -> None:
        self.call("ordering streams", self.api.cuStreamWaitEvent, stream, event, 0)

    def await_event(self, doing: str, event: Any) -> None:
        self.call(doing, self.api.cuEventSynchronize, event)


class _Current:
    """The device's context, if the thread's is another one."""

    __slots__ = ("_driver", "_pushed")

    def __init__(self, driver: CUDADriver) -> None:
        self._driver = driver
        self._pushed = False

    def __enter__(self) -> None:
        driver = self._driver
        driver.check_process()
        found = driver.call("asking for the context", driver.api.cuCtxGetCurrent)
        if int(found) != driver._context_handle:
            driver.call("entering the context", driver.api.cuCtxPushCurrent, driver._context)
            self._pushed = True

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._pushed:
            self._driver.call("leaving the context", self._driver.api.cuCtxPopCurrent)


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
