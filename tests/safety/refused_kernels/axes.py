"""Kernels that must not compile: several axes."""

from __future__ import annotations

from numba_offload import (
    offload_function,
)
from refused_kernels.table import (
    plane,
    refused,
)


@refused(plane, says="one unpacking")
def swapped_components(y):
    for i, j in y.indices():
        y[j, i] = 1.0  # <- here


@refused(plane, says="one unpacking")
def components_of_two_loops(y):
    for i, _ in y.indices():
        for _, j in y.indices():
            y[i, j] = 1.0  # <- here


@refused(plane, says="one unpacking")
def components_of_two_iterations(y):
    for i, j in y.indices():
        row = i
    for i, j in y.indices():
        y[row, j] = 1.0  # <- here


@refused(plane, says="one unpacking")
def one_component_twice(y):
    for i, _ in y.indices():
        y[i, i] = 1.0  # <- here


@refused(plane, says="one unpacking")
def reversed_index(y):
    for p in y.indices():
        y[p[::-1]] = 1.0  # <- here


@refused(plane, says="one unpacking")
def components_mixed_in_a_tuple_of_tuples(y):
    for i, _ in y.indices():
        for _, j in y.indices():
            for p in ((i, j), (i, j)):
                y[p] = 1.0  # <- here


@refused(plane, says="plain integer")
def component_and_number(y):
    for i, _ in y.indices():
        y[i, 0] = 1.0  # <- here


@refused(plane)
def a_row_at_an_owned_row_number(y):
    for i, _ in y.indices():
        y[i] = 1.0  # <- here


@offload_function
def write_at(y, i, j):
    y[i, j] = 1.0  # <- here


@refused(plane, inside=write_at, says="whole index")
def components_passed_separately(y):
    for i, j in y.indices():
        write_at(y, i, j)
