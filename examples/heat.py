"""The heat equation on a plate, in explicit steps: a stencil that reads one array and writes another.

The upper edge of the plate is kept hot and the others cold. Each step reads `old` and writes the interior of
`new`, which is a view of it and becomes a Region; then the two change places. `@optimize_transfers` keeps both
on the device from the first step to the last. The result is checked against the same steps in NumPy, and
written as a picture.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np

from numba_offload import Region, Rows, offload_kernel, optimize_transfers

RATE = 0.24
"""Diffusivity times time step over the square of the grid spacing; explicit steps are stable up to 0.25."""


@offload_kernel
def step(old, rate, new):
    # `new` is the interior: its element (i, j) lies at (i + 1, j + 1) of `old`.
    for i, j in new.indices():
        centre = old[i + 1, j + 1]
        neighbours = old[i, j + 1] + old[i + 2, j + 1] + old[i + 1, j] + old[i + 1, j + 2]
        new[i, j] = centre + rate * (neighbours - 4.0 * centre)


@optimize_transfers
def cool(start: np.ndarray, steps: int) -> np.ndarray:
    """The plate after some steps."""
    old, new = start.copy(), start.copy()
    rows = Rows()
    for _ in range(steps):
        step(old, RATE, Region(new[1:-1, 1:-1], rows))
        old, new = new, old
    return old


def step_in_numpy(old: np.ndarray, rate: float, new: np.ndarray) -> None:
    centre = old[1:-1, 1:-1]
    neighbours = old[:-2, 1:-1] + old[2:, 1:-1] + old[1:-1, :-2] + old[1:-1, 2:]
    new[1:-1, 1:-1] = centre + rate * (neighbours - 4.0 * centre)


def plate(side: int) -> np.ndarray:
    """A plate at 0 with a hot upper edge and a warm disc."""
    y, x = np.mgrid[0:side, 0:side] / (side - 1)
    field = np.where((x - 0.6) ** 2 + (y - 0.65) ** 2 < 0.15**2, 0.8, 0.0)
    field[0, :] = 1.0
    return field


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--side", type=int, default=256, help="points along an edge (default: 256)")
    parser.add_argument("--steps", type=int, default=500, help="time steps (default: 500)")
    parser.add_argument("--output", type=Path, default=Path("heat.png"), help="picture (default: heat.png)")
    options = parser.parse_args(arguments)

    start = plate(options.side)
    end = cool(start, options.steps)

    expected, scratch = start.copy(), start.copy()
    for _ in range(options.steps):
        step_in_numpy(expected, RATE, scratch)
        expected, scratch = scratch, expected
    np.testing.assert_allclose(end, expected, rtol=0, atol=1e-12)

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, (before, after) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    for axes, field, title in ((before, start, "start"), (after, end, f"after {options.steps} steps")):
        shown = axes.imshow(field, cmap="inferno", vmin=0.0, vmax=1.0)
        axes.set(title=title, xlabel="column", ylabel="row")
    figure.colorbar(shown, ax=(before, after), label="temperature")
    figure.savefig(options.output, dpi=120)
    print(
        f"{options.steps} steps on {options.side} x {options.side} points agree with NumPy; "
        f"see {options.output}"
    )


if __name__ == "__main__":
    main()
