"""Kernels of the conformance suite: unsafe."""

from __future__ import annotations

from numba_offload import cuda, offload_kernel


@offload_kernel(unsafe=True)
def raw_scale(x, y, a):
    i = cuda.grid(1)
    if i < x.shape[0]:
        y[i] = a * x[i]


@offload_kernel(unsafe=True)
def raw_stride(y):
    for i in range(cuda.grid(1), y.shape[0], cuda.gridsize(1)):
        y[i] += 1


@offload_kernel(unsafe=True)
def raw_positions(y):
    i, j = cuda.grid(2)
    if i < y.shape[0] and j < y.shape[1]:
        y[i, j] = (
            cuda.threadIdx.x + 10 * cuda.threadIdx.y + 100 * cuda.blockIdx.x + 1000 * cuda.blockIdx.y
            + 10000 * cuda.blockDim.x + 100000 * cuda.gridDim.y
        )


@offload_kernel
def at_float(x, where, y):
    for i in y.indices():
        y[i] = x[int(where[i])]


@offload_kernel
def at_shift(x, by, y):
    for i in y.indices():
        y[i] = x[(1 << by[i]) - 1]


def add_columns(x, y):
    for i in y.indices():
        y[i] = x[i].at + x[i].value


@offload_kernel
def count_threads(x, counts):
    counts.update(0, 1)
    for _ in x.indices():
        counts.update(0, 100)
