"""Kernels and how their arguments are mapped: strategies."""

from __future__ import annotations

from intent_kernels.table import chunks, expect, plane, region, x
from numba_offload import (
    GridStride1D,
    Permuted,
    RedBlack,
    Strided1D,
    Tiles2D,
)


@expect("every chunk", chunks, y="from")
def chunked(y):
    for i in y.indices():
        y[i] = 1.0


@expect("whatever the thread count", lambda: region(8, GridStride1D()), y="from")
def grid_stride(y):
    for i in y.indices():
        y[i] = 1.0


@expect("elements between have no owner", lambda: region(8, Strided1D(0, 2)), y="tofrom")
def strided(y):
    for i in y.indices():
        y[i] = 1.0


@expect("a permutation of all", lambda: region(4, Permuted([3, 1, 0, 2])), y="from")
def permuted(y):
    for i in y.indices():
        y[i] = 1.0


@expect("some indices only", lambda: region(4, Permuted([3, 1])), y="tofrom")
def partly_permuted(y):
    for i in y.indices():
        y[i] = 1.0


@expect("one colour only", lambda: region((4, 4), RedBlack(0)), y="tofrom")
def one_colour(y):
    for i, j in y.indices():
        y[i, j] = 1.0


@expect("two axes", plane, y="from")
def two_axes(y):
    for i, j in y.indices():
        y[i, j] = i + j


@expect("two axes, whole index", plane, y="from")
def two_axes_whole(y):
    for p in y.indices():
        y[p] = 1.0


@expect("tiles", lambda: region((5, 5), Tiles2D(2, 2)), lambda: x((5, 5)), y="from", x="to")
def tiles(y, x):
    for i, j in y.indices():
        y[i, j] = x[j, i]


@expect("written by blocks, not proved whole", chunks, y="tofrom")
def local_writes(y):
    block = y.local
    for k in range(block.size):
        block[k] = 1.0


@expect("read by blocks", chunks, chunks, y="to", z="from")
def local_reads(y, z):
    for i in z.indices():
        z[i] = y.local[0]


@expect("the block shows elements that are still to be assigned", chunks, y="tofrom")
def local_beside_the_loop(y):
    for i in y.indices():
        y[i] = 1.0
        block = y.local
        y[i] = block[block.size - 1]


@expect("the block's shape is not its content", chunks, y="from")
def local_shape(y):
    n = y.shape[0] + y.origin
    for i in y.indices():
        y[i] = n
