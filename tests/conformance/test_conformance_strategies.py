"""Every strategy on every dtype: who owns an element writes it, exactly once, and nothing else changes."""

from __future__ import annotations

import kernels
import numpy as np
import pytest
from partitions import ALL, PLAIN
from samples import EVERY_DTYPE, name_of, same_bytes, sample

from numba_offload import (
    BlockStriped1D,
    Chunked1D,
    EvenSplit1D,
    GridStride1D,
    LaunchError,
    Linear1D,
    Linear2D,
    Linear3D,
    PerBlock1D,
    Region,
    Rows,
    Segments,
    Strided1D,
    Tiles2D,
)


@pytest.mark.parametrize("partition", ALL, ids=lambda p: p.name)
def test_each_owned_element_is_written_once(target, partition):
    y = np.full(partition.shape, 7)
    kernels.increment(Region(y, partition.strategy))
    assert np.array_equal(y, 7 + partition.mask())


@pytest.mark.parametrize("dtype", EVERY_DTYPE, ids=name_of)
@pytest.mark.parametrize("partition", PLAIN, ids=lambda p: p.name)
def test_each_strategy_copies_each_dtype_bit_by_bit(target, partition, dtype):
    x = sample(dtype, partition.shape)
    y = sample(dtype, partition.shape, seed=99)
    expected = y.copy()
    expected[partition.mask()] = x[partition.mask()]
    kernels.copy(x, Region(y, partition.strategy))
    assert same_bytes(y, expected)


@pytest.mark.parametrize("n", [1, 2, 255, 256, 257, 5000])
@pytest.mark.parametrize(
    "strategy",
    [Linear1D(), GridStride1D(), Chunked1D(7), BlockStriped1D(2), EvenSplit1D(), PerBlock1D(), Chunked1D(10**6)],
    ids=repr,
)
def test_sizes_around_a_block(target, strategy, n):
    y = np.zeros(n, "i8")
    kernels.numbers(Region(y, strategy))
    assert np.array_equal(y, np.arange(n))


@pytest.mark.parametrize("shape", [(1, 1), (1, 300), (300, 1), (33, 9), (64, 64)])
@pytest.mark.parametrize("strategy", [Linear2D(), Tiles2D(3, 5), Tiles2D(1000, 1), Rows()], ids=repr)
def test_shapes_around_a_block(target, strategy, shape):
    y = np.zeros(shape, "i8")
    kernels.coordinates_2d(Region(y, strategy))
    r, c = np.indices(shape)
    assert np.array_equal(y, 100 * r + c)


@pytest.mark.parametrize("partition", [p for p in ALL if len(p.shape) == 3], ids=lambda p: p.name)
def test_coordinates_of_three_axes(target, partition):
    y = np.zeros(partition.shape, "i8")
    kernels.coordinates_3d(Region(y, partition.strategy))
    p, r, c = np.indices(partition.shape)
    assert np.array_equal(y, 10000 * p + 100 * r + c)


def launches(*pairs):
    return pytest.mark.parametrize(("blocks", "threads"), pairs)


@launches((1, 1), (1, 64), (3, 5), (7, 256), ((2, 3), (4, 2)), ((2, 1, 2), (3, 2, 2)), (1, (8, 1, 4)))
@pytest.mark.parametrize("strategy", [GridStride1D(), EvenSplit1D()], ids=repr)
def test_any_launch_covers(target, strategy, blocks, threads):
    y = np.zeros(1003, "i8")
    kernels.increment[blocks, threads](Region(y, strategy))
    assert np.array_equal(y, np.ones(1003))


@launches((1, 128), (9, 64), ((4, 2), (8, 4)), ((1, 2, 3), (5, 3, 2)), (1, (1, 1, 64)))
@pytest.mark.parametrize(
    "strategy",
    [Linear1D(), Chunked1D(3), Strided1D(0, 1), Segments(list(range(61))), GridStride1D()],
    ids=lambda s: type(s).__name__,
)
def test_surplus_threads_and_blocks_of_several_axes(target, strategy, blocks, threads):
    y = np.zeros(60, "i8")
    kernels.increment[blocks, threads](Region(y, strategy))
    assert np.array_equal(y, np.ones(60))


@launches((25, 4), ((5, 5), (2, 2)), ((2, 3, 5), (1, 2, 3)), (40, 1))
@pytest.mark.parametrize("strategy", [BlockStriped1D(2), PerBlock1D()], ids=repr)
def test_strategies_over_blocks(target, strategy, blocks, threads):
    y = np.zeros(23, "i8")
    kernels.increment[blocks, threads](Region(y, strategy))
    assert np.array_equal(y, np.ones(23))


@launches(((3, 2), (8, 8)), ((1, 1), (32, 16)), ((20, 13), (1, 1)))
@pytest.mark.parametrize("strategy", [Linear2D(), Tiles2D(2, 2), Rows()], ids=repr)
def test_two_axes_with_surplus_threads(target, strategy, blocks, threads):
    y = np.zeros((13, 19), "i8")
    kernels.increment[blocks, threads](Region(y, strategy))
    assert np.array_equal(y, np.ones((13, 19)))


@pytest.mark.parametrize("strategy", [Linear2D(), Tiles2D(2, 2)], ids=repr)
def test_planes_of_threads_that_would_own_the_same_elements_are_refused(target, strategy):
    y = np.zeros((13, 19), "i8")
    with pytest.raises(LaunchError, match=r"'y'.*2 threads would own each element"):
        kernels.increment[(5, 5, 2), (4, 4, 1)](Region(y, strategy))
    with pytest.raises(LaunchError, match="'y'"):
        kernels.nested_owned(Region(y, strategy), Region(np.zeros((2, 3, 4), "i8"), Linear3D()))
    assert not y.any()


def test_linear_strategies_take_blocks_of_three_axes(target):
    y = np.zeros((13, 19), "i8")
    kernels.increment[(1, 2, 2), (2, 2, 2)](Region(y, Rows()))
    assert np.array_equal(y, np.ones((13, 19)))


@pytest.mark.parametrize(
    ("strategy", "shape", "blocks", "threads"),
    [
        (Linear1D(), (1000,), 3, 256),
        (Chunked1D(10), (1000,), 1, 99),
        (Linear2D(), (8, 4), 1, 32),
        (Linear2D(), (4, 8), (1, 1), (4, 8)),
        (Tiles2D(2, 2), (8, 8), 1, (4, 3)),
        (PerBlock1D(), (10,), 9, 64),
        (BlockStriped1D(1), (1000,), 3, 256),
    ],
    ids=lambda v: repr(v).replace(" ", ""),
)
def test_a_launch_with_too_few_threads_is_refused(target, strategy, shape, blocks, threads):
    y = np.zeros(shape)
    with pytest.raises(LaunchError, match=r"'y'.*needs"):
        kernels.increment[blocks, threads](Region(y, strategy))
    assert not y.any()


def test_regions_of_several_strategies_in_one_launch(target):
    y, z = np.zeros(100, "i8"), np.zeros(40, "i8")
    kernels.nested_owned[1, 30](Region(y, Chunked1D(4)), Region(z, GridStride1D()))
    # 25 of 30 threads own four elements of y, and go through their one or two of z as often.
    assert np.array_equal(z, np.where(np.arange(40) % 30 < 25, 4, 0))
    assert np.array_equal(y, np.where(np.arange(100) // 4 < 10, 2, 1))
