"""Kernels, arrays and the discrete memory model for the tests of what is shown."""

from __future__ import annotations

import numpy as np

from numba_offload import offload_kernel

N = 1000


@offload_kernel
def saxpy(alpha, x, y):
    for i in y.indices():
        y[i] = alpha * x[i] + y[i]


@offload_kernel
def scale(factor, x, y):
    for i in y.indices():
        y[i] = factor * x[i]


@offload_kernel
def divide(x, y):
    for i in y.indices():
        y[i] = 1 // x[i]


def arrays(n: int = N) -> tuple[np.ndarray, np.ndarray]:
    return np.arange(n, dtype=np.float64), np.ones(n)
