"""Strategies of users that are no partition only as compiled code, or only later: refused all the same."""

from __future__ import annotations

import numpy as np
import pytest

from numba_offload import LaunchError, PartitioningStrategy, Region, offload_kernel


@offload_kernel
def increment(y):
    for i in y.indices():
        y[i] += 1.0


@offload_kernel
def increment_2d(y):
    for i, j in y.indices():
        y[i, j] += 1.0


class OneEach(PartitioningStrategy):
    ndim = 1

    def count(self, t, T, shape):
        return 1 if t < shape[0] else 0

    def threads(self, shape):
        return shape[0]


class Powers(OneEach):
    """A permutation of 23 numbers, in integers without an end."""

    def index(self, t, k, T, shape):
        return t**41 % shape[0]


class PlainInts(OneEach):
    """int() takes the interpreter's overflow check off the number."""

    def index(self, t, k, T, shape):
        return (int(t) * 2305843009213693951 * 8 + int(t)) % shape[0]


class WrapsToZero(OneEach):
    def index(self, t, k, T, shape):
        return (t + 1) * 2305843009213693952 * 8


@pytest.mark.parametrize("strategy, n", [(Powers(), 23), (PlainInts(), 7), (WrapsToZero(), 5), (WrapsToZero(), 5000)])
def test_arithmetic_that_wraps_around(strategy, n):
    y = np.zeros(n)
    with pytest.raises(LaunchError, match="overflows int64|both own element"):
        increment(Region(y, strategy))
    assert not y.any()


class EndlessBlock(PartitioningStrategy):
    """The product of its extents is 0 in 64 bits, as its count is."""

    ndim = 2
    covers = False

    def count(self, t, T, shape):
        return 0

    def index(self, t, k, T, shape):
        return (0, 0)

    def threads(self, shape):
        return 1

    def origin(self, t, T, shape):
        return (0, 0)

    def local_shape(self, t, T, shape):
        return (4294967296, 4294967296)


@pytest.mark.parametrize("shape", [(10, 10), (100, 100)])
def test_a_block_whose_size_wraps_around(shape):
    with pytest.raises(LaunchError, match="origin, local_shape and step give"):
        increment_2d(Region(np.zeros(shape), EndlessBlock()))


class Shifted(OneEach):
    """The last thread reads a number that the table does not have."""

    index_arrays = ("table",)

    def __init__(self, table):
        self.table = table

    def index(self, t, k, T, shape):
        return self.table[t + 1] - 1


@pytest.mark.parametrize("n", [3000, 6000])
def test_a_table_read_beyond_its_end(n):
    with pytest.raises(LaunchError, match=r"outside its \d+ numbers|out of bounds"):
        increment(Region(np.zeros(n), Shifted(np.arange(n))))
    y = np.zeros(n)
    increment(Region(y, Shifted(np.arange(n + 1))))
    assert (y == 1.0).all()


class Multiples(OneEach):
    """A permutation where `factor` and the array's size have no common divisor."""

    factor = 2

    def index(self, t, k, T, shape):
        return t * self.factor % shape[0]


def test_an_attribute_of_the_class_that_changes():
    increment(Region(np.zeros(5), Multiples()))
    Multiples.factor = 3
    try:
        y = np.zeros(4)
        with pytest.raises(LaunchError, match="Multiples has changed since it was first used"):
            increment(Region(y, Multiples()))
        assert not y.any()
    finally:
        Multiples.factor = 2
