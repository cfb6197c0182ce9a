"""The memory of a CUDA device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba_offload.targets.cuda.driver import Driver
from numba_offload.targets.cuda.streams import stream_handle


class CUDAMemory:
    """Allocations and copies of one device.

    ``wait`` waits for a stream, given its handle, and raises what an asynchronous launch on it failed with: the
    host must not see what such a launch left.
    """

    unified = False

    def __init__(self, driver: Driver, wait: Callable[[int], None]) -> None:
        self._driver = driver
        self._wait = wait

    def allocate(self, nbytes: int) -> int:
        with self._driver.current():
            return int(self._driver.call(f"allocating {nbytes} bytes", self._driver.api.cuMemAlloc, nbytes))

    def free(self, address: int) -> None:
        with self._driver.current():
            self._driver.call("freeing memory", self._driver.api.cuMemFree, address)

    def copy_to_device(self, destination: int, source: int, nbytes: int, stream: Any = None) -> None:
        driver, handle = self._driver, stream_handle(stream)
        with driver.current():
            driver.call(
                "copying to the device", driver.api.cuMemcpyHtoDAsync, destination, source, nbytes, handle
            )
            # The driver has staged pageable memory by now; from page-locked memory it reads on.
            if self._page_locked(source) or self._page_locked(source + nbytes - 1):
                driver.call("waiting for a copy", driver.api.cuStreamSynchronize, handle)

    def copy_to_host(self, destination: int, source: int, nbytes: int, stream: Any = None) -> None:
        driver, handle = self._driver, stream_handle(stream)
        with driver.current():
            self._wait(handle)
            driver.call(
                "copying to the host", driver.api.cuMemcpyDtoHAsync, destination, source, nbytes, handle
            )
            driver.call("waiting for a copy", driver.api.cuStreamSynchronize, handle)

    def _page_locked(self, address: int) -> bool:
        """Whether the driver knows a host address: pinned, registered or managed."""
        api = self._driver.api
        which = api.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE
        return not api.cuPointerGetAttribute(which, address)[0]
