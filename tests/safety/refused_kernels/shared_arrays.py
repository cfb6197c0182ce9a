"""Kernels that must not compile: shared arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from numba_offload import (
    Chunked1D,
    offload_function,
)
from refused_kernels.table import (
    ALIGNED,
    ARRAYS,
    CAPTURED,
    ROW,
    Pair,
    refused,
    region,
    rows,
    square,
    x,
)


@refused(x, region, named="x", says="Region(x)")
def write_to_a_shared_array(x, y):
    for i in y.indices():
        x[i] = 1.0  # <- here


@refused(x, region, named="x")
def write_to_a_shared_array_at_a_number(x, y):
    x[0] = 1.0  # <- here


@refused(x, region, named="x", says="Accumulator")
def count_in_a_shared_array(x, y):
    for i in y.indices():
        x[0] += 1.0  # <- here


@offload_function
def set_first(a):
    a[0] = 1.0  # <- here


@refused(x, region, named="x", inside=set_first)
def write_in_an_offload_function(x, y):
    set_first(x)


@njit
def set_second(a):
    a[1] = 1.0  # <- here


@refused(x, region, named="x", inside=set_second)
def write_in_a_function_of_numba(x, y):
    set_second(x)


@refused(x, region, named="x", inside=set_first)
def write_to_a_slice_in_a_callee(x, y):
    set_first(x[1:3])


@refused(x, region, named="x")
def write_through_a_slice(x, y):
    part = x[2:4]
    part[0] = 1.0  # <- here


@refused(x, region, named="x")
def fill_a_slice(x, y):
    x[:] = 0.0  # <- here


@refused(square, region, named="x")
def write_through_the_transpose(x, y):
    x.T[0, 1] = 1.0  # <- here


@refused(square, region, named="x")
def write_through_iteration(x, y):
    for row in x:
        row[0] = 1.0  # <- here


@refused(square, region, named="x")
def write_through_two_indices(x, y):
    x[1][2] = 1.0  # <- here


@refused(lambda: (np.zeros(3), np.zeros(3)), region, named="t[1]")
def write_through_a_tuple(t, y):
    t[1][0] = 1.0  # <- here


@refused(lambda: Pair(np.zeros(3), np.zeros(3)), region, named="p.second")
def write_through_a_named_tuple(p, y):
    p.second[0] = 1.0  # <- here


@refused(x, region, True, named="x")
def write_through_an_alias(x, y, flag):
    a = x if flag else x[1:]
    a[0] = 1.0  # <- here


@refused(rows, region, named="x")
def write_a_field(x, y):
    x[0].a = 1.0  # <- here


@refused(rows, region, named="x")
def write_a_field_by_name(x, y):
    x[0]["a"] = 1.0  # <- here


@refused(rows, region, named="x")
def write_a_field_of_a_field(x, y):
    x[0].n.q = 1.0  # <- here


@refused(rows, region, named="x")
def write_an_array_in_a_row(x, y):
    x[0].v[1] = 1.0  # <- here


@refused(lambda: np.zeros(6, ALIGNED), region, named="x", says="Region(x)")
def write_a_column(x, y):
    x.a[0] = 1.0  # <- here


@refused(rows, region, named="x", says="x[i].a")
def column_of_packed_rows(x, y):
    x.a[0]  # <- here


@refused(rows, lambda: region(6, dtype=ROW), True, named="x or y")
def write_a_row_of_one_or_the_other(x, y, flag):
    for i in y.indices():
        row = x[i] if flag else y[i]
        row.a = 1.0  # <- here


@refused(region, named="CAPTURED")
def write_a_captured_array(y):
    CAPTURED[0] = 1.0  # <- here


@offload_function
def read_captured(i):
    return CAPTURED[i]  # <- here


@refused(region, named="CAPTURED", inside=read_captured, says="captured")
def captured_array_in_a_callee(y):
    for i in y.indices():
        y[i] = read_captured(i)


@refused(region, named="ARRAYS", says="captured")
def captured_tuple_of_arrays(y):
    for i in y.indices():
        y[i] = ARRAYS[0][0]  # <- here


@refused(lambda: region(8, Chunked1D(4)), x, True, says="hold it on one path")
def region_or_array(y, x, flag):
    a = y if flag else x  # <- here
    a[0] = 1.0


def _closure_writes() -> Any:
    held = np.zeros(4)

    def closure_writes_what_it_captured(y):
        held[0] = 1.0  # <- here

    return closure_writes_what_it_captured


refused(region, named="held")(_closure_writes())
