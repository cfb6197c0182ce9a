"""Kernels that must not compile: another Region's index."""

from __future__ import annotations

from numba_offload import (
    Chunked1D,
    GridStride1D,
)
from refused_kernels.table import (
    plane,
    refused,
    region,
)


@refused(lambda: region(8, Chunked1D(4)), lambda: region(8, Chunked1D(2)), named="b", says="Chunked1D(4)")
def index_of_another_partition(a, b):
    for i in a.indices():
        b[i] = 1.0  # <- here


@refused(lambda: region(8), lambda: region(8, GridStride1D()), named="b", says="GridStride1D")
def index_of_another_strategy(a, b):
    for i in a.indices():
        b[i] = 1.0  # <- here


@refused(lambda: region(8), plane, named="b", says="Linear2D")
def index_of_fewer_axes(a, b):
    for i in a.indices():
        b[i, i] = 1.0  # <- here
