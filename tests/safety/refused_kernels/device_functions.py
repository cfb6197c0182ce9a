"""Kernels that must not compile: device functions."""

from __future__ import annotations

from numba import njit

from numba_offload import (
    offload_function,
)
from refused_kernels.table import (
    refused,
    region,
)


@offload_function
def write_one(y, k):
    y[k] = 1.0


@refused(region, says="is passed on")
def undefined_index_passed_on(y):
    for i in y.indices():
        pass
    write_one(y, i)  # <- here


@refused(region, says="is passed on")
def undefined_index_passed_on_by_star(y):
    for i in y.indices():
        pass
    write_one(y, *(i,))  # <- here


@offload_function
def write_first_of(t):
    for k in t[0]:
        t[1][k] = 1.0  # <- here


@refused(region, inside=write_first_of)
def undefined_index_in_nested_tuples(y):
    for i in y.indices():
        write_first_of(((i, i), y))


@offload_function
def last_index(y):
    for i in y.indices():
        pass
    return i  # <- here


@refused(region, inside=last_index, says="is returned")
def undefined_index_returned(y):
    y[last_index(y)] = 1.0


@njit
def write_neighbour(y, i):
    y[i + 1] = 1.0  # <- here


@refused(region, inside=write_neighbour, says="plain integer")
def plain_index_in_a_function_of_numba(y):
    for i in y.indices():
        write_neighbour(y, i)


@offload_function  # <- here
def countdown(y, n):
    if n > 0:
        countdown(y, n - 1)


@refused(region, named="", inside=countdown, says="calls itself")
def recursive_device_function(y):
    countdown(y, 3)


@njit
def owned(y):
    for i in y.indices():
        yield i  # <- here


@refused(region, named="", inside=owned, says="generators")
def generator_of_indices(y):
    for i in owned(y):
        y[i] = 1.0
