"""What ``benchmarks.compare`` compares: the same computation by safe kernels and by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
from numba import njit, prange

from numba_offload import Linear2D, Region, offload_kernel

from .rajaperf import handwritten_cpu, matvec_3d_stencil, vol3d
from .rajaperf.benchmark import Benchmark, Data, Launch


@dataclass(frozen=True)
class Problem:
    """A computation, its data and the calls of both implementations on that data."""

    name: str
    set_up: Callable[..., Data]
    outputs: tuple[str, ...]
    offload: Callable[[Data], list[Launch]]
    handwritten: Callable[[Data], list[Launch]]


@cache
def _without_checks(kernel: Any) -> Any:
    return offload_kernel(boundscheck=False)(kernel.py_func)


def unchecked(launch: Launch) -> Launch:
    """The same call of the same kernel without bounds checks."""
    return replace(launch, kernel=_without_checks(launch.kernel))


@offload_kernel
def saxpy(alpha, x, y):
    for i in y.indices():
        y[i] = alpha * x[i] + y[i]


@offload_kernel
def heat(old, rate, new):
    # `new` is the interior of the field: its element (i, j) lies at (i + 1, j + 1) of `old`.
    for i, j in new.indices():
        centre = old[i + 1, j + 1]
        neighbours = old[i, j + 1] + old[i + 2, j + 1] + old[i + 1, j] + old[i + 1, j + 2]
        new[i, j] = centre + rate * (neighbours - 4.0 * centre)


@njit(parallel=True)
def saxpy_by_hand(alpha, x, y):
    for i in prange(y.size):
        y[i] = alpha * x[i] + y[i]


@njit(parallel=True)
def heat_by_hand(old, rate, new):
    for i in prange(1, new.shape[0] - 1):
        for j in range(1, new.shape[1] - 1):
            neighbours = old[i - 1, j] + old[i + 1, j] + old[i, j - 1] + old[i, j + 1]
            new[i, j] = old[i, j] + rate * (neighbours - 4.0 * old[i, j])


def _saxpy_data(size: int = 4_000_000) -> Data:
    # A small factor: y is updated in place, and its values are to stay ordinary over thousands of calls.
    x = np.linspace(0.0, 1.0, size, dtype=np.float32)
    return {"alpha": np.float32(1e-3), "x": x, "y": np.ones(size, dtype=np.float32)}


def _heat_data(side: int = 2048) -> Data:
    old = np.random.default_rng(1).random((side, side))
    return {"old": old, "new": old.copy()}


def _suite(benchmark: Benchmark, variant: str = "") -> Problem:
    return Problem(
        benchmark.name + variant.replace("_", " "),
        benchmark.set_up,
        benchmark.outputs,
        benchmark.launches,
        partial(handwritten_cpu.launches, benchmark, variant=variant),
    )


CPU_PROBLEMS = (
    Problem(
        "saxpy",
        _saxpy_data,
        ("y",),
        lambda d: [Launch(saxpy, (d["alpha"], d["x"], Region(d["y"])))],
        lambda d: [Launch(saxpy_by_hand, (d["alpha"], d["x"], d["y"]))],
    ),
    Problem(
        "heat",
        _heat_data,
        ("new",),
        lambda d: [Launch(heat, (d["old"], 0.1, Region(d["new"][1:-1, 1:-1], Linear2D())))],
        lambda d: [Launch(heat_by_hand, (d["old"], 0.1, d["new"]))],
    ),
    # By hand with unsigned indices, which vectorises, and with signed ones, which is what most people write.
    _suite(vol3d.BENCHMARK),
    _suite(vol3d.BENCHMARK, "_signed"),
    _suite(matvec_3d_stencil.BENCHMARK),
)
