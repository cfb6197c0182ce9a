"""Kernels with assertions, where pytest leaves assert statements as they are."""

from __future__ import annotations

from numba_offload import offload_kernel


@offload_kernel
def demand(x, y):
    for i in y.indices():
        assert x[i] <= 90, "at most ninety"
        y[i] = x[i]


@offload_kernel
def demand_silently(x, y):
    for i in y.indices():
        assert x[i] <= 90
        y[i] = x[i]
