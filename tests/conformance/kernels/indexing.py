"""Kernels of the conformance suite: indexing shared arrays."""

from __future__ import annotations

from numba_offload import offload_kernel


@offload_kernel
def gather(x, where, y):
    for i in y.indices():
        y[i] = x[where[i]]


@offload_kernel
def shifted(x, y, by):
    for i in y.indices():
        y[i] = x[i + by]


@offload_kernel
def from_the_end(x, y):
    for i in y.indices():
        y[i] = x[-1 - i]


@offload_kernel
def transposed(x, y):
    for i, j in y.indices():
        y[i, j] = x[j, i]


@offload_kernel
def transposed_attribute(x, y):
    for i, j in y.indices():
        y[i, j] = x.T[i, j]


@offload_kernel
def only_element(x, y):
    for i in y.indices():
        y[i] = x[()]


@offload_kernel
def row_sums(x, y):
    for i in y.indices():
        row = x[i]
        total = row[0] - row[0]
        for j in range(row.shape[0]):
            total += row[j]
        y[i] = total


@offload_kernel
def iterate_rows(x, y):
    for i in y.indices():
        total = 0
        for row in x:
            for value in row:
                total += value
        y[i] = total


@offload_kernel
def iterate_slice(x, y, start, stop, step):
    for i in y.indices():
        total = 0
        n = 0
        for value in x[start:stop:step]:
            total = 3 * total + value
            n += 1
        y[i] = 1000 * n + total


@offload_kernel
def slices_2d(x, y):
    for i in y.indices():
        block = x[1:, ::-1]
        column = block[:, 1]
        tail = x[-2:, -1]
        y[i] = block[0, 0] + 10 * column[-1] + 100 * tail[0] + 1000 * len(column) + 10000 * block.shape[1]


@offload_kernel
def sub_views_3d(x, y):
    for i in y.indices():
        plane = x[i]
        line = x[..., i]
        point = x[i, ..., 0]
        new = x[:, None, 0]
        y[i] = plane[1, 2] + 100 * line[1, 1] + 10000 * point[1] + 1000000 * (new.ndim + new.shape[1])


@offload_kernel
def stencil(x, y):
    n = x.shape[0]
    for i in y.indices():
        left = x[i - 1] if i > 0 else x[0]
        right = x[i + 1] if i + 1 < n else x[n - 1]
        y[i] = left + 2 * x[i] + right


@offload_kernel
def questions(x, y):
    for i in y.indices():
        y[i] = x.size + 10 * x.ndim + 100 * len(x) + 1000 * x.shape[1] + 10000 * x.itemsize
