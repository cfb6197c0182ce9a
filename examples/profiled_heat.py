"""Where the time of a loop goes: heat on a plate, profiled, with a table, a timeline and a trace.

The plate is copied over and back for each step, as nothing says that it may stay on the device; the table and the picture
show it. Run it with ``python examples/profiled_heat.py``; without a GPU with ``NUMBA_OFFLOAD_CPU_MEMORY=discrete``, so that the
CPU plays a device with memory of its own. It writes a picture, and with ``--trace trace.json`` a file for Perfetto's viewer
or ``chrome://tracing``.
"""

from __future__ import annotations

import argparse
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console

from numba_offload import Region, Rows, offload_kernel, profile, progress


@offload_kernel
def step(old, rate, new):
    # `new` is the interior: its element (i, j) lies at (i + 1, j + 1) of `old`.
    for i, j in new.indices():
        centre = old[i + 1, j + 1]
        neighbours = old[i, j + 1] + old[i + 2, j + 1] + old[i + 1, j] + old[i + 1, j + 2]
        new[i, j] = centre + rate * (neighbours - 4.0 * centre)


@offload_kernel
def change(old, new, rows):
    for i in rows.indices():
        most = 0.0
        for j in range(old.shape[1]):
            most = max(most, abs(new[i, j] - old[i, j]))
        rows[i] = most


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--side", type=int, default=1024, help="points along an edge (default: 1024)")
    parser.add_argument("--steps", type=int, default=4, help="time steps (default: 4)")
    parser.add_argument("--output", type=Path, default=Path("timeline.png"), help="picture (default: timeline.png)")
    parser.add_argument("--trace", type=Path, help="also write a trace to this file")
    parser.add_argument("--table", type=Path, help="also write the table to this file, as SVG")
    options = parser.parse_args(arguments)

    old = np.zeros((options.side, options.side))
    old[0] = 1.0
    new = old.copy()
    rows = np.empty(options.side)
    interior = (slice(1, -1), slice(1, -1))

    def advance() -> None:
        step(old, 0.24, Region(new[interior], Rows()))
        change(old, new, Region(rows))

    advance()  # compiles, which is not what is to be looked at
    with profile() as p:
        for _ in progress(range(options.steps), "heating"):
            old, new = new, old
            advance()

    centre = old[interior]
    neighbours = old[:-2, 1:-1] + old[2:, 1:-1] + old[1:-1, :-2] + old[1:-1, 2:]
    np.testing.assert_allclose(new[interior], centre + 0.24 * (neighbours - 4.0 * centre), rtol=0, atol=1e-12)
    np.testing.assert_allclose(rows, abs(new - old).max(axis=1), rtol=0, atol=1e-12)

    if p.h2d_count:
        p.measure_peak()
    print(p)
    p.plot(options.output)
    if options.table:
        console = Console(record=True, width=100, file=io.StringIO())
        console.print(p.table())
        console.save_svg(str(options.table), title="print(p)")
    if options.trace:
        p.save_trace(options.trace)
    print(f"{options.steps} steps agree with NumPy; see {options.output}")


if __name__ == "__main__":
    main()
