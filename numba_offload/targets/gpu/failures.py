"""Error records of launches: in page-locked host memory that the device writes directly, where its atomics reach there."""

from __future__ import annotations

import ctypes
import threading
from dataclasses import dataclass

from numba_offload.targets.base import CompiledKernel, ErrorReport, LaunchConfig
from numba_offload.targets.gpu.driver import GPUDriver
from numba_offload.targets.reports import RECORD_BYTES, read_report

_STRIDE = 128
_RECORDS_AT_A_TIME = 64
assert RECORD_BYTES <= _STRIDE


@dataclass(frozen=True, slots=True)
class ErrorRecord:
    """One record: its address on the host and on the device.

    It is the same memory, but where the device's atomics do not reach the host's: there ``copying`` is the driver that
    copies the record to and from memory of the device, at the price of two short copies a launch.
    """

    host: int
    device: int
    copying: GPUDriver | None = None

    def clear(self) -> None:
        """Ready it for a launch."""
        ctypes.memset(self.host, 0, RECORD_BYTES)
        if self.copying is not None:
            with self.copying.current():
                self.copying.copy_to_device(self.device, self.host, RECORD_BYTES, 0)
                # The launch may be on any stream.
                self.copying.wait("clearing an error record", 0)

    def read(self) -> ErrorReport | None:
        """What a thread recorded, after the launch has ended."""
        if self.copying is not None:
            with self.copying.current():
                self.copying.copy_to_host(self.host, self.device, RECORD_BYTES, 0)
                self.copying.wait("reading an error record", 0)
        return read_report(ctypes.string_at(self.host, RECORD_BYTES))


class RecordPool:
    """Records, kept for reuse. Any thread may use it."""

    def __init__(self, driver: GPUDriver) -> None:
        self._driver = driver
        self._free: list[ErrorRecord] = []
        self._lock = threading.Lock()

    def acquire(self) -> ErrorRecord:
        """A cleared record."""
        with self._lock:
            if not self._free:
                self._grow()
            record = self._free.pop()
        record.clear()
        return record

    def release(self, record: ErrorRecord) -> None:
        """Take a record back, once no launch can write to it."""
        with self._lock:
            self._free.append(record)

    def _grow(self) -> None:
        size = _STRIDE * _RECORDS_AT_A_TIME
        driver = self._driver
        with driver.current():
            host, device = driver.allocate_mapped(size)
            if not driver.host_atomics:
                device = driver.allocate(size)
        copying = None if driver.host_atomics else driver
        for offset in range(0, size, _STRIDE):
            self._free.append(ErrorRecord(host + offset, device + offset, copying))


@dataclass(slots=True)
class Awaited:
    """The asynchronous launches of one kernel and shape on one stream. Their record keeps the first failure."""

    handle: int
    record: ErrorRecord
    kernel: CompiledKernel
    config: LaunchConfig
    begun: int = 0
    queued: int = 0


class AwaitedFailures:
    """What asynchronous launches may have failed with, until somebody waits for their stream.

    To wait: ``snapshot``, then wait, then ``first``. A record is read only if every launch in it was queued before the
    wait and none has begun since, so that no thread of the device is still writing it.
    """

    def __init__(self, pool: RecordPool) -> None:
        self._pool = pool
        self._awaited: dict[object, Awaited] = {}
        self._lock = threading.Lock()

    def begin(self, handle: int, kernel: CompiledKernel, config: LaunchConfig) -> Awaited:
        """Before an asynchronous launch on a stream; afterwards call ``queued``, also where the launch failed."""
        key = (handle, id(kernel.handle), config.threads, config.block)
        with self._lock:
            known = self._awaited.get(key)
            if known is None:
                known = self._awaited[key] = Awaited(handle, self._pool.acquire(), kernel, config)
            known.begun += 1
        return known

    def queued(self, awaited: Awaited) -> None:
        """The launch is on its stream."""
        with self._lock:
            awaited.queued += 1

    def snapshot(self, handle: int | None) -> list[tuple[object, int]]:
        """What a wait for a stream (None: for all) will settle."""
        if not self._awaited:
            return []
        with self._lock:
            return [
                (key, awaited.begun)
                for key, awaited in self._awaited.items()
                if handle in (None, awaited.handle) and awaited.begun == awaited.queued
            ]

    def first(
        self, settled: list[tuple[object, int]]
    ) -> tuple[CompiledKernel, LaunchConfig, ErrorReport] | None:
        """A failure of launches that have ended, by the age of their kernels. It is told once."""
        found = None
        with self._lock:
            for key, begun in settled:
                awaited = self._awaited.get(key)
                if awaited is None or awaited.begun != begun:
                    continue
                report = awaited.record.read()
                if report is not None and found is None:
                    found = (awaited.kernel, awaited.config, report)
                del self._awaited[key]
                self._pool.release(awaited.record)
        return found
