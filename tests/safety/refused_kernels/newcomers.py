"""Kernels that must not compile: what a newcomer gets wrong."""

from __future__ import annotations

import math

import numpy as np

from numba_offload import (
    Accumulator,
    Chunked1D,
    Rows,
    offload_function,
)
from refused_kernels.table import (
    plane,
    refused,
    region,
    square,
    x,
)


def plain_helper(v):
    return v * v


@refused(x, region, named="", says="@offload_function")
def undecorated_helper(x, y):
    for i in y.indices():
        y[i] = plain_helper(x[i])  # <- here


A_REGION, A_LIST, AN_OBJECT = region(), [1.0], object()


@refused(region, named="A_REGION", says="captured")
def captured_region(y):
    for i in A_REGION.indices():  # <- here
        y[i] = 1.0


@refused(region, named="A_LIST", says="captured")
def captured_list(y):
    for i in y.indices():
        y[i] = A_LIST[0]  # <- here


@refused(region, named="AN_OBJECT", says="captured")
def captured_object(y):
    for i in y.indices():
        y[i] = AN_OBJECT.a  # <- here


@refused(x, region, named="x", says="indexed by a float64")
def float_index(x, y):
    for i in y.indices():
        y[i] = x[i / 2]  # <- here


@refused(x, x, region, named="x", says="indexed by a float64")
def index_out_of_a_float_array(x, k, y):
    for i in y.indices():
        y[i] = x[k[i]]  # <- here


@refused(x, region, named="x", says="1 axis")
def too_many_indices(x, y):
    for i in y.indices():
        y[i] = x[i, i]  # <- here


@refused(x, plane, named="x", says="whole index of y (2 axes)")
def whole_index_of_more_axes(x, y):
    for i in y.indices():
        y[i] = x[i]  # <- here


@refused(square, plane, named="x", says="unpack it")
def whole_index_among_others(x, y):
    for i in y.indices():
        y[i] = x[i, 0]  # <- here


@refused(lambda: region((4, 4), Rows()), says="whole index")
def row_and_column(y):
    for i in y.indices():
        y[i, 0] = 1.0  # <- here


@refused(lambda: np.array(1.0), region, named="x", says="x[()]")
def index_of_no_axes(x, y):
    for i in y.indices():
        y[i] = x[i]  # <- here


@refused(x, lambda: np.arange(6), region, named="x", says="x[k[i]]")
def index_array(x, k, y):
    x[k]  # <- here


@refused(x, region, named="x", says="'>'")
def mask(x, y):
    y[x > 0] = 1.0  # <- here


@refused(lambda: region(8, Chunked1D(2)), says="indexing and slicing")
def fill_of_a_block(y):
    y.local.fill(1.0)  # <- here


@refused(lambda: Accumulator(np.zeros(3)), named="acc", says="float64")
def update_at_a_float(acc):
    acc.update(0.5, 1.0)  # <- here


@refused(lambda: Accumulator(np.zeros(3)), named="acc", says="1 argument")
def update_without_a_value(acc):
    acc.update(0)  # <- here


@refused(x, named="x", says="Accumulator(x)")
def update_of_an_array(x):
    x.update(0, 1.0)  # <- here


@refused(x, region, named="x", says="'*'")
def scalar_times_array(x, y):
    for i in y.indices():
        y[i] = 2 * x  # <- here


@refused(lambda: np.zeros(6, complex), region, says="complex128")
def complex_into_float(x, y):
    for i in y.indices():
        y[i] = x[i]  # <- here


@refused(square, region, says="of 1 axis is assigned")
def row_into_element(x, y):
    for i in y.indices():
        y[i] = x[i]  # <- here


@refused(region, says="None is assigned")
def none_into_element(y):
    for i in y.indices():
        y[i] = None  # <- here


@refused(region, says="a string is assigned")
def string_into_element(y):
    for i in y.indices():
        y[i] = "a"  # <- here


@refused(lambda: np.zeros(6, "m8[s]"), lambda: region(6, dtype="m8[D]"), says="unit")
def another_unit(x, y):
    for i in y.indices():
        y[i] = x[i]  # <- here


@refused(lambda: region(6, dtype=complex), named="", says=".real")
def real_part_assigned(z):
    for i in z.indices():
        z[i].real = 1.0  # <- here


@refused(region, named="", says="not defined")
def undefined_name(y):
    for i in y.indices():
        y[i] = undefined_thing  # noqa: F821  # <- here


@refused(region, named="", says="no 'sine'")
def misspelt_function(y):
    for i in y.indices():
        y[i] = math.sine(1.0)  # <- here


@refused(x, region, named="", says="reversed()")
def builtin_that_is_missing(x, y):
    for _ in reversed(x):  # <- here
        pass


@refused(x, region, named="", says="generator expression")
def generator_expression(x, y):
    for i in y.indices():
        y[i] = sum(v for v in x)  # <- here


@refused(region, named="", says="top of the file")
def import_in_a_kernel(y):
    import math as inner  # <- here

    for i in y.indices():
        y[i] = inner.pi


@refused(x, region, named="", says="a if condition else b")
def where_of_scalars(x, y):
    for i in y.indices():
        y[i] = np.where(x[i] > 0, 1.0, 0.0)  # <- here


@refused(region, says="1 axis")
def one_axis_unpacked(y):
    for i, _ in y.indices():  # <- here
        y[i] = 1.0


@offload_function
def of_two(a, b):
    return a + b


@refused(region, named="", says="of_two(a, b)")
def called_with_too_little(y):
    for i in y.indices():
        y[i] = of_two(1)  # <- here


@refused(2.0, x, named="y", says="order of the parameters")
def swapped_arguments(y, a):
    for i in y.indices():  # <- here
        y[i] = a


@refused(region, named="", says="raise ... from")
def raise_from_none(y):
    raise ValueError("no") from None  # <- here
