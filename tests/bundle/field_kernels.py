"""Kernels as a user's file has them. Tests copy it, compile from the copy in one process, and launch without it in another."""

import math
from collections import namedtuple

import numpy as np

from numba_offload import offload_function, offload_kernel

ROW = np.dtype([("id", "i4"), ("mass", "f8"), ("ok", "?")])
Pair = namedtuple("Pair", "scale rows")
FACTOR = 3


class Complaint(Exception):
    """Of the user's: not known where the file is not."""


@offload_function
def scaled(value):
    return FACTOR * value


@offload_kernel
def saxpy(alpha, x, y):
    for i in y.indices():
        y[i] = alpha * x[i] + y[i]


@offload_kernel
def weigh(pairs, y, shift=1):
    pair, (offset, _) = pairs
    for i in y.indices():
        if pair.rows[i].ok:
            y[i] = scaled(pair.scale * pair.rows[i].mass) + offset + shift


@offload_kernel
def curved(x, y):
    for i in y.indices():
        y[i] = math.erf(x[i]) + x[i] ** 2.5 + math.gamma(x[i] + 1) + math.atan2(x[i], 0.3) + abs((x[i] + 1j) ** 1.5)


@offload_kernel
def shifted(x, shift, y):
    for i in y.indices():
        y[i] = x[i + shift]


@offload_kernel
def picky(limit, y):
    for i in y.indices():
        if y[i] > limit:
            raise Complaint("too large", y[i])
        y[i] += 1


SIGNATURES = [
    (saxpy, "f8, f8[::1], Region(f8[::1])"),
    (saxpy, "f4, f4[:], Region(f4[:], GridStride1D())"),
    (weigh, "(Pair(f8, ROW[::1]), (i8, None)), Region(f8[::1])"),
    (curved, "f8[::1], Region(f8[::1])"),
    (shifted, "f8[::1], i8, Region(f8[::1])"),
    (picky, "f8, Region(f8[::1])"),
]
