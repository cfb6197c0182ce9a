"""Run one benchmark in one way and report what came out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from .benchmark import Benchmark, Data
from .checksum import TOLERANCE, relative_difference

OFFLOAD_TARGETS = ("cpu", "cuda", "amdgpu")
OTHER_TARGETS = ("numpy", "handwritten-cpu", "handwritten-cuda")

WARM_UP_SIZE = 2_000


@dataclass(frozen=True)
class Repetition:
    """What one repetition calls, and how to wait for it."""

    launches: Sequence[Callable[[], None]]
    synchronize: Callable[[], None] = lambda: None

    def run(self, reps: int) -> float:
        """Repeat, as the suite does, without waiting in between. Returns the seconds until all is done."""
        self.synchronize()
        start = time.perf_counter()
        for _ in range(reps):
            for launch in self.launches:
                launch()
        self.synchronize()
        return time.perf_counter() - start


@dataclass(frozen=True)
class Outcome:
    """One benchmark's result. ``seconds`` are those of all repetitions without set-up."""

    name: str
    size: int
    reps: int
    checksum: np.longdouble
    expected: np.longdouble
    seconds: float

    @property
    def difference(self) -> float:
        return relative_difference(self.checksum, self.expected)

    @property
    def passed(self) -> bool:
        return self.difference <= TOLERANCE


@contextmanager
def prepared(benchmark: Benchmark, data: Data, target: str) -> Iterator[Repetition]:
    """The repetition on ``data`` for a target. Its arrays hold the result once the block is left.
    """
    if target == "numpy":
        yield Repetition([lambda: benchmark.reference(data)])
    elif target == "handwritten-cpu":
        from . import handwritten_cpu

        yield Repetition(handwritten_cpu.launches(benchmark, data))
    elif target == "handwritten-cuda":
        from . import device_arrays, handwritten_cuda

        device = device_arrays.to_device(data)
        yield Repetition(handwritten_cuda.launches(benchmark, device), device_arrays.synchronize)
        device_arrays.to_host(device, data)
    else:
        from numba_offload import synchronize, use_target

        with use_target(target):
            yield Repetition(benchmark.launches(data), synchronize)


def run(
    benchmark: Benchmark,
    target: str,
    *,
    reps_factor: float = 1.0,
    warm_up: bool = False,
) -> Outcome:
    """All repetitions at the suite's default size. ``warm_up`` keeps compilation out of the time."""
    reps = max(1, round(benchmark.reps * reps_factor))
    if warm_up:
        with prepared(benchmark, benchmark.set_up(WARM_UP_SIZE), target) as repetition:
            repetition.run(1)
    data = benchmark.set_up()
    with prepared(benchmark, data, target) as repetition:
        seconds = repetition.run(reps)
    return Outcome(
        benchmark.name, data["size"], reps, benchmark.result(data), benchmark.expected(reps), seconds
    )
