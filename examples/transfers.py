"""Three ways to run kernels on NumPy arrays, and what each of them copies: managed, optimised, staged.

A rod cools down, and every few steps the host writes down its highest temperature. Each way is profiled, and all give the
same result. Run it with ``python examples/transfers.py``; without a GPU with ``NUMBA_OFFLOAD_CPU_MEMORY=discrete``, so that
the CPU plays a device with memory of its own. ``--output tables.txt`` also writes what was printed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from rich.console import Console

from numba_offload import Region, offload_kernel, optimize_transfers, preload_mut, profile

EVERY = 50
"""Steps between two looks of the host; even, so that staged arrays have changed places back."""


@offload_kernel
def step(old, new):
    for i in new.indices():
        left = old[i - 1] if i > 0 else 0.0
        right = old[i + 1] if i < old.size - 1 else 0.0
        new[i] = 0.5 * old[i] + 0.25 * (left + right)


def managed(rod: np.ndarray, scratch: np.ndarray, steps: int, highest: list[float]) -> np.ndarray:
    """Each launch moves its arrays."""
    for n in range(steps):
        step(rod, Region(scratch))
        rod, scratch = scratch, rod
        if n % EVERY == EVERY - 1:
            highest.append(float(rod.max()))
    return rod


@optimize_transfers
def optimised(rod: np.ndarray, scratch: np.ndarray, steps: int, highest: list[float]) -> np.ndarray:
    """The same, with one more line."""
    for n in range(steps):
        step(rod, Region(scratch))
        rod, scratch = scratch, rod
        if n % EVERY == EVERY - 1:
            highest.append(float(rod.max()))
    return rod


def staged(rod: np.ndarray, scratch: np.ndarray, steps: int, highest: list[float]) -> np.ndarray:
    """Both arrays are the device's between two looks of the host."""
    for _ in range(steps // EVERY):
        with preload_mut(rod) as g_rod, preload_mut(scratch) as g_scratch:
            for _ in range(EVERY):
                step(g_rod, Region(g_scratch))
                g_rod, g_scratch = g_scratch, g_rod
        highest.append(float(rod.max()))
    return rod


WAYS: tuple[Callable[..., np.ndarray], ...] = (managed, optimised, staged)


def in_numpy(rod: np.ndarray, steps: int) -> tuple[np.ndarray, list[float]]:
    highest = []
    for n in range(steps):
        padded = np.pad(rod, 1)
        rod = 0.5 * rod + 0.25 * (padded[:-2] + padded[2:])
        if n % EVERY == EVERY - 1:
            highest.append(float(rod.max()))
    return rod, highest


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=1_000_000, help="points of the rod (default: 1000000)")
    parser.add_argument("--looks", type=int, default=2, help=f"looks of the host, one in {EVERY} steps (default: 2)")
    parser.add_argument("--output", type=Path, help="also write the tables to this file")
    options = parser.parse_args(arguments)

    steps = options.looks * EVERY
    start = np.random.default_rng(1).random(options.size)
    expected, expected_highest = in_numpy(start, steps)
    step(start, Region(np.empty_like(start)))  # compiles, which is not what is to be looked at

    console = Console(record=True, width=100)
    for way in WAYS:
        highest: list[float] = []
        with profile() as p:
            result = way(start.copy(), start.copy(), steps, highest)
        np.testing.assert_allclose(result, expected, rtol=1e-12)
        np.testing.assert_allclose(highest, expected_highest, rtol=1e-12)
        console.print(f"\n{way.__name__}: copies over: {p.h2d_count}, back: {p.d2h_count}", highlight=False)
        console.print(p.table())
    console.print(optimised.explain(), markup=False, highlight=False, soft_wrap=True)
    console.print(f"{steps} steps in {len(WAYS)} ways agree with NumPy", highlight=False)
    if options.output:
        options.output.write_text(console.export_text())


if __name__ == "__main__":
    main()
