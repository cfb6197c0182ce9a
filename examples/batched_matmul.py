"""A batch of small matrix products: a thread owns a tile of the result and fills it through ``view.local``.

A tile of one whole matrix and tiles of some of its rows give the same result from one kernel. ``--output
products.npy`` saves the products.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from numba_offload import Region, Tiles3D, offload_kernel


@offload_kernel
def multiply(a, b, c):
    tile = c.local
    batch, row, column = c.origin
    for m in range(tile.shape[0]):
        for i in range(tile.shape[1]):
            for j in range(tile.shape[2]):
                total = 0.0
                for k in range(a.shape[2]):
                    total += a[batch + m, row + i, k] * b[batch + m, k, column + j]
                tile[m, i, j] = total


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=20_000, help="matrices (default: 20000)")
    parser.add_argument("--size", type=int, default=8, help="rows and columns of each (default: 8)")
    parser.add_argument("--output", type=Path, help="save the products to this .npy file")
    options = parser.parse_args(arguments)

    rng = np.random.default_rng(1)
    a, b = rng.random((2, options.batch, options.size, options.size))
    expected = a @ b
    for tiles in (Tiles3D(1, options.size, options.size), Tiles3D(4, 2, options.size)):
        c = np.full_like(a, np.nan)
        multiply(a, b, Region(c, tiles))
        np.testing.assert_allclose(c, expected, rtol=1e-12)
        print(f"{options.batch} products of {options.size} x {options.size} under {tiles!r} agree with NumPy")
    if options.output:
        np.save(options.output, c)


if __name__ == "__main__":
    main()
