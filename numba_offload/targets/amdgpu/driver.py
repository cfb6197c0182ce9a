"""AMD's HIP runtime through hip-python: one device. Not run on AMD hardware yet, so there is as little here as can be.

Every method is one call of the runtime whose return code is looked at. What the calls do was taken from HIP's
documentation; what surrounds them is ``targets/gpu``, which runs on NVIDIA's GPUs, and over an emulated device in the
tests.
"""

from __future__ import annotations

from typing import Any

from numba_offload.errors import TargetError
from numba_offload.targets.amdgpu.arch import architecture
from numba_offload.targets.base import DeviceLimits, Extent
from numba_offload.targets.gpu.driver import GPUDriver, LoadedFunction
from numba_offload.targets.gpu.native_lanes import NativeCopies, loaded_copies
from numba_offload.targets.image import KernelImage

_INSTALL = "Install numba-offload[rocm], and AMD's driver with ROCm's HIP runtime (libamdhip64)"
_PORTABLE, _MAPPED, _COHERENT = 0x1, 0x2, 0x40000000  # hipHostMallocPortable, ...Mapped, ...Coherent
_DISABLE_TIMING = 0x2  # hipEventDisableTiming
_NON_BLOCKING = 0x1  # hipStreamNonBlocking
_UNREGISTERED = 0  # hipMemoryTypeUnregistered
_LIBRARY = "libamdhip64.so"
_COPIES = ("hipMemcpyHtoDAsync", "hipMemcpyDtoHAsync", "hipEventRecord", "hipEventQuery", "hipEventSynchronize")
"""As NativeCopies wants them."""
_WORK_ITEMS = 2**32 - 1
"""The work-items of a dispatch are counted in 32 bits."""


def load_bindings() -> Any:
    """The module of HIP's functions. Raises TargetError with a remedy where it is not installed."""
    try:
        from hip import hip
    except Exception as error:
        raise TargetError(
            f"the AMD GPU target needs hip-python, which cannot be imported ({error}). {_INSTALL}"
        ) from error
    return hip


class HIPDriver(GPUDriver):
    """HIP for one device. ``api`` is ``hip.hip``, or a stand-in for tests."""

    vendor = "HIP"

    def __init__(self, api: Any = None, ordinal: int = 0) -> None:
        super().__init__()
        self.api = api if api is not None else load_bindings()
        self._library = _LIBRARY if api is None else None
        self.ordinal = ordinal
        self._structures_made_here = False
        try:
            self.call("starting the runtime", self.api.hipInit, 0)
            self.count = int(self.call("counting devices", self.api.hipGetDeviceCount))
            if self.count:
                self._ask_the_device()
        except TargetError as error:
            raise TargetError(f"the AMD GPU target does not work here: {error}") from error
        except Exception as error:  # the bindings look for the runtime's library at the first call
            raise TargetError(f"the AMD GPU target found no HIP runtime that it can use ({error}). {_INSTALL}") from error
        if self.count == 0:
            raise TargetError("the AMD GPU target found HIP but no device; check HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES")

    def _ask_the_device(self) -> None:
        doing = "asking for the device's properties"
        try:
            properties = self.call(doing, self.api.hipGetDeviceProperties, self.ordinal)
        except TypeError:
            # hip-python 7 fills in structures that it is given; later versions make and return them.
            self._structures_made_here = True
            properties = self.api.hipDeviceProp_t()
            self.call(doing, self.api.hipGetDeviceProperties, properties, self.ordinal)
        # "gfx90a:sramecc+:xnack-": code that names no feature runs with either setting.
        self.arch = architecture(_text(properties.gcnArchName).split(":")[0]).name
        self.limits = self._limits()
        # Without, the atomic operations of kernels on the host's memory are dropped by the bus, silently.
        self.host_atomics = bool(self._attribute("HostNativeAtomicSupported"))

    def call(self, doing: str, function: Any, *args: Any) -> Any:
        """Call a function of HIP; its result, or TargetError saying what failed and what HIP calls it."""
        result = function(*args)
        if int(result[0]):
            raise self._failure(doing, result[0])
        return result[1] if len(result) > 1 else None

    def _failure(self, doing: str, code: Any) -> TargetError:
        self.api.hipGetLastError()  # it is told here; other libraries of the process would take it for theirs
        return TargetError(f"HIP: {doing} failed with {self.describe(code)}")

    def failure(self, doing: str, code: int) -> TargetError:
        return self._failure(doing, self.api.hipError_t(code))

    def describe(self, code: Any) -> str:
        """An error code's name and text."""
        name, text = self.api.hipGetErrorName(code), self.api.hipGetErrorString(code)
        return f"{_text(name[1])} ({_text(text[1])})"

    def _limits(self) -> DeviceLimits:
        def axes(what: str) -> Extent:
            x, y, z = (self._attribute(f"Max{what}Dim{axis}") for axis in "XYZ")
            return x, y, z

        per_block = self._attribute("MaxThreadsPerBlock")
        return DeviceLimits(per_block, axes("Block"), axes("Grid"), threads_at_once=_WORK_ITEMS)

    def _attribute(self, name: str) -> int:
        which = getattr(self.api.hipDeviceAttribute_t, f"hipDeviceAttribute{name}")
        return int(self.call(f"asking for {name}", self.api.hipDeviceGetAttribute, which, self.ordinal))

    def current(self) -> _Current:
        return _Current(self)

    # -------------------------------------------------------------------------------------------------------- memory

    def allocate(self, nbytes: int) -> int:
        return int(self.call(f"allocating {nbytes} bytes", self.api.hipMalloc, nbytes))

    def free(self, address: int) -> None:
        self.call("freeing memory", self.api.hipFree, address)

    def allocate_mapped(self, nbytes: int) -> tuple[int, int]:
        flags = _PORTABLE | _MAPPED | _COHERENT
        host = int(self.call("allocating error records", self.api.hipHostMalloc, nbytes, flags))
        return host, int(self.call("mapping error records", self.api.hipHostGetDevicePointer, host, 0))

    def allocate_pinned(self, nbytes: int) -> int:
        return int(self.call(f"page-locking {nbytes} bytes", self.api.hipHostMalloc, nbytes, _PORTABLE))

    def free_pinned(self, address: int) -> None:
        self.call("freeing page-locked memory", self.api.hipHostFree, address)

    def memory_info(self) -> tuple[int, int]:
        found = self.api.hipMemGetInfo()
        self.call("asking for free memory", lambda: found)
        return int(found[1]), int(found[2])

    def copy_to_device(self, destination: int, source: int, nbytes: int, stream: int) -> None:
        self.call("copying to the device", self.api.hipMemcpyHtoDAsync, destination, source, nbytes, stream)

    def copy_to_host(self, destination: int, source: int, nbytes: int, stream: int) -> None:
        self.call("copying to the host", self.api.hipMemcpyDtoHAsync, destination, source, nbytes, stream)

    def native_copies(self) -> NativeCopies | None:
        return loaded_copies(self._library, _COPIES) if self._library is not None else None

    def copy_within(self, destination: int, source: int, nbytes: int, stream: int) -> None:
        self.call("copying on the device", self.api.hipMemcpyDtoDAsync, destination, source, nbytes, stream)

    def page_locked(self, address: int) -> bool:
        return self._about(address) is not None

    def ordinal_of(self, address: int) -> int | None:
        about = self._about(address)
        return None if about is None else int(about.device)

    def _about(self, address: int) -> Any:
        """What HIP knows of an address; None where it knows nothing."""
        if self._structures_made_here:
            about = self.api.hipPointerAttribute_t()
            (code,) = self.api.hipPointerGetAttributes(about, address)
        else:
            code, about = self.api.hipPointerGetAttributes(address)
        if int(code):
            self.api.hipGetLastError()  # not knowing is no failure, but HIP would remember it as one
            return None
        return None if int(about.type) == _UNREGISTERED else about

    # ------------------------------------------------------------------------------------------------------- kernels

    def load(self, image: KernelImage, name: str) -> LoadedFunction:
        self._check_arch(image, name)
        doing = f"loading kernel {name!r} for {image.arch}"
        module = self.call(doing, self.api.hipModuleLoadData, image.data)
        function = self.call(doing, self.api.hipModuleGetFunction, module, image.entry.encode())
        most = self.api.hipFunction_attribute.HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK
        return LoadedFunction(function, module, int(self.call(doing, self.api.hipFuncGetAttribute, most, function)))

    def _check_arch(self, image: KernelImage, name: str) -> None:
        if image.arch != self.arch:
            raise TargetError(
                f"kernel {name!r}: its code is for {image.arch}, but the device is {self.arch}, and AMD's architectures do not "
                "run each other's code; compile it for this one"
            )

    def launch(
        self, doing: str, function: Any, grid: Extent, block: Extent, stream: int, parameters: int
    ) -> None:
        self.call(doing, self.api.hipModuleLaunchKernel, function, *grid, *block, 0, stream, parameters, None)

    # ------------------------------------------------------------------------------------------------------- streams

    def wait(self, doing: str, stream: int | None) -> None:
        if stream is None:
            self.call(doing, self.api.hipDeviceSynchronize)
        else:
            self.call(doing, self.api.hipStreamSynchronize, stream)

    def create_stream(self) -> int:
        return int(self.call("creating a stream", self.api.hipStreamCreateWithFlags, _NON_BLOCKING))

    def create_event(self) -> Any:
        return self.call("creating an event", self.api.hipEventCreateWithFlags, _DISABLE_TIMING)

    def record_event(self, event: Any, stream: int) -> None:
        self.call("ordering streams", self.api.hipEventRecord, event, stream)

    def wait_event(self, event: Any, stream: int) -> None:
        self.call("ordering streams", self.api.hipStreamWaitEvent, stream, event, 0)

    def await_event(self, doing: str, event: Any) -> None:
        self.call(doing, self.api.hipEventSynchronize, event)


class _Current:
    """The device, if the thread uses another one."""

    __slots__ = ("_driver", "_previous")

    def __init__(self, driver: HIPDriver) -> None:
        self._driver = driver
        self._previous: int | None = None

    def __enter__(self) -> None:
        driver = self._driver
        driver.check_process()
        found = int(driver.call("asking for the current device", driver.api.hipGetDevice))
        if found != driver.ordinal:
            driver.call("choosing the device", driver.api.hipSetDevice, driver.ordinal)
            self._previous = found

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._previous is not None:
            self._driver.call("choosing the device", self._driver.api.hipSetDevice, self._previous)


def _text(value: Any) -> str:
    """Text of HIP's, as the bindings give it: bytes, or an object that makes them."""
    if isinstance(value, str):
        return value
    return bytes(value).split(b"\0", 1)[0].decode(errors="replace")
