"""A stand-in for the functions of hip-python that the AMD GPU target calls: an emulated device on the host's memory.

A launch executes the code object that was loaded. Every allocation lies between guards, which are looked at after each
launch and when it is freed.
"""

from __future__ import annotations

import ctypes
from enum import IntEnum
from types import SimpleNamespace
from typing import Any

from emulation.emulator import LoadedCodeObject

_GUARD = b"\xa5" * 64


class Code(IntEnum):
    hipSuccess = 0
    hipErrorInvalidValue = 1
    hipErrorOutOfMemory = 2
    hipErrorInvalidImage = 200
    hipErrorNotFound = 500


OK = Code.hipSuccess
_NO_DEVICE = -2  # hipInvalidDeviceId
_LIMITS = {
    "MaxThreadsPerBlock": 1024,
    "MaxBlockDimX": 1024, "MaxBlockDimY": 1024, "MaxBlockDimZ": 1024,
    "MaxGridDimX": 2**31 - 1, "MaxGridDimY": 65535, "MaxGridDimZ": 65535, "HostNativeAtomicSupported": 1,
}  # fmt: skip


class EmulatedHIP:
    """``api`` of a HIPDriver for one emulated device. ``calls`` names every function called, in order.

    ``fail`` makes a function return a code; ``on_launch`` replaces execution. ``fills``: as hip-python 7, it fills in
    structures that it is given.
    """

    hipDeviceProp_t = hipPointerAttribute_t = SimpleNamespace

    hipDeviceAttribute_t = SimpleNamespace(**{f"hipDeviceAttribute{name}": name for name in _LIMITS})
    hipFunction_attribute = SimpleNamespace(
        HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK="threads",
    )

    def __init__(self, arch: str, devices: int = 1, fills: bool = False) -> None:
        self.arch = arch
        self.fills = fills
        self.limits = dict(_LIMITS)
        self.last_error = Code.hipSuccess
        self.devices = devices
        self.streams = 0
        self.total = 64 << 30
        self.calls: list[str] = []
        self.fail: dict[str, Code] = {}
        self.live: dict[int, tuple[Any, int]] = {}
        self.pinned: dict[int, Any] = {}
        self.current = 0
        self.events: list[tuple[str, int]] = []
        self.launches: list[SimpleNamespace] = []
        self.on_launch: Any = None

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("hip"):
            raise AttributeError(name)
        function = getattr(self, f"_{name}")

        def call(*args: Any) -> Any:
            self.calls.append(name)
            code = self.fail.get(name)
            result = (code, None) if code else function(*args)
            self.last_error = result[0] or self.last_error
            return result

        def fill(structure: SimpleNamespace, *args: Any) -> Any:
            code, made = call(*args)
            structure.__dict__.update(vars(made) if made else {})
            return (code,)

        return fill if self.fills and name in ("hipGetDeviceProperties", "hipPointerGetAttributes") else call

    def hipGetLastError(self) -> Any:
        """The last failure, which is forgotten."""
        told, self.last_error = self.last_error, Code.hipSuccess
        return (told,)

    def _hipInit(self, flags: int) -> Any:
        return (OK,)

    def _hipGetDeviceCount(self) -> Any:
        return OK, self.devices

    def _hipGetDeviceProperties(self, ordinal: int) -> Any:
        return OK, SimpleNamespace(gcnArchName=f"{self.arch}:sramecc+:xnack-")

    def _hipDeviceGetAttribute(self, which: str, ordinal: int) -> Any:
        return OK, self.limits[which]

    def _hipGetDevice(self) -> Any:
        return OK, self.current

    def _hipSetDevice(self, ordinal: int) -> Any:
        self.current = ordinal
        return (OK,)

    def _hipGetErrorName(self, code: Code) -> Any:
        return OK, Code(code).name.encode()

    def _hipGetErrorString(self, code: Code) -> Any:
        return OK, b"said the runtime"

    def _hipMalloc(self, nbytes: int) -> Any:
        storage = ctypes.create_string_buffer(nbytes + 3 * len(_GUARD))
        start = ctypes.addressof(storage)
        address = (start + 2 * len(_GUARD) - 1) & ~(len(_GUARD) - 1)
        for guard in (address - len(_GUARD), address + nbytes):
            ctypes.memmove(guard, _GUARD, len(_GUARD))
        self.live[address] = (storage, nbytes)
        return OK, address

    def _hipFree(self, address: int) -> Any:
        self._check_guards(address)
        del self.live[address]
        return (OK,)

    def _check_guards(self, address: int) -> None:
        nbytes = self.live[address][1]
        for guard in (address - len(_GUARD), address + nbytes):
            assert ctypes.string_at(guard, len(_GUARD)) == _GUARD, "a kernel or a copy wrote outside an allocation"

    def _hipHostMalloc(self, nbytes: int, flags: int) -> Any:
        storage = ctypes.create_string_buffer(nbytes)
        self.pinned[ctypes.addressof(storage)] = storage
        return OK, ctypes.addressof(storage)

    def _hipHostFree(self, address: int) -> Any:
        del self.pinned[address]
        return (OK,)

    def _hipMemGetInfo(self) -> Any:
        used = sum(nbytes for _, nbytes in self.live.values())
        return OK, self.total - used, self.total

    def _hipStreamCreateWithFlags(self, flags: int) -> Any:
        self.streams += 1
        return OK, 100 + self.streams

    def _hipEventSynchronize(self, event: str) -> Any:
        return (OK,)

    def _hipEventQuery(self, event: str) -> Any:
        return (OK,)

    def _hipHostGetDevicePointer(self, address: int, flags: int) -> Any:
        return OK, address

    def _hipMemcpyHtoDAsync(self, destination: int, source: int, nbytes: int, stream: int) -> Any:
        ctypes.memmove(destination, source, nbytes)
        return (OK,)

    def _hipMemcpyDtoHAsync(self, destination: int, source: int, nbytes: int, stream: int) -> Any:
        ctypes.memmove(destination, source, nbytes)
        return (OK,)

    def _hipMemcpyDtoDAsync(self, destination: int, source: int, nbytes: int, stream: int) -> Any:
        ctypes.memmove(destination, source, nbytes)
        return (OK,)

    def _hipPointerGetAttributes(self, address: int) -> Any:
        if any(start <= address < start + len(block) for start, block in self.pinned.items()):
            return OK, SimpleNamespace(type=1, device=0)
        if any(start <= address < start + nbytes for start, (_, nbytes) in self.live.items()):
            return OK, SimpleNamespace(type=2, device=0)
        return OK, SimpleNamespace(type=0, device=_NO_DEVICE)

    def _hipModuleLoadData(self, image: bytes) -> Any:
        if image[:4] != b"\x7fELF":
            return Code.hipErrorInvalidImage, None
        return OK, (LoadedCodeObject if self.on_launch is None else bytes)(image)

    def _hipModuleGetFunction(self, module: Any, name: bytes) -> Any:
        return OK, (module, name.decode())

    def _hipFuncGetAttribute(self, which: str, function: Any) -> Any:
        if self.on_launch is not None:
            return OK, 1024
        kernel = function[0].object.kernel(function[1])
        return OK, kernel[{"threads": ".max_flat_workgroup_size"}[which]]

    def _hipModuleLaunchKernel(
        self, function: Any, gx: int, gy: int, gz: int, bx: int, by: int, bz: int, shared: int, stream: int,
        parameters: int, extra: None,
    ) -> Any:  # fmt: skip
        module, name = function
        launch = SimpleNamespace(name=name, grid=(gx, gy, gz), block=(bx, by, bz), stream=stream, parameters=parameters)
        self.launches.append(launch)
        if self.on_launch is not None:
            self.on_launch(launch)
            return (OK,)
        explicit = module.object.explicit_arguments(name)
        pointers = (ctypes.c_void_p * len(explicit)).from_address(parameters)
        values = [ctypes.string_at(at, a[".size"]) for at, a in zip(pointers, explicit, strict=True)]
        module.launch(name, launch.grid, launch.block, values)
        for address in self.live:
            self._check_guards(address)
        return (OK,)

    def _hipStreamSynchronize(self, stream: int) -> Any:
        return (OK,)

    def _hipDeviceSynchronize(self) -> Any:
        return (OK,)

    def _hipEventCreateWithFlags(self, flags: int) -> Any:
        return OK, "event"

    def _hipEventRecord(self, event: str, stream: int) -> Any:
        self.events.append(("record", stream))
        return (OK,)

    def _hipStreamWaitEvent(self, stream: int, event: str, flags: int) -> Any:
        self.events.append(("wait", stream))
        return (OK,)
