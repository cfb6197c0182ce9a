"""Kernels of the conformance suite: accumulators, reductions, colours."""

from __future__ import annotations

import numpy as np

from numba_offload import offload_kernel


@offload_kernel
def histogram(x, done, counts):
    for i in done.indices():
        done[i] = True
        counts.update(x[i], 1)


@offload_kernel
def accumulate_at(x, row, column, done, acc):
    for i in done.indices():
        done[i] = True
        acc.update((row[i], column[i]), x[i])


@offload_kernel
def accumulate_one(x, done, acc):
    for i in done.indices():
        done[i] = True
        acc.update(0, x[i])


@offload_kernel
def row_statistics(x, low, high, mean, anything, everything):
    for i in low.indices():
        row = x[i]
        low[i] = row.min()
        high[i] = np.max(row)
        mean[i] = row.mean()
        anything[i] = row.any()
        everything[i] = np.all(row)


@offload_kernel
def whole_statistics(x, y):
    for i in y.indices():
        y[i] = x.max() - x.min() + np.sum(x[:, i])


@offload_kernel(contract=False)
def relax(u):
    rows, columns = u.shape
    for r, c in u.indices():
        if 0 < r < rows - 1 and 0 < c < columns - 1:
            u[r, c] = 0.25 * (u[r - 1, c] + u[r + 1, c] + u[r, c - 1] + u[r, c + 1])


@offload_kernel
def colour_to_the_left(u):
    for r, c in u.indices():
        u[r, c] = u[r, c - 1]
