"""The memory of a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba_offload.targets.gpu.driver import GPUDriver
from numba_offload.targets.gpu.streams import stream_handle


class GPUMemory:
    """Allocations and copies of one device.

    ``wait`` waits for a stream, given its handle, and raises what an asynchronous launch on it failed with: the
    host must not see what such a launch left.
    """

    unified = False

    def __init__(self, driver: GPUDriver, wait: Callable[[int], None]) -> None:
        self._driver = driver
        self._wait = wait

    def allocate(self, nbytes: int) -> int:
        with self._driver.current():
            return self._driver.allocate(nbytes)

    def free(self, address: int) -> None:
        with self._driver.current():
            self._driver.free(address)

    def copy_to_device(self, destination: int, source: int, nbytes: int, stream: Any = None) -> None:
        driver, handle = self._driver, stream_handle(stream)
        with driver.current():
            driver.copy_to_device(destination, source, nbytes, handle)
            # The runtime has staged pageable memory by now; from page-locked memory it reads on.
            if driver.page_locked(source) or driver.page_locked(source + nbytes - 1):
                driver.wait("waiting for a copy", handle)

    def copy_to_host(self, destination: int, source: int, nbytes: int, stream: Any = None) -> None:
        driver, handle = self._driver, stream_handle(stream)
        with driver.current():
            self._wait(handle)
            driver.copy_to_host(destination, source, nbytes, handle)
            driver.wait("waiting for a copy", handle)

    def copy_within(self, destination: int, source: int, nbytes: int, stream: Any = None) -> None:
        with self._driver.current():
            self._driver.copy_within(destination, source, nbytes, stream_handle(stream))
