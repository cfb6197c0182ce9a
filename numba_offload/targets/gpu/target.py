"""Kernels on one GPU, of any vendor: launches, asynchronous failures, the order of streams, resident index arrays."""

from __future__ import annotations

import ctypes
import struct
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from numba_offload.errors import LaunchError, TargetError
from numba_offload.failures import failure
from numba_offload.mapping.arrays import DeviceArray
from numba_offload.targets.base import CompiledKernel, DeviceLimits, ErrorReport, LaunchConfig, Target
from numba_offload.targets.gpu.driver import GPUDriver, LoadedFunction
from numba_offload.targets.gpu.entry import GPU_LAUNCH_FORMAT
from numba_offload.targets.gpu.failures import AwaitedFailures, RecordPool
from numba_offload.targets.gpu.launch import LaunchShape, launch_shape
from numba_offload.targets.gpu.memory import GPUMemory
from numba_offload.targets.gpu.streams import same_stream, stream_handle
from numba_offload.targets.image import KernelImage
from numba_offload.targets.reports import as_asked

_FIRST_BLOCK = (0, 0, 0)


@dataclass(frozen=True)
class GPUCode:
    """A loaded kernel. Arguments are packed in slots of eight bytes, of which each parameter reads its own."""

    loaded: LoadedFunction
    packer: struct.Struct
    may_fail: bool
    positions: bool
    frames: threading.local = field(default_factory=threading.local, repr=False)

    def frame(self) -> tuple[Any, int, Any]:
        """This thread's argument buffer, the address of the pointers into it that the runtime wants, and their owner."""
        known = getattr(self.frames, "frame", None)
        if known is None:
            buffer = ctypes.create_string_buffer(self.packer.size)
            start = ctypes.addressof(buffer)
            pointers = (ctypes.c_void_p * (self.packer.size // 8))(*range(start, start + self.packer.size, 8))
            known = self.frames.frame = (buffer, ctypes.addressof(pointers), pointers)
        return known

    def shape(self, config: LaunchConfig, limits: DeviceLimits, name: str) -> LaunchShape:
        """How a launch is laid out. That of this thread's last one is kept, as launches repeat."""
        last = getattr(self.frames, "last", None)
        if last is None or last[0] is not config or last[1] is not limits:
            shape = launch_shape(config, self.positions, limits, self.loaded.most_threads, name)
            last = self.frames.last = (config, limits, shape)
        found: LaunchShape = last[2]
        return found


class GPUTarget(Target):
    """Runs kernels on the GPU of a driver. A vendor's subclass says how code is built and loaded."""

    visible_devices: str
    """The environment variable that chooses the device."""

    def __init__(self, driver: GPUDriver) -> None:
        self._driver = driver
        self.limits = driver.limits
        self._records = RecordPool(driver)
        self._awaited = AwaitedFailures(self._records)
        self.memory = GPUMemory(driver, self._wait)
        self._event: Any = None
        self._event_lock = threading.Lock()
        self._resident: dict[int, int] = {}
        self._dropped: deque[int] = deque()
        self._resident_lock = threading.Lock()

    @property
    def arch(self) -> str:
        return self._driver.arch

    def load(self, image: KernelImage, name: str) -> CompiledKernel:
        self._driver.check_process()
        with self._driver.current():
            loaded = self._driver.load(image, name)
        packer = struct.Struct("<" + image.parameters + GPU_LAUNCH_FORMAT)
        return CompiledKernel(name, image, GPUCode(loaded, packer, image.may_fail, image.positions))

    # ----------------------------------------------------------------------------------------------------- launching

    def launch(
        self,
        kernel: CompiledKernel,
        arguments: Sequence[Any],
        config: LaunchConfig,
        work: int = 0,
        wait: bool = True,
        behind: Callable[[], None] | None = None,
    ) -> ErrorReport | None:
        code: GPUCode = kernel.handle
        driver = self._driver
        shape = code.shape(config, self.limits, kernel.name)
        handle = stream_handle(config.stream)
        driver.check_process()
        function, (buffer, pointers, _) = code.loaded.function, code.frame()
        record = awaited = None
        if code.may_fail:
            if wait:
                record = self._records.acquire()
            else:
                awaited = self._awaited.begin(handle, kernel, config)
                record = awaited.record
        try:
            where = record.device if record is not None else 0
            with driver.current():
                for grid, first, origin in shape.parts():
                    code.packer.pack_into(
                        buffer, 0, *arguments, *shape.threads, *config.block, where, *first, *origin
                    )
                    try:
                        driver.launch(f"launching {kernel.name}", function, grid, shape.block, handle, pointers)
                    except TargetError:
                        # The parts before are under way, and write to arrays and to the record, which others get now.
                        if origin != _FIRST_BLOCK:
                            driver.wait(f"waiting for parts of {kernel.name}", handle)
                        raise
                if not wait:
                    return None
                if behind is not None:
                    try:
                        behind()
                    except BaseException:  # an interrupt
                        driver.wait(f"running {kernel.name}", handle)
                        raise
                try:
                    self._wait(handle, f"running {kernel.name}")
                except Exception as earlier:
                    earlier.add_note(f"kernel {kernel.name!r} was launched after it, and its results were not copied back")
                    raise
            report = record.read() if record is not None else None
            return None if report is None else as_asked(report, config, code.positions)
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
        awaited = self._awaited.snapshot(handle)
        self._driver.wait("waiting for the device" if handle is None else doing, handle)
        found = self._awaited.first(awaited) if awaited else None
        if found is not None:
            kernel, config, report = found
            raise failure(kernel.name, as_asked(report, config, kernel.image.positions), kernel.image.sites)

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
        driver = self._driver
        with self._event_lock, driver.current():
            if self._event is None:
                self._event = driver.create_event()
            for other in others:
                first, second = (ours, other) if after else (other, ours)
                driver.record_event(self._event, first)
                driver.wait_event(self._event, second)

    def _check_device(self, array: DeviceArray) -> None:
        driver = self._driver
        ordinal = array.device_id
        if ordinal is None and driver.count > 1 and array.pointer:
            with driver.current():
                ordinal = driver.ordinal_of(array.pointer)
        if ordinal is not None and ordinal != driver.ordinal:
            raise LaunchError(
                f"an array of shape {array.shape} lives on {driver.vendor} device {ordinal}, but kernels run on device "
                f"{driver.ordinal}; copy it there, or choose the device with {self.visible_devices}"
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
                        self._driver.wait("waiting for a copy", 0)
                self._resident[key] = known
                weakref.finalize(values, self._forget, key).atexit = False
        return known

    def _forget(self, key: int) -> None:
        # A finalizer runs anywhere, with any lock held: it only notes what is to be freed.
        address = self._resident.pop(key, None)
        if address is not None:
            self._dropped.append(address)
