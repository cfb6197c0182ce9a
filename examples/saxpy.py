"""SAXPY, ``y = alpha * x + y``: one kernel under several partitions, and what it moves.

Run it with ``python examples/saxpy.py``. It prints a line for each partition and checks every result against
NumPy; ``--output table.txt`` also writes what was printed.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from numba_offload import BlockStriped1D, Chunked1D, GridStride1D, Linear1D, Region, offload_kernel, profile


@offload_kernel
def saxpy(alpha, x, y):
    for i in y.indices():
        y[i] = alpha * x[i] + y[i]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=1_000_000, help="elements (default: 1000000)")
    parser.add_argument("--output", type=Path, help="also write the lines to this file")
    options = parser.parse_args(arguments)

    rng = np.random.default_rng(1)
    x = rng.random(options.size, dtype=np.float32)
    start = rng.random(options.size, dtype=np.float32)
    alpha = np.float32(2.0)
    lines = []
    for partition in (Linear1D(), GridStride1D(), Chunked1D(8), BlockStriped1D(4)):
        y = start.copy()
        with profile() as counted:
            saxpy(alpha, x, Region(y, partition))
        # A GPU may fuse the multiplication and the addition, which rounds once instead of twice.
        np.testing.assert_allclose(y, alpha * x + start, rtol=1e-6)
        lines.append(
            f"{partition!r}: agrees with NumPy; {counted.h2d_bytes} bytes went to the device, "
            f"{counted.d2h_bytes} came back"
        )
    lines.append(str(saxpy.mappings(alpha, x, Region(y))))
    print("\n".join(lines))
    if options.output:
        options.output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
