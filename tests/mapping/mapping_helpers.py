"""A kernel's side of a launch, simulated: NumPy views over device addresses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numba_offload.mapping import ArrayUse, DeviceState, HostHeap, LaunchMapping, MappedArray
from numba_offload.mapping.layout import raw_view


def discrete(limit: int | None = None) -> DeviceState:
    return DeviceState(HostHeap(), limit, "cpu")


def kernel_view(view: MappedArray, array: Any) -> np.ndarray:
    """What a kernel sees of an argument. Broadcast axes can be read only."""
    if array.size == 0 or view.pointer == 0:
        return np.empty(array.shape, array.dtype)
    raw = raw_view(view.pointer, array.shape, view.strides, array.dtype.itemsize)
    return raw.view(array.dtype)


def launch(
    device: DeviceState, kernel: Callable[..., None], *uses: tuple[str, np.ndarray, str], ok: bool = True
) -> None:
    """Map, run ``kernel`` on device views, finish."""
    mapping = LaunchMapping(device, [ArrayUse(*use) for use in uses], kernel="simulated")
    views = [kernel_view(view, use[1]) for view, use in zip(mapping.views, uses, strict=True)]
    kernel(*views)
    mapping.finish(ok)


def assert_nothing_in_use(device: DeviceState) -> None:
    assert device.pool.bytes_in_use == 0
    assert not device.present.entries
    device.pool.trim()
    assert device.memory.live_buffers == 0


class FaultyHeap(HostHeap):
    """Fails at the n-th allocation or copy (0: the first). Copies fail before they move anything."""

    def __init__(self) -> None:
        super().__init__()
        self.fail_allocations: set[int] = set()
        self.fail_copies: set[int] = set()
        self.reset()

    def reset(self) -> None:
        self.allocations = 0
        self.copies = 0

    def allocate(self, nbytes: int) -> int:
        self.allocations += 1
        if self.allocations - 1 in self.fail_allocations:
            raise RuntimeError("injected: out of memory")
        return super().allocate(nbytes)

    def _count_copy(self) -> None:
        self.copies += 1
        if self.copies - 1 in self.fail_copies:
            raise RuntimeError("injected: copy failed")

    def copy_to_device(self, *arguments: Any, **options: Any) -> None:
        self._count_copy()
        super().copy_to_device(*arguments, **options)

    def copy_to_host(self, *arguments: Any, **options: Any) -> None:
        self._count_copy()
        super().copy_to_host(*arguments, **options)
