"""What the demo runs: kernels, their data and partitions, and the NumPy that they must agree with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from numba_offload import (
    BlockStriped1D,
    Chunked1D,
    EvenSplit1D,
    GridStride1D,
    Linear1D,
    Linear2D,
    PartitioningStrategy,
    Permuted,
    Region,
    Rows,
    Tiles2D,
    Tiles3D,
)
from numba_offload.demo import kernels


@dataclass(frozen=True)
class Case:
    """One kernel on one set of data.

    ``output`` makes the array that the kernel writes, as it is before the launch; ``arguments`` makes a
    launch's arguments from it and a strategy; ``expected`` is what it must hold afterwards.
    """

    name: str
    kernel: Any
    partitions: Sequence[tuple[str, PartitioningStrategy]]
    output: Callable[[], np.ndarray]
    arguments: Callable[[np.ndarray, PartitioningStrategy], tuple[Any, ...]]
    expected: np.ndarray
    exact: bool = False


def cases() -> list[Case]:
    """All cases of the demo, with their data."""
    return [saxpy_case(), own_strategy_case(), heat_case(), mandelbrot_case(), fir_case(), tiles_case()]


def _partitions(*strategies: PartitioningStrategy) -> list[tuple[str, PartitioningStrategy]]:
    return [(repr(strategy), strategy) for strategy in strategies]


def saxpy_case(n: int = 2_000_003) -> Case:
    """``y = 2x + y`` under every kind of one-dimensional partition, with a ragged tail."""
    rng = np.random.default_rng(1)
    x, y = rng.random(n), rng.random(n)
    partitions = _partitions(Linear1D(), GridStride1D(), Chunked1D(8), BlockStriped1D(4), EvenSplit1D())
    partitions.append(("Permuted(shuffled)", Permuted(rng.permutation(n))))
    return Case(
        "saxpy", kernels.saxpy, partitions, y.copy, lambda out, how: (2.0, x, Region(out, how)), 2.0 * x + y
    )


def own_strategy_case(n: int = 1_000_001) -> Case:
    """The same kernel under a strategy that is defined outside the package."""
    rng = np.random.default_rng(2)
    x, y = rng.random(n), rng.random(n)
    return Case(
        "saxpy, own strategy",
        kernels.saxpy,
        _partitions(kernels.MirrorPairs()),
        y.copy,
        lambda out, how: (2.0, x, Region(out, how)),
        2.0 * x + y,
    )


def heat_case(side: int = 2050, rate: float = 0.1) -> Case:
    """One explicit step of the heat equation; the Region is the interior of the plate, a view."""
    plate = np.random.default_rng(3).random((side, side))
    centre = plate[1:-1, 1:-1]
    neighbours = plate[:-2, 1:-1] + plate[2:, 1:-1] + plate[1:-1, :-2] + plate[1:-1, 2:]
    expected = plate.copy()
    expected[1:-1, 1:-1] = centre + rate * (neighbours - 4.0 * centre)
    return Case(
        "heat",
        kernels.heat,
        _partitions(Linear2D(), Rows(), Tiles2D(16, 64)),
        plate.copy,
        lambda out, how: (plate, rate, Region(out[1:-1, 1:-1], how)),
        expected,
    )


def mandelbrot_case(height: int = 900, width: int = 1200, limit: int = 100) -> Case:
    """Iterations until each pixel escapes; the image is only written, so it never goes over."""
    left, top, step = -2.2, 1.2, 2.4 / height
    # Only pixels that have not escaped are iterated further.
    x, y = np.meshgrid(left + np.arange(width) * step, top - np.arange(height) * step)
    x, y, where = x.ravel(), y.ravel(), np.arange(height * width)
    u, v = np.zeros_like(x), np.zeros_like(y)
    count = np.zeros(height * width, dtype=np.int32)
    for _ in range(limit):
        inside = u * u + v * v <= 4.0
        x, y, u, v, where = (a[inside] for a in (x, y, u, v, where))
        u, v = u * u - v * v + x, 2.0 * u * v + y
        count[where] += 1
    return Case(
        "mandelbrot",
        kernels.mandelbrot,
        _partitions(Linear2D(), Rows(), Tiles2D(8, 32)),
        lambda: np.full((height, width), -1, dtype=np.int32),
        lambda out, how: (left, top, step, limit, Region(out, how)),
        count.reshape(height, width),
        exact=True,
    )


def fir_case(n: int = 2_000_000, taps: int = 16) -> Case:
    """A filter over neighbouring samples of an array that all threads may read."""
    rng = np.random.default_rng(4)
    signal, weights = rng.random(n + taps - 1), rng.random(taps)
    return Case(
        "fir",
        kernels.fir,
        _partitions(GridStride1D(), Chunked1D(32)),
        lambda: np.zeros(n),
        lambda out, how: (signal, weights, Region(out, how)),
        np.correlate(signal, weights, mode="valid"),
    )


def tiles_case(batch: int = 20_000, size: int = 8) -> Case:
    """A batch of small matrix products; a thread fills its tile through ``view.local``."""
    rng = np.random.default_rng(5)
    a, b = rng.random((batch, size, size)), rng.random((batch, size, size))
    return Case(
        "batched matmul",
        kernels.multiply_tiles,
        _partitions(Tiles3D(1, size, size), Tiles3D(2, 4, 8)),
        lambda: np.zeros((batch, size, size)),
        lambda out, how: (a, b, Region(out, how)),
        a @ b,
    )
