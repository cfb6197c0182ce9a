"""Short launches stay in the calling thread, also after one that took long for another reason."""

from __future__ import annotations

import numpy as np

from numba_offload import Region, offload_kernel, use_target
from numba_offload.targets.cpu import target as cpu_target


@offload_kernel
def increment(y):
    for i in y.indices():
        y[i] += 1


def test_one_slow_launch_does_not_send_all_later_ones_to_other_threads(monkeypatch):
    chunks = []
    monkeypatch.setattr(cpu_target, "useful_chunks", lambda: 2)
    monkeypatch.setattr(cpu_target, "run_work", lambda address, count, packed: chunks.append(count))
    ticks = iter([0.0, 1.0, *(2.0 + k * 1e-7 for k in range(10_000))])
    monkeypatch.setattr(cpu_target.time, "perf_counter", lambda: next(ticks))
    y = np.zeros(10)
    with use_target("cpu"):
        for _ in range(1000):
            increment(Region(y))
    assert chunks[0] == 1
    assert chunks[1] == 2
    assert chunks[-1] == 1
