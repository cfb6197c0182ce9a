"""Rows of structured arrays, accumulators, reductions, reads of the other colour, a user's own strategy, raw kernels."""

from __future__ import annotations

import kernels
import numpy as np
import pytest
from samples import COMPLEX, FLOATS, INTEGERS, small

from numba_offload import (
    Accumulator,
    AliasError,
    Chunked1D,
    LaunchError,
    PartitioningStrategy,
    RedBlack,
    Region,
    offload_kernel,
    profile,
)

# ------------------------------------------------------------------------------------------------------- records


def nested(dtype, n=7):
    rows = np.full(n * dtype.itemsize, 0x11, "u1").view(dtype)
    rows["at"], rows["inner"]["n"], rows["inner"]["m"] = np.arange(3 * n).reshape(n, 3), np.arange(n), 0.5
    rows["flag"] = np.arange(n) % 2
    return rows


layouts = pytest.mark.parametrize("dtype", [kernels.NESTED, kernels.NESTED_PACKED], ids=["aligned", "packed"])


@layouts
@pytest.mark.parametrize("step", [1, 2, -1])
def test_nested_fields_are_read(target, dtype, step):
    rows = nested(dtype)[::step]
    y = np.zeros(len(rows))
    kernels.record_nested_read(rows, Region(y))
    expected = 100 * rows["inner"]["n"] + rows["at"].sum(axis=1)
    assert np.array_equal(y, np.where(rows["flag"], -expected, expected))


@layouts
@pytest.mark.parametrize("step", [1, 2])
def test_nested_fields_are_written_and_nothing_else(target, dtype, step):
    rows = nested(dtype)
    expected = rows.view("u1").copy().view(rows.dtype)
    part = expected[::step]
    part["at"][:, 1], part["inner"]["n"], part["flag"] = 5 * np.arange(len(part)), np.arange(len(part)), True
    kernels.record_nested_write(Region(rows[::step]))
    assert rows.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", [kernels.PACKED, kernels.ALIGNED], ids=["packed", "aligned"])
def test_rows_of_a_block(target, dtype):
    rows = np.full(10 * dtype.itemsize, 0x5A, "u1").view(dtype)
    rows["mass"] = np.arange(10)
    expected = rows.view("u1").copy().view(dtype)
    expected["mass"] += np.arange(10) % 4
    kernels.record_block(Region(rows, Chunked1D(4)))
    assert rows.tobytes() == expected.tobytes()


# -------------------------------------------------------------------------------------------------- accumulators


@pytest.mark.parametrize("n", [10, 9000])
@pytest.mark.parametrize("dtype", ["i4", "i8", "u8", "f8"])
def test_a_histogram(target, dtype, n):
    x = np.random.default_rng(1).integers(0, 13, n)
    counts = np.full(13, 100, dtype)
    done = np.zeros(n, bool)
    kernels.histogram(x, Region(done), Accumulator(counts, "+"))
    assert np.array_equal(counts, 100 + np.bincount(x, minlength=13))
    assert done.all()


_OPERATIONS = {
    "+": np.add, "min": np.minimum, "max": np.maximum, "&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor,
}


_EXIST = (
    [(dtype, op) for dtype in INTEGERS for op in _OPERATIONS]
    + [(dtype, op) for dtype in FLOATS for op in ("+", "min", "max")]
    + [(dtype, "+") for dtype in COMPLEX]
)


@pytest.mark.parametrize(("dtype", "op"), _EXIST)
def test_every_operation_on_every_type(target, dtype, op):
    # Sums of small integers are meant to wrap around.
    x = small(dtype, 6000, low=-9, high=120)
    start = small(dtype, 1, seed=5)
    expected = _OPERATIONS[op].reduce(x, initial=start[0], dtype=dtype)
    out = start.copy()
    kernels.accumulate_one(x, Region(np.zeros(6000, bool)), Accumulator(out, op))
    assert out[0] == expected


@pytest.mark.parametrize("order", ["C", "F"])
def test_accumulating_over_two_axes_at_any_index(target, order):
    rng = np.random.default_rng(2)
    row, column = rng.integers(-4, 4, 5000), rng.integers(-6, 6, 5000)
    x = small("f8", 5000)
    whole = np.zeros((8, 6), order=order)
    part = whole[::2]
    expected = whole.copy()
    np.add.at(expected[::2], (row, column), x)
    kernels.accumulate_at(x, row, column, Region(np.zeros(5000, bool)), Accumulator(part, "+"))
    assert np.array_equal(whole, expected)


def test_an_accumulator_has_bounds(target):
    counts = np.zeros(5, "i8")
    with pytest.raises(IndexError, match=r"index 7 is out of bounds for axis 0 with size 5 .*counts"):
        kernels.histogram(np.array([1, 7]), Region(np.zeros(2, bool)), Accumulator(counts, "+"))
    if target.separate:
        assert not counts.any()


def test_an_accumulator_is_written_so_it_may_not_alias_or_be_read_only(target):
    counts = np.zeros(5, "i8")
    with pytest.raises(AliasError, match=r"'x'.*'counts'|'counts'.*'x'"):
        kernels.histogram(counts, Region(np.zeros(5, bool)), Accumulator(counts, "+"))
    counts.flags.writeable = False
    with pytest.raises(LaunchError, match="'counts'"):
        kernels.histogram(np.zeros(5, "i8"), Region(np.zeros(5, bool)), Accumulator(counts, "+"))


def test_an_accumulator_moves_both_ways(target):
    x, counts, done = np.zeros(50, "i8"), np.zeros(5, "i8"), np.zeros(50, bool)
    arguments = (x, Region(done), Accumulator(counts, "+"))
    assert kernels.histogram.mappings(*arguments) == {"x": "to", "done": "from", "counts": "tofrom"}
    with profile() as counted:
        kernels.histogram(*arguments)
    moved = (x.nbytes + counts.nbytes, counts.nbytes + done.nbytes) if target.separate else (0, 0)
    assert (counted.h2d_bytes, counted.d2h_bytes) == moved


# ---------------------------------------------------------------------------------------------------- reductions


@pytest.mark.parametrize("layout", ["C", "reversed", "strided", "transposed"])
@pytest.mark.parametrize("dtype", ["?", "i1", "u4", "i8", "f4", "f8"])
def test_reductions_of_rows(target, dtype, layout):
    base = small(dtype, (6, 8), low=-3, high=4)
    x = {"C": base, "reversed": base[::-1, ::-1], "strided": base[:, 1::3], "transposed": base.T}[layout]
    n = len(x)
    low, high = np.zeros(n, dtype), np.zeros(n, dtype)
    mean = np.zeros(n, "f4" if dtype == "f4" else "f8")
    anything, everything = np.zeros(n, bool), np.zeros(n, bool)
    kernels.row_statistics(x, *map(Region, (low, high, mean, anything, everything)))
    assert np.array_equal(low, x.min(axis=1))
    assert np.array_equal(high, x.max(axis=1))
    np.testing.assert_allclose(mean, x.mean(axis=1), rtol=1e-6 if dtype == "f4" else 1e-14, atol=1e-7)
    assert np.array_equal(anything, x.any(axis=1))
    assert np.array_equal(everything, x.all(axis=1))


def test_reductions_propagate_nan(target):
    x = np.arange(12.0).reshape(3, 4)
    x[1, 2] = np.nan
    outputs = [np.zeros(3) for _ in range(3)] + [np.zeros(3, bool) for _ in range(2)]
    kernels.row_statistics(x, *map(Region, outputs))
    assert np.array_equal(outputs[0], x.min(axis=1), equal_nan=True)
    assert np.array_equal(outputs[1], x.max(axis=1), equal_nan=True)
    assert np.array_equal(outputs[2], x.mean(axis=1), equal_nan=True)


def test_reductions_of_whole_arrays(target):
    x = small("i8", (5, 7))
    y = np.zeros(7, "i8")
    kernels.whole_statistics(x, Region(y))
    assert np.array_equal(y, x.max() - x.min() + x.sum(axis=0))


def test_a_minimum_of_nothing_is_a_value_error(target):
    outputs = [np.zeros(3) for _ in range(3)] + [np.zeros(3, bool) for _ in range(2)]
    with pytest.raises(ValueError, match="zero-size array"):
        kernels.row_statistics(np.zeros((3, 0)), *map(Region, outputs))


# --------------------------------------------------------------------------------------------- the other colour


@pytest.mark.parametrize("shape", [(7, 9), (8, 8), (5, 6), (3, 3)])
def test_red_black_relaxation(target, shape):
    u = np.random.default_rng(1).random(shape)
    expected = u.copy()
    inner = np.zeros(shape, bool)
    inner[1:-1, 1:-1] = True
    i, j = np.indices(shape)
    for _ in range(3):
        for colour in (0, 1):
            kernels.relax(Region(u, RedBlack(colour)))
            around = np.zeros(shape)
            around[1:-1, 1:-1] = 0.25 * (expected[:-2, 1:-1] + expected[2:, 1:-1] + expected[1:-1, :-2] + expected[1:-1, 2:])
            mine = inner & ((i + j) % 2 == colour)
            expected[mine] = around[mine]
    np.testing.assert_allclose(u, expected, rtol=1e-14)


def test_a_read_of_the_other_colour_never_wraps(target):
    u = np.arange(25.0).reshape(5, 5)
    # (r, -1) would be (r, 4), which has the thread's own colour.
    with pytest.raises(IndexError, match="index -1 is out of bounds for axis 1 with size 5"):
        kernels.colour_to_the_left(Region(u, RedBlack(0)))


# ------------------------------------------------------------------------------------------- a user's own strategy


class Backwards(PartitioningStrategy):
    """Thread t owns element n - 1 - t."""

    ndim = 1

    def count(self, t, T, shape):
        return 1 if t < shape[0] else 0

    def index(self, t, k, T, shape):
        return shape[0] - 1 - t

    def threads(self, shape):
        return shape[0]


class Pairs(PartitioningStrategy):
    """Thread t owns t and t + reach: two threads own one element where reach is below the number of threads."""

    ndim = 1
    covers = False

    def __init__(self, reach):
        self.reach = reach

    def count(self, t, T, shape):
        return 2 if t + self.reach < shape[0] else 0

    def index(self, t, k, T, shape):
        return t + k * self.reach

    def threads(self, shape):
        return shape[0] // 2


def test_a_strategy_of_ones_own(target):
    y = np.zeros(300, "i8")
    kernels.increment(Region(y, Backwards()))
    kernels.numbers(Region(y[::-1], Backwards()))
    assert np.array_equal(y, np.arange(300)[::-1])


def test_a_strategy_of_ones_own_that_is_disjoint_for_this_launch(target):
    y = np.zeros(20, "i8")
    kernels.increment(Region(y, Pairs(10)))
    assert np.array_equal(y, np.ones(20))


def test_a_strategy_that_aliases_is_refused_with_two_threads_and_the_element(target):
    y = np.zeros(20, "i8")
    with pytest.raises(LaunchError, match=r"(?s)'y'.*thread") as caught:
        kernels.increment(Region(y, Pairs(3)))
    assert "3" in str(caught.value)
    assert not y.any()


# ------------------------------------------------------------------------------------------------------ raw kernels


def test_a_raw_kernel_with_its_own_guard(target):
    x, y = small("f8", 1000), np.zeros(1000)
    kernels.raw_scale[4, 256](x, y, 3.0)
    assert np.array_equal(y, 3 * x)


@pytest.mark.parametrize("step", [1, 2, -1])
def test_a_raw_kernel_with_a_grid_stride(target, step):
    base = np.zeros(2000, "i8")
    kernels.raw_stride[3, 64](base[::step])
    expected = np.zeros(2000, "i8")
    expected[::step] += 1
    assert np.array_equal(base, expected)


def test_positions_in_a_raw_kernel(target):
    y = np.zeros((11, 9), "i8")
    kernels.raw_positions[(3, 3), (4, 3)](y)
    i, j = np.indices(y.shape)
    assert np.array_equal(y, i % 4 + 10 * (j % 3) + 100 * (i // 4) + 1000 * (j // 3) + 40000 + 300000)


# ------------------------------------------------------------------------------------------------- kinds of arrays


def test_packed_rows_after_aligned_ones_of_the_same_fields(target):
    """The two dtypes are equal; only one promises where its rows lie."""
    fields = [("at", "f8"), ("value", "f8")]
    kernel = offload_kernel(kernels.add_columns)
    y = np.zeros(8)
    kernel(np.ones(8, np.dtype(fields, align=True)), Region(y))
    assert (y == 2.0).all()
    packed = np.zeros(8 * 16 + 1, "u1")[1:].view(fields)
    packed["at"], packed["value"] = 1, 2
    kernel(packed, Region(y))
    assert (y == 3.0).all()
    assert len(kernel._specialisations) == 2


def test_no_elements_but_something_to_count(target):
    counts = np.zeros(1, "i8")
    kernels.count_threads[1, 32](Region(np.zeros(0)), Accumulator(counts))
    assert counts[0] == 32
