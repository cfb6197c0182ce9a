"""Kernels that must not compile: a Region as a whole."""

from __future__ import annotations

import numpy as np

from numba_offload import (
    Accumulator,
    GridStride1D,
)
from refused_kernels.table import (
    refused,
    region,
    square,
    x,
)


@refused(region, says="second array")
def neighbour_of_the_region(y):
    for i in y.indices():
        y[i] = y[i - 1]  # <- here


@refused(region, says="slice")
def slice_of_a_region(y):
    part = y[1:3]  # <- here
    y[0] = part[0]


@refused(region)
def whole_region_by_ellipsis(y):
    y[...] = 0.0  # <- here


@refused(region)
def region_at_no_index(y):
    y[()] = 0.0  # <- here


@refused(region, says="iterating")
def iterating_over_a_region(y):
    for value in y:  # <- here
        y[0] = value


@refused(region)
def updating_a_region_as_a_whole(y):
    y += 1.0  # <- here


@refused(region)
def truth_of_a_region(y):
    if y:  # <- here
        pass


@refused(lambda: region(6, GridStride1D()), says="not one block")
def local_of_a_partition_without_blocks(y):
    y.local[0] = 1.0  # <- here


@refused(region, says=".flat")
def flat(y):
    y.flat[0] = 1.0  # <- here


@refused(x, region, named="x", says=".flat")
def flat_of_a_shared_array(x, y):
    x.flat[0] = 1.0  # <- here


@refused(x, region, named="x", says=".fill")
def fill(x, y):
    x.fill(1.0)  # <- here


@refused(x, region, named="x", says=".view")
def reinterpretation(x, y):
    x.view(np.int64)[0] = 1  # <- here


@refused(square, region, named="x", says="fill_diagonal")
def fill_diagonal(x, y):
    np.fill_diagonal(x, 1.0)  # <- here


@refused(x, region, named="x", says="ascontiguousarray")
def contiguous_copy(x, y):
    np.ascontiguousarray(x)[0] = 1.0  # <- here


@refused(x, region, named="x", says="nditer")
def nditer(x, y):
    for value in np.nditer(x):  # <- here
        value[()] = 1.0


@refused(x, region, named="x")
def ufunc_with_out(x, y):
    np.add(x, x, x)  # <- here


@refused(x, region, named="x")
def arithmetic_on_whole_arrays(x, y):
    y = x + x  # <- here


@refused(x, named="x", says="Region(x)")
def indices_of_a_shared_array(x):
    for i in x.indices():  # <- here
        x[i] = 1.0


@refused(lambda: Accumulator(np.zeros(3), "+"), named="total", says="update")
def reading_an_accumulator(total):
    total.update(0, total[1])  # <- here


@refused(lambda: Accumulator(np.zeros(3), "+"), named="total", says="update")
def assigning_to_an_accumulator(total):
    total[0] = 1.0  # <- here


@refused(lambda: Accumulator(np.zeros((3, 3)), "+"), named="total", says=".T")
def transposing_an_accumulator(total):
    total.T[0, 0]  # <- here
