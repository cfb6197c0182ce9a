"""The CUDA target: kernels on one NVIDIA GPU."""

from __future__ import annotations

import ctypes
import math
import struct
import threading
import weakref
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from numba_offload.errors import LaunchError, TargetError
from numba_offload.failures import failure
from numba_offload.mapping.arrays import DeviceArray
from numba_offload.targets.base import CompiledKernel, DeviceLimits, ErrorReport, LaunchConfig, Target
from numba_offload.targets.cuda.arch import arch_for
from numba_offload.targets.cuda.compiler import PTXKernel, ptx_for
from numba_offload.targets.cuda.driver import Driver
from numba_offload.targets.cuda.failures import AwaitedFailures, RecordPool
from numba_offload.targets.cuda.memory import CUDAMemory
from numba_offload.targets.cuda.streams import same_stream, stream_handle
from numba_offload.targets.gpu.launch import launch_shape
from numba_offload.targets.record import KernelRecord
from numba_offload.targets.reports import as_asked

_LAUNCH_FORMAT = "7q"
_LOG_BYTES = 16384


@dataclass(frozen=True)
class CUDACode:
    """A loaded kernel. Arguments are packed in slots of eight bytes, of which each parameter reads its own."""

    function: Any
    module: Any = field(repr=False)
    ptx: PTXKernel = field(repr=False)
    packer: struct.Struct
    most_threads: int
    registers: int
    local_bytes: int
    frames: threading.local = field(default_factory=threading.local, repr=False)

    @property
    def llvm_ir(self) -> str:
        """The optimised LLVM IR."""
        return self.ptx.llvm_ir

    def frame(self) -> tuple[Any, Any]:
        """This thread's argument buffer and the pointers into it that the driver wants."""
        known = getattr(self.frames, "frame", None)
        if known is None:
            buffer = ctypes.create_string_buffer(self.packer.size)
            start = ctypes.addressof(buffer)
            pointers = (ctypes.c_void_p * (self.packer.size // 8))(*range(start, start + self.packer.size, 8))
            known = self.frames.frame = (buffer, pointers)
        return known


class CUDATarget(Target):
    """Runs kernels on an NVIDIA GPU.

    Raises TargetError, saying what is missing and how to install it, where there is none. ``driver`` stands in for the
    real one in tests.
    """

    name = "cuda"

    def __init__(self, driver: Driver | None = None) -> None:
        self._driver = driver = driver if driver is not None else Driver()
        self.arch = arch_for(driver.capability)
        self.limits = _limits(driver)
        self._records = RecordPool(driver)
        self._awaited = AwaitedFailures(self._records)
        self.memory = CUDAMemory(driver, self._wait)
        self._event: Any = None
        self._event_lock = threading.Lock()
        self._resident: dict[int, int] = {}
        self._dropped: deque[int] = deque()
        self._resident_lock = threading.Lock()

    # ----------------------------------------------------------------------------------------------------- compiling

    def compile(self, record: KernelRecord) -> CompiledKernel:
        self._driver.check_process()
        made = ptx_for(record, self.arch)
        code = self._load(made, record)
        return CompiledKernel(record.name, code)

    def _load(self, made: PTXKernel, record: KernelRecord) -> CUDACode:
        driver, api = self._driver, self._driver.api
        packer = struct.Struct("<" + "".join(s.padded for s in record.layout) + _LAUNCH_FORMAT)
        with driver.current():
            module = self._load_module(made.ptx, record.name)
            function = driver.call("finding the kernel", api.cuModuleGetFunction, module, made.entry.encode())

            def attribute(which: Any) -> int:
                return int(driver.call(f"asking for {which}", api.cuFuncGetAttribute, which, function))

            about = api.CUfunction_attribute
            return CUDACode(
                function,
                module,
                made,
                packer,
                most_threads=attribute(about.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
                registers=attribute(about.CU_FUNC_ATTRIBUTE_NUM_REGS),
                local_bytes=attribute(about.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES),
            )

    def _load_module(self, ptx: str, name: str) -> Any:
        api = self._driver.api
        log = bytearray(_LOG_BYTES)
        options = [
            api.CUjit_option.CU_JIT_ERROR_LOG_BUFFER,
            api.CUjit_option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        ]
        code, module = api.cuModuleLoadDataEx(ptx.encode() + b"\0", len(options), options, [log, _LOG_BYTES])
        if code:
            said = bytes(log).split(b"\0", 1)[0].decode(errors="replace").strip()
            raise TargetError(
                f"kernel {name!r}: the driver cannot load its PTX: {self._driver.describe(code)}\n{said}".rstrip()
            )
        return module

    # ----------------------------------------------------------------------------------------------------- launching

    def launch(
        self,
        kernel: CompiledKernel,
        arguments: Sequence[Any],
        config: LaunchConfig,
        work: int = 0,
        wait: bool = True,
    ) -> ErrorReport | None:
        code: CUDACode = kernel.handle
        driver = self._driver
        positions = code.ptx.positions
        grid, block, threads = launch_shape(config, positions, self.limits, code.most_threads, kernel.name)
        handle = stream_handle(config.stream)
        driver.check_process()
        buffer, pointers = code.frame()
        record = awaited = None
        if code.ptx.may_fail:
            if wait:
                record = self._records.acquire()
            else:
                awaited = self._awaited.begin(handle, kernel, config)
                record = awaited.record
        try:
            where = record.device if record is not None else 0
            code.packer.pack_into(buffer, 0, *arguments, *threads, *config.block, where)
            with driver.current():
                driver.call(
                    f"launching {kernel.name}",
                    driver.api.cuLaunchKernel,
                    code.function,
                    *grid,
                    *block,
                    0,
                    handle,
                    ctypes.addressof(pointers),
                    0,
                )
                if not wait:
                    return None
                try:
                    self._wait(handle, f"running {kernel.name}")
                except Exception as earlier:
                    earlier.add_note(f"kernel {kernel.name!r} was launched after it, and its results were not copied back")
                    raise
            report = record.read() if record is not None else None
            return None if report is None else as_asked(report, config, positions)
        finally:
            if awaited is not None:
                self._awaited.queued(awaited)
            elif record is not None:
                self._records.release(record)

    def synchronize(self, stream: Any = None) -> None:
        with self._driver.current():
            self._wait(None if stream is None else stream_handle(stream))

    def _wait(self, handle: int | None, doing: str = "waiting for the stream") -> None:
        """Wait for a stream (None: for the device), and raise what an asynchronous launch on it has failed with."""
        api = self._driver.api
        awaited = self._awaited.snapshot(handle)
        if handle is None:
            self._driver.call("waiting for the device", api.cuCtxSynchronize)
        else:
            self._driver.call(doing, api.cuStreamSynchronize, handle)
        found = self._awaited.first(awaited) if awaited else None
        if found is not None:
            kernel, config, report = found
            raise failure(kernel.name, as_asked(report, config, kernel.handle.ptx.positions))

    # ------------------------------------------------------------------------------------------------- device arrays

    def acquire(self, arrays: Sequence[DeviceArray], stream: Any = None) -> None:
        for array in arrays:
            self._check_device(array)
        self._order([array.stream for array in arrays], stream, after=False)

    def release(self, arrays: Sequence[DeviceArray], stream: Any = None) -> None:
        self._order([array.stream for array in arrays], stream, after=True)

    def _order(self, theirs: Sequence[int | None], stream: Any, after: bool) -> None:
        """Let our stream wait for theirs, or theirs for ours (``after``)."""
        ours = stream_handle(stream)
        others = {s for s in theirs if s is not None and not same_stream(s, ours)}
        if not others:
            return
        driver, api = self._driver, self._driver.api
        with self._event_lock, driver.current():
            if self._event is None:
                flag = api.CUevent_flags.CU_EVENT_DISABLE_TIMING
                self._event = driver.call("creating an event", api.cuEventCreate, int(flag))
            for other in others:
                first, second = (ours, other) if after else (other, ours)
                driver.call("ordering streams", api.cuEventRecord, self._event, first)
                driver.call("ordering streams", api.cuStreamWaitEvent, second, self._event, 0)

    def _check_device(self, array: DeviceArray) -> None:
        driver = self._driver
        ordinal = array.device_id
        if ordinal is None and driver.count > 1 and array.pointer:
            which = driver.api.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
            with driver.current():
                code, found = driver.api.cuPointerGetAttribute(which, array.pointer)
            ordinal = None if code else int(found)
        if ordinal is not None and ordinal != driver.ordinal:
            raise LaunchError(
                f"an array of shape {array.shape} lives on CUDA device {ordinal}, but kernels run on device "
                f"{driver.ordinal}; copy it there, or choose the device with CUDA_VISIBLE_DEVICES"
            )

    def resident(self, values: Any) -> int:
        """The device address of a strategy's index array, copied once: it never changes."""
        key = id(values)
        with self._resident_lock:
            while self._dropped:
                self.memory.free(self._dropped.popleft())
            known = self._resident.get(key)
            if known is None:
                source, count = values.buffer_info()
                nbytes = count * values.itemsize
                known = self.memory.allocate(max(nbytes, 1))
                if nbytes:
                    self.memory.copy_to_device(known, source, nbytes)
                    # The copy is on the default stream, the launch may be on any.
                    with self._driver.current():
                        self._driver.call("waiting for a copy", self._driver.api.cuStreamSynchronize, 0)
                self._resident[key] = known
                weakref.finalize(values, self._forget, key).atexit = False
        return known

    def _forget(self, key: int) -> None:
        # A finalizer runs anywhere, with any lock held: it only notes what is to be freed.
        address = self._resident.pop(key, None)
        if address is not None:
            self._dropped.append(address)


def _limits(driver: Driver) -> DeviceLimits:
    about = driver.api.CUdevice_attribute

    def axes(what: str) -> tuple[int, int, int]:
        x, y, z = (
            driver.attribute(getattr(about, f"CU_DEVICE_ATTRIBUTE_MAX_{what}_DIM_{axis}")) for axis in "XYZ"
        )
        return x, y, z

    grid = axes("GRID")
    per_block = driver.attribute(about.CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)
    return DeviceLimits(
        per_block, axes("BLOCK"), grid, total_threads=min(2**63 - 1, math.prod(grid) * per_block)
    )
