"""Kernels of the tests of staging."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from numba_offload import offload_kernel


class Pair(NamedTuple):
    """Arrays or handles, as the leaves of one argument."""

    source: object
    result: object


@offload_kernel
def add(x, y):
    for i in y.indices():
        y[i] += x[i]


@offload_kernel
def fill(value, y):
    for i in y.indices():
        y[i] = value


@offload_kernel
def add_pair(pair):
    for i in pair.result.indices():
        pair.result[i] += pair.source[i]


@offload_kernel
def total(x, sums):
    for i in x.indices():
        sums.update(0, x[i])


@offload_kernel
def sum_up(x, y):
    for i in y.indices():
        y[i] = x.sum()


@offload_kernel
def fill_then_fail(value, limit, y):
    for i in y.indices():
        y[i] = value
        if i >= limit:
            raise ValueError("limit")


@offload_kernel
def add_planes(x, y):
    for i, j in y.indices():
        y[i, j] += x[i, j]


@offload_kernel(unsafe=True)
def write_anywhere(y):
    y[0] = 7.0


def numbers(count: int) -> np.ndarray:
    """0, 1, 2 ..."""
    return np.arange(float(count))
