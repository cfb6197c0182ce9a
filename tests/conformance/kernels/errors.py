"""Kernels of the conformance suite: errors."""

from __future__ import annotations

import math

from numba_offload import offload_function, offload_kernel


@offload_kernel
def divide_integers(x, y):
    for i in y.indices():
        y[i] = 100 // x[i]  # line: divide


@offload_kernel
def remainder_of(x, y):
    for i in y.indices():
        y[i] = 100 % x[i]  # line: remainder


@offload_kernel
def refuse_negative(x, y):
    for i in y.indices():
        if x[i] < 0:
            raise ValueError("negative", i, x[i])  # line: raise
        y[i] = x[i]


@offload_kernel
def raise_constant(x, y):
    for i in y.indices():
        if x[i] == 13:
            raise RuntimeError("unlucky")  # line: constant
        y[i] = x[i]


@offload_kernel
def check_positive(x, y):
    for i in y.indices():
        assert x[i] > 0, "must be positive"  # line: assert
        y[i] = x[i]


@offload_function
def checked_root(v):
    if v < 0:
        raise ValueError("no root")  # line: callee
    return math.sqrt(v)


@offload_kernel
def roots(x, y):
    for i in y.indices():
        y[i] = checked_root(x[i])


@offload_kernel
def beyond_end(x, y):
    for i in y.indices():
        y[i] = x[i + 1]  # line: beyond


@offload_kernel
def beyond_end_2d(x, y):
    for i, j in y.indices():
        y[i, j] = x[i, j + 2]  # line: beyond 2d


@offload_kernel
def write_then_fail(x, y):
    for i in y.indices():
        y[i] = 1
        if x[i] < 0:
            raise ValueError("after a write")
