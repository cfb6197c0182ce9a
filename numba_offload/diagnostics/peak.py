"""What copies can reach on a device, measured."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import perf_counter

import numpy as np

from numba_offload.errors import TargetError
from numba_offload.mapping.layout import address
from numba_offload.mapping.pinned import pinned_empty
from numba_offload.targets.registry import current_target

_TIMES = 5


def measured_peak(nbytes: int) -> dict[str, float]:
    """Bytes per second of the fastest of a few copies each way. See ``Profile.measure_peak``."""
    state = current_target()
    memory, pool = state.device.memory, state.device.pool
    if memory.unified:
        raise TargetError(
            f"measuring copies on target {state.target.name!r}: it shares the host's memory, so nothing is copied; give "
            "profile(peak_bandwidth=...) the number to compare with"
        )
    # Page-locked memory is what the device's own rate shows with.
    host = pinned_empty(nbytes, np.uint8)
    host[:] = 1
    start = address(host)
    device = pool.allocate(nbytes, "measuring copies")
    over = back = 0.0
    try:
        # A device's link is fastest with large copies, memory behind caches with smaller ones.
        for size in {nbytes, max(nbytes // 16, 1)}:
            over = max(over, size / _least(partial(memory.copy_to_device, device, start, size)))
            back = max(back, size / _least(partial(memory.copy_to_host, start, device, size)))
    finally:
        pool.free(device)
    return {"h2d": over, "d2h": back}


def _least(copy: Callable[[], None]) -> float:
    """Seconds of the fastest of a few times."""
    times = []
    for _ in range(_TIMES):
        started = perf_counter()
        copy()
        times.append(perf_counter() - started)
    return min(times)
