"""One lane of the staging ring: page-locked memory cut into slots, a stream, and an event for each slot."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from numba_offload.targets.gpu.native_lanes import NativeCopies


class StagingDriver(Protocol):
    """What the ring asks of a device; see ``targets/gpu/driver.py``."""

    def current(self) -> AbstractContextManager[None]: ...
    def allocate_pinned(self, nbytes: int) -> int: ...
    def copy_to_device(self, destination: int, source: int, nbytes: int, stream: int) -> None: ...
    def copy_to_host(self, destination: int, source: int, nbytes: int, stream: int) -> None: ...
    def create_stream(self) -> int: ...
    def create_event(self) -> Any: ...
    def record_event(self, event: Any, stream: int) -> None: ...
    def wait_event(self, event: Any, stream: int) -> None: ...
    def await_event(self, doing: str, event: Any) -> None: ...
    def wait(self, doing: str, stream: int | None) -> None: ...
    def native_copies(self) -> NativeCopies | None: ...
    def failure(self, doing: str, code: int) -> Exception: ...


class Lane:
    """One thread's page-locked block, and a stream. ``state`` is for native code to know of it."""

    __slots__ = ("_handles", "block", "events", "stream")

    def __init__(self, driver: StagingDriver, state: Any, nbytes: int, slots: int, native: bool) -> None:
        self.block = driver.allocate_pinned(nbytes)
        self.stream = driver.create_stream()
        self.events = [driver.create_event() for _ in range(slots)]
        state.block = self.block
        if native:
            self._handles = (ctypes.c_int64 * len(self.events))(*map(int, self.events))
            state.events = ctypes.addressof(self._handles)


def settle(driver: StagingDriver, streams: Iterable[int]) -> None:
    """Wait for all copies on streams, after a failure."""
    for stream in streams:
        try:
            driver.wait("waiting for the copies before a failure", stream)
        except Exception:  # the device is lost; what it was lost with is told
            break
