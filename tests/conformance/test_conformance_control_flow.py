"""Loops, branches and ways out of them, also where loops over several axes are compiled as nested loops."""

from __future__ import annotations

import kernels
import numpy as np
import pytest
from samples import small

from numba_offload import (
    Chunked1D,
    Columns,
    EvenSplit1D,
    GridStride1D,
    Linear2D,
    RedBlack,
    Region,
    Rows,
    Segments,
    Tiles2D,
    Tiles3D,
)

#: All elements belong to one thread, which visits them in row-major order.
ONE_TILE = Tiles2D(100, 100)


@pytest.mark.parametrize("strategy", [Segments([0, 20]), Chunked1D(20)], ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("limit", [0, 1, 7, 20, 99])
def test_break(target, strategy, limit):
    y = np.zeros(20)
    kernels.break_out(Region(y, strategy), limit)
    assert np.array_equal(y, np.arange(20) < limit)


def test_break_ends_one_threads_loop_only(target):
    y = np.zeros(20)
    kernels.break_out(Region(y, Chunked1D(6)), 2)
    assert y.tolist() == [1, 1, *[0] * 18]
    kernels.break_out[1, 3](Region(y, GridStride1D()), 10)
    assert np.array_equal(y, np.arange(20) < 10)


@pytest.mark.parametrize("strategy", [None, Chunked1D(3), GridStride1D(), EvenSplit1D()], ids=repr)
def test_continue(target, strategy):
    y = np.zeros(20)
    kernels.continue_past(Region(y, strategy), 3)
    assert np.array_equal(y, np.arange(20) % 3 != 0)


@pytest.mark.parametrize("at", [(0, 0), (2, 3), (4, 0), (4, 5), (9, 9)])
def test_break_leaves_the_loop_over_both_axes(target, at):
    y = np.zeros((5, 6))
    kernels.break_out_2d(Region(y, ONE_TILE), *at)
    before = np.arange(30) < at[0] * 6 + at[1] if at != (9, 9) else np.ones(30)
    assert np.array_equal(y.ravel(), before)


def test_break_in_rows_ends_the_row_owners_loop(target):
    y = np.zeros((5, 6))
    kernels.break_out_2d[1, 2](Region(y, Rows()), 2, 3)
    expected = np.ones((5, 6))
    # Thread 0 of two owns rows 0, 2 and 4.
    expected[2, 3:] = expected[4] = 0
    assert np.array_equal(y, expected)


@pytest.mark.parametrize(
    "strategy", [Linear2D(), Rows(), Columns(), Tiles2D(2, 2), ONE_TILE], ids=lambda s: repr(s)
)
def test_continue_over_both_axes(target, strategy):
    y = np.full((5, 6), -1)
    kernels.continue_past_2d(Region(y, strategy))
    i, j = np.indices(y.shape)
    assert np.array_equal(y, np.where((i + j) % 3 == 0, -1, 10 * i + j))


def test_continue_where_loops_are_not_nested(target):
    y = np.full((5, 6), -1)
    kernels.continue_past_2d(Region(y, RedBlack(0)))
    i, j = np.indices(y.shape)
    assert np.array_equal(y, np.where(((i + j) % 3 == 0) | ((i + j) % 2 == 1), -1, 10 * i + j))


@pytest.mark.parametrize("column", [0, 3, 5, 8])
def test_values_carried_through_a_loop_over_both_axes(target, column):
    y = np.full((5, 6), -1)
    kernels.break_after_write_2d(Region(y, ONE_TILE), column)
    written = column + 1 if column < 6 else 30
    assert y.ravel().tolist() == [*range(written), *[-1] * (30 - written)]


@pytest.mark.parametrize("stop", [0, 4, 5])
def test_else_of_a_loop_over_both_axes(target, stop):
    y, z = np.zeros((5, 6)), np.zeros((2, 2))
    kernels.else_after_loop_2d(Region(y, ONE_TILE), Region(z, ONE_TILE), stop)
    assert np.array_equal(y.ravel(), np.arange(30) <= 6 * stop)
    assert z.all() == (stop == 5)


@pytest.mark.parametrize("stop", [0, 3, 99])
def test_return_from_a_loop_over_three_axes(target, stop):
    y = np.zeros((2, 3, 4))
    kernels.return_early_3d(Region(y, Tiles3D(9, 9, 9)), stop)
    sums = np.indices(y.shape).sum(axis=0).ravel()
    first = np.flatnonzero(sums == stop)[0] if stop < 99 else 24
    assert np.array_equal(y.ravel(), np.arange(24) < first)


def test_while_loops(target):
    x = np.arange(1, 40)
    y = np.zeros(39, "i8")
    kernels.collatz(x, Region(y))
    expected = []
    for n in x.tolist():
        steps = 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        expected.append(steps)
    assert y.tolist() == expected


def test_break_and_continue_in_an_inner_loop(target):
    x = np.array([5, -3, 7, 12, 95, 100, 3])
    y = np.zeros(4, "i8")
    kernels.loop_in_loop(x, Region(y))
    assert np.array_equal(y, np.full(4, 24))


def test_two_loops_over_one_region(target):
    x = small("i8", 30)
    y = np.zeros(30, "i8")
    kernels.two_loops(x, Region(y, Chunked1D(4)))
    assert np.array_equal(y, 2 * x)


def test_a_loop_over_a_region_in_a_loop_over_another(target):
    y, z = np.zeros(8, "i8"), np.zeros(12, "i8")
    kernels.nested_owned[1, 4](Region(y, Chunked1D(2)), Region(z, Chunked1D(3)))
    assert np.array_equal(y, np.full(8, 3))
    assert np.array_equal(z, np.full(12, 2))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["i4", "f8", "c16"])
@pytest.mark.parametrize("strategy", [None, Tiles2D(3, 2), Rows(), Columns()], ids=repr)
def test_matrix_product(target, strategy, dtype, order):
    a, b = np.asarray(small(dtype, (7, 5)), order=order), small(dtype, (5, 9), seed=1)
    c = np.zeros((7, 9), dtype)
    kernels.matrix_product(a, b, Region(c, strategy))
    assert np.array_equal(c, a @ b)


def test_chained_conditions(target):
    x = np.array([-5, 0, 9, 10, 20, 25, 30, 55])
    y = np.full(8, 7)
    kernels.chained_conditions(x, Region(y))
    assert y.tolist() == [-1, 0, 0, 2, 2, 1, 2, 0]
