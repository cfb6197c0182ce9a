"""What kernels may ask of arrays that they share: any index, slices, views of views, iteration, shape."""

from __future__ import annotations

import kernels
import numpy as np
import pytest
from samples import small

from numba_offload import (
    Chunked1D,
    EvenSplit1D,
    Linear1D,
    Linear2D,
    Linear3D,
    PerBlock1D,
    Region,
    Segments,
    Tiles2D,
    Tiles3D,
)

CUBE = np.arange(60).reshape(3, 4, 5) % 17


def output(n):
    return np.zeros(n, "i8")


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
def test_indices_of_every_integer_type(target, dtype):
    x = np.arange(100.0, 150.0)
    where = small(dtype, 20, low=-50, high=50)
    y = np.zeros(20)
    kernels.gather(x, where, Region(y))
    assert np.array_equal(y, x[where])


def test_negative_indices_wrap_once(target):
    x = np.arange(9)
    y = output(9)
    kernels.from_the_end(x, Region(y))
    assert np.array_equal(y, x[::-1])


@pytest.mark.parametrize("kernel", [kernels.transposed, kernels.transposed_attribute])
def test_transposed_reads(target, kernel):
    x = small("i8", (5, 8))
    y = np.zeros((8, 5), "i8")
    kernel(x, Region(y))
    assert np.array_equal(y, x.T)


@pytest.mark.parametrize("dtype", ["i4", "f8", "c16"])
@pytest.mark.parametrize("part", [np.s_[:], np.s_[:, ::2], np.s_[::-1, 1:4]], ids=str)
def test_rows_as_arrays(target, part, dtype):
    x = small(dtype, (7, 9))[part]
    y = np.zeros(len(x), dtype)
    kernels.row_sums(x, Region(y))
    assert np.array_equal(y, x.sum(axis=1))


def test_iteration_over_rows_and_elements(target):
    x = small("i8", (4, 6))
    y = output(3)
    kernels.iterate_rows(x[:, ::2], Region(y))
    assert np.array_equal(y, np.full(3, x[:, ::2].sum()))


@pytest.mark.parametrize(
    "piece",
    [(0, 5, 1), (2, 9, 3), (-4, 11, 1), (8, 2, -1), (20, -20, -2), (5, 5, 1), (7, 3, 1), (-100, 100, 4), (10, 0, -3)],
)
def test_slices_with_run_time_bounds(target, piece):
    x = small("i8", 11)
    y = output(2)
    kernels.iterate_slice(x, Region(y), *piece)
    part = x[slice(*piece)]
    total = 0
    for value in part.tolist():
        total = 3 * total + value
    assert np.array_equal(y, np.full(2, 1000 * len(part) + total))


def test_a_slice_of_step_zero_is_an_error(target):
    y = output(2)
    with pytest.raises(ValueError, match="slice step"):
        kernels.iterate_slice(np.arange(3), Region(y), 0, 3, 0)


def test_slices_of_slices(target):
    x = small("i8", (5, 4), low=0)
    y = output(2)
    kernels.slices_2d(x, Region(y))
    block = x[1:, ::-1]
    expected = block[0, 0] + 10 * block[-1, 1] + 100 * x[-2, -1] + 1000 * 4 + 10000 * 4
    assert np.array_equal(y, np.full(2, expected))


def test_planes_lines_and_points_of_a_cube(target):
    y = output(3)
    kernels.sub_views_3d(CUBE, Region(y))
    new = CUBE[:, None, 0]
    expected = [
        CUBE[i, 1, 2] + 100 * CUBE[1, 1, i] + 10000 * CUBE[i, 1, 0] + 1000000 * (new.ndim + 1) for i in range(3)
    ]
    assert np.array_equal(y, expected)


def test_a_stencil_with_guards(target):
    x = small("i8", 40)
    y = output(40)
    kernels.stencil(x, Region(y, Chunked1D(7)))
    padded = np.concatenate([x[:1], x, x[-1:]])
    assert np.array_equal(y, padded[:-2] + 2 * x + padded[2:])


def test_shape_size_and_length(target):
    y = output(1)
    kernels.questions(np.zeros((3, 5), "f4")[:, ::2], Region(y))
    assert y[0] == 9 + 20 + 300 + 3000 + 40000


BLOCKS = [Chunked1D(4), EvenSplit1D(), Segments([0, 3, 3, 11, 26]), Linear1D(), PerBlock1D()]


def pieces(strategy, n):
    """The blocks that ``strategy`` makes of ``n`` elements, as (start, length)."""
    if isinstance(strategy, Chunked1D):
        cuts = [*range(0, n, strategy.k), n]
    elif isinstance(strategy, Segments):
        cuts = list(strategy.offsets)
    else:
        cuts = list(range(n + 1))
    return [(a, b - a) for a, b in zip(cuts[:-1], cuts[1:], strict=True)]


def sized(kernel, strategy, n):
    """How many ways EvenSplit1D splits is the target's choice, unless it is said."""
    return kernel[1, n] if isinstance(strategy, EvenSplit1D) else kernel


@pytest.mark.parametrize("step", [1, 2, -1])
@pytest.mark.parametrize("strategy", BLOCKS, ids=lambda s: type(s).__name__)
def test_blocks_and_their_origins(target, strategy, step):
    base = np.zeros(52, "i8") if abs(step) == 2 else output(26)
    y = base[::step]
    sized(kernels.block_origin, strategy, 26)(Region(y, strategy))
    expected = [1000 * a + k for a, length in pieces(strategy, 26) for k in range(length)]
    assert np.array_equal(y, expected)
    if step == 2:
        assert not base[1::2].any()


@pytest.mark.parametrize("strategy", BLOCKS[:3], ids=lambda s: type(s).__name__)
def test_a_scan_of_each_block(target, strategy):
    y = small("i8", 26)
    expected = np.concatenate([np.cumsum(y[a : a + n]) for a, n in pieces(strategy, 26)])
    sized(kernels.scan_block, strategy, 26)(Region(y, strategy))
    assert np.array_equal(y, expected)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("strategy", [Tiles2D(2, 3), Tiles2D(5, 1), Linear2D(), Tiles2D(100, 100)], ids=repr)
def test_tiles_and_their_origins(target, strategy, order):
    y = np.zeros((7, 8), "i8", order=order)
    kernels.block_origin_2d(Region(y, strategy))
    h, w = getattr(strategy, "h", 1), getattr(strategy, "w", 1)
    i, j = np.indices(y.shape)
    assert np.array_equal(y, 1000 * (10 * (i // h * h) + j // w * w) + 10 * (i % h) + j % w)


@pytest.mark.parametrize("strategy", [Tiles3D(2, 3, 2), Linear3D()], ids=repr)
def test_tiles_of_three_axes(target, strategy):
    y = np.zeros((3, 7, 5), "i8")
    kernels.block_origin_3d(Region(y, strategy))
    d, h, w = (getattr(strategy, name, 1) for name in "dhw")
    p, i, j = np.indices(y.shape)
    origin = 100 * (p // d * d) + 10 * (i // h * h) + j // w * w
    assert np.array_equal(y, 10000 * origin + 100 * (p % d) + 10 * (i % h) + j % w)


def test_a_block_written_from_a_shared_array(target):
    x = small("i8", 26)
    y = output(26)
    kernels.block_from(x, Region(y, Chunked1D(4)))
    expected = np.concatenate([x[a : a + n][::-1] for a, n in pieces(Chunked1D(4), 26)])
    assert np.array_equal(y, expected)


def test_slices_of_a_block_are_assigned(target):
    y = output(10)
    kernels.block_slices(Region(y, Chunked1D(4)))
    assert np.array_equal(y, [1, 5, 1, 9, 1, 5, 1, 9, 1, 9])


def test_a_block_has_bounds(target):
    y = output(10)
    with pytest.raises(IndexError, match=r"index [42] is out of bounds for axis 0 with size [42].*thread"):
        kernels.block_past_its_end(Region(y, Chunked1D(4)))
    if target.separate:
        assert not y.any()
