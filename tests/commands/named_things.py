"""Kernels and strategies that commands are given by name."""

from __future__ import annotations

from numba_offload import PartitioningStrategy, offload_kernel, optimize_transfers


class MirrorPairs(PartitioningStrategy):
    ndim = 1

    def count(self, t, T, shape):
        return min(max(shape[0] - 2 * t, 0), 2)

    def index(self, t, k, T, shape):
        return t if k == 0 else shape[0] - 1 - t

    def threads(self, shape):
        return (shape[0] + 1) // 2


class Overlapping(MirrorPairs):
    def index(self, t, k, T, shape):
        return t + k


class Strided(PartitioningStrategy):
    """Some elements have no owner."""

    ndim = 1
    covers = False

    def __init__(self, every):
        self.every = every

    def count(self, t, T, shape):
        return 1 if self.every * t < shape[0] else 0

    def index(self, t, k, T, shape):
        return self.every * t

    def threads(self, shape):
        return (shape[0] + self.every - 1) // self.every


class NoColumnGuard(PartitioningStrategy):
    """Forgets that a thread may lie beyond the last column."""

    ndim = 2
    coordinates = "grid"

    def count(self, t, T, shape):
        return 1 if t[0] * shape[1] + t[1] < shape[0] * shape[1] else 0

    def index(self, t, k, T, shape):
        flat = t[0] * shape[1] + t[1]
        return flat // shape[1], flat % shape[1]

    def threads(self, shape):
        return shape


class Failing(MirrorPairs):
    def count(self, t, T, shape):
        return 1 // (3 - t)


every_third = Strided(3)


@offload_kernel
def saxpy(alpha, x, y):
    for i in y.indices():
        y[i] = alpha * x[i] + y[i]


@offload_kernel
def filled(y, value):
    for i in y.indices():
        y[i] = value


@offload_kernel
def refused(x, y):
    for i in y.indices():
        x[i] = y[i]


@optimize_transfers
def host(x):
    return x
