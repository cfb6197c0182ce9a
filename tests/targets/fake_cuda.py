"""A stand-in for NVIDIA's driver: the functions that the CUDA target calls, on host memory, without a GPU.

Kernels do not run. A test says what a launch does to memory with ``on_launch``, which is given the launch's name, shape
and the parameters' addresses.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from enum import IntEnum
from types import SimpleNamespace
from typing import Any


class Code(IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_INVALID_PTX = 218
    CUDA_ERROR_ILLEGAL_ADDRESS = 700


OK = Code.CUDA_SUCCESS
_ATTRIBUTES = {
    "COMPUTE_CAPABILITY_MAJOR": 9,
    "COMPUTE_CAPABILITY_MINOR": 0,
    "MAX_GRID_DIM_X": 2**31 - 1,
    "MAX_GRID_DIM_Y": 65535,
    "MAX_GRID_DIM_Z": 65535,
    "MAX_BLOCK_DIM_X": 1024,
    "MAX_BLOCK_DIM_Y": 1024,
    "MAX_BLOCK_DIM_Z": 64,
    "MAX_THREADS_PER_BLOCK": 1024,
}


class Launch(SimpleNamespace):
    """One call of cuLaunchKernel."""

    def value(self, position: int, kind: Any = ctypes.c_int64) -> Any:
        """The parameter at a position."""
        return kind.from_address(self.parameters[position]).value


class FakeDriver:
    """``api`` of a Driver. ``calls`` names every function called, in order; ``fail`` makes one return a code."""

    CUdevice_attribute = SimpleNamespace(**{f"CU_DEVICE_ATTRIBUTE_{n}": n for n in _ATTRIBUTES})
    CUfunction_attribute = SimpleNamespace(
        CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK=1024,
    )
    CUpointer_attribute = SimpleNamespace(
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE="type", CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL="ordinal"
    )
    CUjit_option = SimpleNamespace(CU_JIT_ERROR_LOG_BUFFER=5, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES=6)
    CUevent_flags = SimpleNamespace(CU_EVENT_DISABLE_TIMING=2)

    def __init__(self, parameters: Callable[[], int], devices: int = 1) -> None:
        self.calls: list[str] = []
        self.events: list[tuple[Any, ...]] = []
        self.fail: dict[str, Code] = {}
        self.live: dict[int, Any] = {}
        self.pinned: dict[int, Any] = {}
        self.devices = devices
        self.streams = 0
        self.total = 80 << 30
        self.current = 0
        self.log = b""
        self.stack: list[int] = []
        self.on_launch: Callable[[Launch], None] = lambda launch: None
        self.launches: list[Launch] = []
        self._parameters = parameters

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("cu"):
            raise AttributeError(name)
        function = getattr(self, f"_{name}")

        def call(*args: Any) -> Any:
            self.calls.append(name)
            code = self.fail.get(name, OK)
            if name == "cuPointerGetAttribute" and args[0] == "type":
                pinned = any(start <= args[1] < start + len(block) for start, block in self.pinned.items())
                code = OK if pinned else Code.CUDA_ERROR_INVALID_VALUE
            result = function(*args) if not code or name == "cuModuleLoadDataEx" else ()
            return (code, None) if code else (OK, *result)

        return call

    def _cuInit(self, flags: int) -> Any:
        return ()

    def _cuDeviceGetCount(self) -> Any:
        return (self.devices,)

    def _cuDeviceGet(self, ordinal: int) -> Any:
        return (ordinal,)

    def _cuDevicePrimaryCtxRetain(self, device: int) -> Any:
        return (1000 + device,)

    def _cuDeviceGetAttribute(self, which: str, device: int) -> Any:
        return (_ATTRIBUTES[which],)

    def _cuCtxGetCurrent(self) -> Any:
        return (self.current,)

    def _cuCtxPushCurrent(self, context: int) -> Any:
        self.stack.append(self.current)
        self.current = context
        return ()

    def _cuCtxPopCurrent(self) -> Any:
        popped, self.current = self.current, self.stack.pop()
        return (popped,)

    def _cuCtxSynchronize(self) -> Any:
        return ()

    def _cuStreamSynchronize(self, stream: int) -> Any:
        return ()

    def _cuMemAlloc(self, nbytes: int) -> Any:
        storage = ctypes.create_string_buffer(nbytes)
        self.live[ctypes.addressof(storage)] = storage
        return (ctypes.addressof(storage),)

    def _cuMemFree(self, address: int) -> Any:
        del self.live[address]
        return ()

    def _cuMemHostAlloc(self, nbytes: int, flags: int) -> Any:
        storage = ctypes.create_string_buffer(nbytes)
        self.pinned[ctypes.addressof(storage)] = storage
        return (ctypes.addressof(storage),)

    def _cuMemFreeHost(self, address: int) -> Any:
        del self.pinned[address]
        return ()

    def _cuMemGetInfo(self) -> Any:
        used = sum(len(block) for block in self.live.values())
        return self.total - used, self.total

    def _cuStreamCreate(self, flags: int) -> Any:
        self.streams += 1
        return (100 + self.streams,)

    def _cuEventSynchronize(self, event: str) -> Any:
        return ()

    def _cuMemHostGetDevicePointer(self, address: int, flags: int) -> Any:
        return (address,)

    def _cuMemcpyHtoDAsync(self, destination: int, source: int, nbytes: int, stream: int) -> Any:
        ctypes.memmove(destination, source, nbytes)
        return ()

    def _cuMemcpyDtoHAsync(self, destination: int, source: int, nbytes: int, stream: int) -> Any:
        ctypes.memmove(destination, source, nbytes)
        return ()

    def _cuMemcpyDtoDAsync(self, destination: int, source: int, nbytes: int, stream: int) -> Any:
        ctypes.memmove(destination, source, nbytes)
        return ()

    def _cuPointerGetAttribute(self, which: str, address: int) -> Any:
        if which == "ordinal":
            return (1,)
        return (2,)

    def _cuModuleLoadDataEx(self, image: bytes, count: int, options: Any, values: Any) -> Any:
        assert image.endswith(b"\0")
        assert count == len(options) == len(values)
        values[0][: len(self.log)] = self.log
        return ("module",)

    def _cuModuleGetFunction(self, module: str, name: bytes) -> Any:
        return (name.decode(),)

    def _cuFuncGetAttribute(self, which: int, function: str) -> Any:
        return (which,)

    def _cuEventCreate(self, flags: int) -> Any:
        return ("event",)

    def _cuEventRecord(self, event: str, stream: int) -> Any:
        self.events.append(("record", stream))
        return ()

    def _cuStreamWaitEvent(self, stream: int, event: str, flags: int) -> Any:
        self.events.append(("wait", stream))
        return ()

    def _cuGetErrorName(self, code: Code) -> Any:
        return (Code(code).name.encode(),)

    def _cuGetErrorString(self, code: Code) -> Any:
        return (b"said the driver",)

    def _cuLaunchKernel(
        self, function: str, gx: int, gy: int, gz: int, bx: int, by: int, bz: int, shared: int, stream: int,
        parameters: int, extra: int,
    ) -> Any:  # fmt: skip
        count = self._parameters()
        addresses = list((ctypes.c_void_p * count).from_address(parameters))
        launch = Launch(
            name=function, grid=(gx, gy, gz), block=(bx, by, bz), stream=stream, parameters=addresses
        )
        self.launches.append(launch)
        self.on_launch(launch)
        return ()
