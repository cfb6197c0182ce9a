"""Kernels of the conformance suite: element by element."""

from __future__ import annotations

from numba_offload import offload_kernel


@offload_kernel
def copy(x, y):
    for i in y.indices():
        y[i] = x[i]


@offload_kernel
def add_into(x, y):
    for i in y.indices():
        y[i] = y[i] + x[i]


@offload_kernel
def increment(y):
    for i in y.indices():
        y[i] += 1


@offload_kernel
def fill(y, value):
    for i in y.indices():
        y[i] = value


@offload_kernel(contract=False)
def saxpy(alpha, x, y):
    for i in y.indices():
        y[i] = alpha * x[i] + y[i]


@offload_kernel
def negate_bool(x, y):
    for i in y.indices():
        y[i] = not x[i]


@offload_kernel
def both(x, y, z):
    for i in y.indices():
        y[i] = x[i]
        z[i] = x[i]


@offload_kernel
def numbers(y):
    for i in y.indices():
        y[i] = i


@offload_kernel
def coordinates_2d(y):
    for i, j in y.indices():
        y[i, j] = 100 * i + j


@offload_kernel
def coordinates_3d(y):
    for i, j, k in y.indices():
        y[i, j, k] = 10000 * i + 100 * j + k


@offload_kernel
def even_only(y):
    for i in y.indices():
        if i % 2 == 0:
            y[i] = 1


@offload_kernel
def untouched(x, y, z):
    for i in y.indices():
        y[i] = x.size + z.shape[0]


@offload_kernel
def only_reads(x, limit):
    if x[0] > limit:
        raise ValueError("above the limit")
