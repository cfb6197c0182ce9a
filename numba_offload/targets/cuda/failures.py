"""Error records of launches, in page-locked host memory that the device writes directly."""

from __future__ import annotations

import ctypes
import threading
from dataclasses import dataclass

from numba_offload.targets.base import CompiledKernel, ErrorReport, LaunchConfig
from numba_offload.targets.cuda.driver import Driver
from numba_offload.targets.reports import RECORD_BYTES, read_report

_STRIDE = 128
_RECORDS_AT_A_TIME = 64
_PORTABLE, _MAPPED = 1, 2  # CU_MEMHOSTALLOC_PORTABLE, CU_MEMHOSTALLOC_DEVICEMAP
assert RECORD_BYTES <= _STRIDE


@dataclass(frozen=True, slots=True)
class ErrorRecord:
    """One record: the same memory under the host's address and the device's."""

    host: int
    device: int

    def clear(self) -> None:
        """Ready it for a launch."""
        ctypes.memset(self.host, 0, RECORD_BYTES)

    def read(self) -> ErrorReport | None:
        """What a thread recorded, after the launch has ended."""
        return read_report(ctypes.string_at(self.host, RECORD_BYTES))


class RecordPool:
    """Records, kept for reuse. Any thread may use it."""

    def __init__(self, driver: Driver) -> None:
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
        driver = self._driver
        with driver.current():
            size = _STRIDE * _RECORDS_AT_A_TIME
            host = int(
                driver.call("allocating error records", driver.api.cuMemHostAlloc, size, _PORTABLE | _MAPPED)
            )
            device = int(driver.call("mapping error records", driver.api.cuMemHostGetDevicePointer, host, 0))
        for offset in range(0, size, _STRIDE):
            self._free.append(ErrorRecord(host + offset, device + offset))


@dataclass(frozen=True, slots=True)
class _Awaited:
    record: ErrorRecord
    kernel: CompiledKernel
    config: LaunchConfig


class AwaitedFailures:
    """What asynchronous launches may have failed with, until somebody waits for their stream.

    Launches of one kernel and shape on one stream share a record: the first failure is what it keeps.
    """

    def __init__(self, pool: RecordPool) -> None:
        self._pool = pool
        self._awaited: dict[object, _Awaited] = {}
        self._lock = threading.Lock()

    def record(self, handle: int, kernel: CompiledKernel, config: LaunchConfig) -> ErrorRecord:
        """The record for an asynchronous launch on a stream."""
        key = (handle, id(kernel.handle), config.threads, config.block)
        with self._lock:
            known = self._awaited.get(key)
            if known is None:
                known = self._awaited[key] = _Awaited(self._pool.acquire(), kernel, config)
        return known.record

    def any(self, handle: int) -> bool:
        """Whether a stream has launches that can have failed."""
        return any(key[0] == handle for key in list(self._awaited))  # type: ignore[index]

    def first(self, handle: int | None) -> tuple[CompiledKernel, LaunchConfig, ErrorReport] | None:
        """A failure of the launches on a stream whose work is done (None: on all), oldest kernel first. It is told once."""
        if not self._awaited:
            return None
        found = None
        with self._lock:
            for key, awaited in list(self._awaited.items()):
                if handle is not None and key[0] != handle:  # type: ignore[index]
                    continue
                report = awaited.record.read()
                if report is not None:
                    awaited.record.clear()
                    if found is None:
                        found = (awaited.kernel, awaited.config, report)
                if handle is None:
                    # Everything has ended: nobody writes to the record any more.
                    del self._awaited[key]
                    self._pool.release(awaited.record)
        return found
