"""Cases from the field, 21 to 25: guards, bounds, races, neighbours, exceptions."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from asserting_kernels import demand, demand_silently

from numba_offload import (
    Accumulator,
    Chunked1D,
    GridStride1D,
    Region,
    SafetyError,
    Tiles2D,
    offload_function,
    offload_kernel,
    profile,
)

# ------------------------------------------------------------------------------------------ 21: the Region is the guard


@offload_kernel
def add_one(y):
    for i in y.indices():
        y[i] += 1


@pytest.mark.parametrize("blocks", [4, 5, 40])
@pytest.mark.parametrize("strategy", [None, GridStride1D(), Chunked1D(3)], ids=repr)
def test_case_21_no_guard_is_needed(target, strategy, blocks):
    base = np.zeros(1200)
    add_one[blocks, 256](Region(base[100:1100], strategy))
    assert np.array_equal(base[100:1100], np.ones(1000))
    assert not base[:100].any()
    assert not base[1100:].any()


def test_case_21_two_axes(target):
    base = np.zeros((30, 30))
    add_one[(2, 3), (16, 16)](Region(base[:27, 3:29]))
    expected = np.zeros((30, 30))
    expected[:27, 3:29] = 1
    assert np.array_equal(base, expected)


# ------------------------------------------------------------------------------------------------- 22: out of bounds


@offload_kernel
def difference(x, y):
    for i in y.indices():
        y[i] = x[i + 1] - x[i]


@pytest.mark.parametrize("n", [1, 256, 1000, 20_000])
def test_case_22_the_last_neighbour(target, n):
    x = np.arange(float(n))
    y = np.full(n, 7.0)
    with pytest.raises(IndexError) as caught:
        difference(x, Region(y))
    text = str(caught.value)
    line = difference.py_func.__code__.co_firstlineno + 3
    assert f"index {n} is out of bounds for axis 0 with size {n}" in text
    assert "x" in text
    assert "kernel difference" in text
    assert f"line {line}" in text
    assert f"thread ({(n - 1) % 256}, 0, 0), block ({(n - 1) // 256}, 0, 0)" in text
    if target.separate:
        assert (y == 7).all()
    else:
        assert np.isin(y, [1, 7]).all()
        assert y[-1] == 7


def test_case_22_with_one_more_element_it_is_right(target):
    x = np.arange(1001.0) ** 2
    y = np.zeros(1000)
    difference(x, Region(y))
    assert np.array_equal(y, np.diff(x))


@offload_function
def second_next(x, i):
    return x[i + 2]


@pytest.mark.parametrize("strategy", [Chunked1D(4), GridStride1D()], ids=repr)
def test_case_22_in_a_device_function_and_a_slice(target, strategy):
    @offload_kernel
    def through_function(x, y):
        for i in y.indices():
            y[i] = second_next(x, i)

    @offload_kernel
    def through_slice(x, y):
        for i in y.indices():
            part = x[i : i + 2]
            y[i] = part[1]

    x, y = np.arange(100), np.zeros(100, "i8")
    with pytest.raises(IndexError, match=r"index 10[01] is out of bounds for axis 0 with size 100"):
        through_function(x, Region(y, strategy))
    with pytest.raises(IndexError, match="index 1 is out of bounds for axis 0 with size 1 "):
        through_slice(x, Region(y, strategy))


# ------------------------------------------------------------------------------------------------------------ 23: races


@offload_kernel
def race_on_array(x, s):
    for i in x.indices():
        s[0] += x[i]


@offload_kernel
def race_on_region(x, s):
    for i in x.indices():
        s[0] += x[i]


@offload_kernel
def race_without_loop(s):
    s[0] += 1


@pytest.mark.parametrize("kernel", [race_on_array, race_on_region], ids=["array", "Region"])
def test_case_23_an_update_from_every_thread_is_refused(target, kernel):
    s = np.zeros(1)
    sums = s if kernel is race_on_array else Region(s)
    line = kernel.py_func.__code__.co_firstlineno + 3
    with profile() as counted, pytest.raises(SafetyError, match=r"(?s)'s'.*(atomic|Accumulator)") as caught:
        kernel(Region(np.ones(100)), sums)
    assert str(line) in str(caught.value)
    assert counted.launches == 0
    assert not s.any()


def test_case_23_also_with_a_single_region(target):
    with pytest.raises(SafetyError, match=r"(?s)'s'.*(atomic|Accumulator)"):
        race_without_loop(Region(np.zeros(1)))


@pytest.mark.parametrize("n", [1, 1000, 50_000])
def test_case_23_what_the_message_points_to(target, n):
    @offload_kernel
    def total(x, y, acc):
        for i in y.indices():
            y[i] = x[i]
            acc.update(0, x[i])

    x, y, s = np.arange(n), np.zeros(n, "i8"), np.array([5])
    total(x, Region(y), Accumulator(s, "+"))
    assert s[0] == 5 + x.sum()
    assert np.array_equal(y, x)


@pytest.mark.parametrize("dtype", ["i4", "u8", "f4", "f8"])
@pytest.mark.parametrize("op", ["+", "min", "max"])
def test_case_23_a_histogram(target, op, dtype):
    @offload_kernel
    def scatter(where, x, y, acc):
        for i in y.indices():
            y[i] = 0
            acc.update(where[i], x[i])

    rng = np.random.default_rng(3)
    where, x = rng.integers(0, 7, 9000), rng.integers(0, 50, 9000).astype(dtype)
    out = np.full(7, 20, dtype)
    expected = out.copy()
    {"+": np.add, "min": np.minimum, "max": np.maximum}[op].at(expected, where, x)
    scatter(where, x, Region(np.zeros(9000)), Accumulator(out, op))
    assert np.array_equal(out, expected)


# ----------------------------------------------------------------------------------------- 24: neighbours in the Region


@offload_kernel
def read_left(y):
    for i in y.indices():
        y[i] = y[i - 1] + 1


@offload_kernel
def read_first(y):
    for i in y.indices():
        y[i] = y[i] - y[0]


@offload_kernel
def write_right(y):
    for i in y.indices():
        y[i + 1] = 0


@offload_kernel
def read_slice(y):
    for i in y.indices():
        y[i] = y[:2][0]


@offload_function
def left_of(y, i):
    return y[i - 1]


@offload_kernel
def read_in_function(y):
    for i in y.indices():
        y[i] = left_of(y, i)


@offload_kernel
def swap_axes(y):
    for i, j in y.indices():
        y[j, i] = 1


NEIGHBOURS = [read_left, read_first, write_right, read_slice, read_in_function]


@pytest.mark.parametrize("kernel", NEIGHBOURS, ids=lambda k: k.__name__)
@pytest.mark.parametrize("strategy", [None, Chunked1D(4)], ids=repr)
def test_case_24_elements_of_other_threads_are_out_of_reach(target, kernel, strategy):
    y = np.arange(10.0)
    with pytest.raises(SafetyError, match="'y'.*"):
        kernel(Region(y, strategy))
    assert np.array_equal(y, np.arange(10.0))


@pytest.mark.parametrize("strategy", [None, Tiles2D(2, 2)], ids=repr)
def test_case_24_swapped_components(target, strategy):
    y = np.zeros((4, 4))
    with pytest.raises(SafetyError, match="'y'"):
        swap_axes(Region(y, strategy))


def test_case_24_the_way_out_is_a_second_array(target):
    @offload_kernel
    def smooth(x, y):
        for i in y.indices():
            y[i] = x[i - 1] if i > 0 else x[i]

    x, y = np.arange(10.0), np.zeros(10)
    smooth(x, Region(y))
    assert np.array_equal(y, [0, *range(9)])


# --------------------------------------------------------------------------------------------------- 25: exceptions


@offload_kernel
def quotient(x, y):
    for i in y.indices():
        y[i] = 1000 // x[i]


@offload_kernel
def refuse(x, y):
    for i in y.indices():
        if x[i] > 90:
            raise ValueError("too large", x[i])
        y[i] = x[i]


@pytest.mark.parametrize(
    ("kernel", "bad", "error", "says"),
    [
        (quotient, 0, ZeroDivisionError, "zero"),
        (refuse, 95, ValueError, "too large"),
        (demand, 95, AssertionError, "at most ninety"),
        (demand_silently, 95, AssertionError, None),
    ],
    ids=["division", "raise", "assert", "assert without message"],
)
@pytest.mark.parametrize("n", [5, 3000])
def test_case_25_reach_the_host_as_that_exception(target, kernel, bad, error, says, n):
    x = np.ones(n, "i8")
    x[n - 2] = bad
    y = np.full(n, 7)
    with pytest.raises(error, match=says) as caught:
        kernel(x, Region(y))
    told = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
    source, first = inspect.getsourcelines(kernel.py_func)
    (line,) = (first + k for k, text in enumerate(source) if "//" in text or "raise" in text or "assert" in text)
    assert f"line {line}" in told
    assert kernel.__name__ in told
    assert f"thread ({(n - 2) % 256}, 0, 0), block ({(n - 2) // 256}, 0, 0)" in told
    if kernel is refuse:
        assert caught.value.args[1] == 95
    if target.separate:
        assert (y == 7).all()
    x[n - 2] = 1
    kernel(x, Region(y))
    assert (y != 7).all()
