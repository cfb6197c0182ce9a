"""Timing that compares: all variants in one process, in turn, so that a busy machine hits them alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Step = Callable[[], object]


STATISTICS: dict[str, Callable[[Iterable[float]], float]] = {"median": statistics.median, "min": min}
"""How samples become one time. On a machine with other work the median tells of that work: use ``min``."""


def interleaved(variants: Mapping[str, Step], rounds: int, statistic: str = "median") -> dict[str, float]:
    """The typical wall seconds of one call of each variant over ``rounds`` rounds, after two to warm up."""
    samples: dict[str, list[float]] = {name: [] for name in variants}
    names = list(variants)
    for turn in range(rounds + 2):
        # Who goes first changes, because the first after a switch finds the caches filled by another's code.
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            start = time.perf_counter()
            variants[name]()
            seconds = time.perf_counter() - start
            if turn >= 2:
                samples[name].append(seconds)
    return {name: STATISTICS[statistic](values) for name, values in samples.items()}


@dataclass(frozen=True)
class DeviceTime:
    """Seconds of device time per call. ``host_bound``: the host was slower, so launch costs are in it."""

    seconds: float
    host_bound: bool


class CudaTimer:
    """Kernel time by events, with launch costs hidden.

    A kernel that only sleeps is launched first. While it holds the stream the host queues an event, the calls
    and another event, so that the device then runs the calls back to back.
    """

    GATE_MILLISECONDS = 10

    def __init__(self, calls: int = 20) -> None:
        from numba import cuda

        self.cuda: Any = cuda
        self.calls = calls

        @cuda.jit
        def gate(milliseconds):
            for _ in range(milliseconds):
                cuda.nanosleep(1_000_000)

        self.gate = gate[1, 1]

    def sample(self, step: Step) -> DeviceTime:
        start, end = self.cuda.event(), self.cuda.event()
        self.cuda.synchronize()
        self.gate(self.GATE_MILLISECONDS)
        start.record()
        for _ in range(self.calls):
            step()
        host_bound = start.query()
        end.record()
        end.synchronize()
        return DeviceTime(self.cuda.event_elapsed_time(start, end) * 1e-3 / self.calls, host_bound)

    def interleaved(
        self, variants: Mapping[str, Step], rounds: int, statistic: str = "median"
    ) -> dict[str, DeviceTime]:
        """The typical device time of one call of each variant, after two rounds to warm up."""
        samples: dict[str, list[DeviceTime]] = {name: [] for name in variants}
        for turn in range(rounds + 2):
            for name, step in variants.items():
                sample = self.sample(step)
                if turn >= 2:
                    samples[name].append(sample)
        return {
            name: DeviceTime(
                STATISTICS[statistic](sample.seconds for sample in taken),
                statistics.mean(sample.host_bound for sample in taken) > 0.5,
            )
            for name, taken in samples.items()
        }
