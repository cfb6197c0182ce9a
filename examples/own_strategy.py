"""A partition of one's own: the rows of a packed triangular matrix, dealt out so that each thread has equal
work.

A lower triangular matrix is stored row after row, row r having r + 1 elements. A thread that owned one row
would have much work for a late row and little for an early one; here thread t owns row t and the row as far
from the end. The strategy is plain integer arithmetic. Before a launch may use it, it is checked for the
shape and the number of threads at hand; one that is no partition is refused, as the second half shows.
``--output packed.npy`` saves the matrix.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from numba_offload import LaunchError, PartitioningStrategy, Region, offload_kernel
from partitioning import LaunchRefused


class TriangleRows(PartitioningStrategy):
    """Rows t and n - 1 - t of a packed lower triangular matrix of n rows; n is even."""

    ndim = 1

    def __init__(self, rows: int) -> None:
        if rows < 2 or rows % 2:
            raise ValueError(f"TriangleRows(rows): rows must be even and positive, not {rows}")
        self.rows = rows

    def count(self, t, T, shape):
        # (t + 1) elements of row t and (n - t) of row n - 1 - t.
        return self.rows + 1 if t < self.rows // 2 else 0

    def index(self, t, k, T, shape):
        row = t if k <= t else self.rows - 1 - t
        column = k if k <= t else k - t - 1
        return row * (row + 1) // 2 + column

    def threads(self, shape):
        return self.rows // 2

    # Every element has an owner only if the array is the whole triangle; others are refused.
    def covers_shape(self, shape):
        return shape[0] == self.rows * (self.rows + 1) // 2

    def check_shape(self, shape):
        if not self.covers_shape(shape):
            raise LaunchRefused(f"{shape[0]} elements are not a packed triangle of {self.rows} rows")


class OffByOne(TriangleRows):
    """The same with a mistake: row r begins one element too early."""

    def index(self, t, k, T, shape):
        row = t if k <= t else self.rows - 1 - t
        column = k if k <= t else k - t - 1
        return max(row * (row + 1) // 2 - 1, 0) + column


@offload_kernel
def scale(factor, packed):
    for i in packed.indices():
        packed[i] = factor * packed[i]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=400, help="rows of the triangle, even (default: 400)")
    parser.add_argument("--output", type=Path, help="save the packed matrix to this .npy file")
    options = parser.parse_args(arguments)

    n = options.rows
    packed = np.random.default_rng(1).random(n * (n + 1) // 2)
    expected = 3.0 * packed
    scale(3.0, Region(packed, TriangleRows(n)))
    np.testing.assert_array_equal(packed, expected)
    print(f"{packed.size} elements, {n + 1} to each of {n // 2} threads, agree with NumPy")

    try:
        scale(3.0, Region(packed, OffByOne(n)))
    except LaunchError as error:
        print(f"refused, as it should be: {error}")
    else:
        raise AssertionError("a strategy that is no partition was used")
    np.testing.assert_array_equal(packed, expected)
    if options.output:
        np.save(options.output, packed)


if __name__ == "__main__":
    main()
