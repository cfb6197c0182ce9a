"""What the staging ring asks of a device, and one of its lanes that are Python's."""

from __future__ import annotations

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
    """A stream, and a part of the ring with an event for each of its slots."""

    __slots__ = ("_driver", "block", "events", "stream")

    def __init__(self, driver: StagingDriver) -> None:
        self._driver = driver
        self.stream = driver.create_stream()
        self.block = 0
        self.events: list[Any] = []

    def take(self, block: int, slots: int) -> None:
        """Work in this part of the ring from now on."""
        self.block = block
        while len(self.events) < slots:
            self.events.append(self._driver.create_event())


def settle(driver: StagingDriver, streams: Iterable[int]) -> None:
    """Wait for all copies on streams, after a failure."""
    for stream in streams:
        try:
            driver.wait("waiting for the copies before a failure", stream)
        except Exception:  # the device is lost; what it was lost with is told
            break
