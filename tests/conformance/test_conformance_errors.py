"""A thread's failure reaches the host as the Python exception that it is, told where; each element is old or new."""

from __future__ import annotations

import re
from pathlib import Path

import kernels
import numpy as np
import pytest

from numba_offload import Chunked1D, GridStride1D, Linear2D, OffloadError, Region, Tiles2D, offload_kernel

FILES = list(Path(kernels.__file__).parent.glob("*.py"))


def place_of(label: str) -> tuple[Path, int]:
    """The kernels' file and line that carry the comment ``line: label``."""
    (found,) = (
        (path, number)
        for path in FILES
        for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if text.endswith(f"# line: {label}")
    )
    return found


def told(error: BaseException) -> str:
    """Message and notes."""
    return "\n".join([str(error), *getattr(error, "__notes__", ())])


def output(n, dtype="i8"):
    return np.full(n, 7, dtype)


def check(error, kernel, label, thread, block):
    text = told(error)
    assert f"kernel {kernel}" in text
    assert "{}, line {}".format(*place_of(label)) in text
    assert f"thread {thread}" in text
    assert f"block {block}" in text


@pytest.mark.parametrize("kernel", [kernels.divide_integers, kernels.remainder_of], ids=["//", "%"])
@pytest.mark.parametrize("dtype", ["i1", "u4", "i8", "u8"])
def test_integer_division_by_zero(target, kernel, dtype):
    x = np.arange(1, 11).astype(dtype)
    x[6] = 0
    y = output(10)
    with pytest.raises(ZeroDivisionError) as caught:
        kernel(x, Region(y))
    label = "divide" if kernel is kernels.divide_integers else "remainder"
    check(caught.value, kernel.__name__, label, (6, 0, 0), (0, 0, 0))
    assert "zero" in str(caught.value)


def test_an_index_beyond_the_end(target):
    x, y = np.arange(1000), output(1000)
    with pytest.raises(IndexError) as caught:
        kernels.beyond_end(x, Region(y))
    text = str(caught.value)
    assert "index 1000 is out of bounds for axis 0 with size 1000" in text
    assert "x" in text
    check(caught.value, "beyond_end", "beyond", (1000 - 1 - 3 * 256, 0, 0), (3, 0, 0))


def test_an_index_before_the_start(target):
    x, y = np.arange(10), output(11)
    with pytest.raises(IndexError, match="index -11 is out of bounds for axis 0 with size 10"):
        kernels.from_the_end(x, Region(y))


def test_an_index_out_of_the_second_axis(target):
    x, y = np.zeros((4, 6), "i8"), output((4, 6))
    with pytest.raises(IndexError, match=r"index [67] is out of bounds for axis 1 with size 6") as caught:
        kernels.beyond_end_2d[(1, 1), (8, 4)](x, Region(y, Linear2D()))
    text = told(caught.value)
    assert "{}, line {}".format(*place_of("beyond 2d")) in text
    column, row = re.search(r"thread \((\d+), (\d+), 0\), block \(0, 0, 0\)", text).groups()
    assert int(column) in (4, 5)
    assert int(row) < 4


@pytest.mark.parametrize("dtype", ["i4", "u8", "i8"])
def test_an_index_read_from_an_array(target, dtype):
    where = np.array([0, 1, 250, 2], dtype)
    with pytest.raises(IndexError, match="index 250 is out of bounds for axis 0 with size 3"):
        kernels.gather(np.arange(3.0), where, Region(output(4, "f8")))


def test_an_unsigned_index_beyond_64_bit_signed(target):
    where = np.array([0, 2**64 - 1], "u8")
    with pytest.raises(IndexError, match="out of bounds for axis 0 with size 3"):
        kernels.gather(np.arange(3.0), where, Region(output(2, "f8")))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300, -1e300, 2.0**63, 12.5], ids=repr)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_an_index_made_of_a_float_without_a_place(target, dtype, value):
    x, y = np.arange(10.0), output(4, "f8")
    with np.errstate(over="ignore"):
        where = np.array([0.0, 9.0, value, 1.0]).astype(dtype)
    try:
        kernels.at_float(x, where, Region(y))
    except IndexError as error:
        assert "out of bounds for axis 0 with size 10" in str(error)
    else:
        # What the conversion gives is the target's, but it is one number, which was in range.
        assert not np.isfinite(value)
        assert y[2] in x


@pytest.mark.parametrize("by", [4, 31, 63])
def test_an_index_made_of_a_shift(target, by):
    with pytest.raises(IndexError, match=f"index {(2**by - 1 + 2**63) % 2**64 - 2**63} is out of bounds"):
        kernels.at_shift(np.arange(10.0), np.array([0, 1, by]), Region(output(3, "f8")))


def test_an_index_made_of_a_shift_by_more_than_the_width(target):
    y = output(3, "f8")
    kernels.at_shift(np.arange(10.0), np.array([64, 100, 2]), Region(y))
    assert y.tolist() == [9, 9, 3]


def test_raise_with_run_time_values(target):
    x = np.arange(1.0, 11.0)
    x[4] = -2.5
    y = output(10, "f8")
    with pytest.raises(ValueError, match="negative") as caught:
        kernels.refuse_negative(x, Region(y))
    assert caught.value.args[1:] == (4, -2.5)
    check(caught.value, "refuse_negative", "raise", (4, 0, 0), (0, 0, 0))


def test_raise_with_a_constant_message(target):
    with pytest.raises(RuntimeError, match="unlucky") as caught:
        kernels.raise_constant(np.arange(600), Region(output(600)))
    check(caught.value, "raise_constant", "constant", (13, 0, 0), (0, 0, 0))


def test_a_failed_assertion(target):
    x = np.ones(300, "i8")
    x[290] = 0
    with pytest.raises(AssertionError, match="must be positive") as caught:
        kernels.check_positive(x, Region(output(300)))
    check(caught.value, "check_positive", "assert", (34, 0, 0), (1, 0, 0))


def test_an_error_in_a_device_function_tells_its_line(target):
    x = np.array([4.0, 9.0, -1.0])
    y = output(3, "f8")
    with pytest.raises(ValueError, match="no root") as caught:
        kernels.roots(x, Region(y))
    check(caught.value, "roots", "callee", (2, 0, 0), (0, 0, 0))


def test_the_position_is_told_along_every_axis(target):
    x = np.arange(20 * 40, dtype="i8").reshape(20, 40) + 1
    x[17, 35] = -1
    y = output((20, 40))
    with pytest.raises(ValueError, match="after a write") as caught:
        kernels.write_then_fail[(5, 3), (8, 8)](x, Region(y))
    assert "thread (3, 1, 0), block (4, 2, 0)" in told(caught.value)


@pytest.mark.parametrize("n", [10, 20_000])
@pytest.mark.parametrize("strategy", [None, Chunked1D(7)], ids=repr)
def test_after_an_error_each_element_is_old_or_new(target, n, strategy):
    x = np.ones(n)
    x[[3, n // 2, n - 1]] = -1.0
    y = output(n)
    with pytest.raises(ValueError, match="after a write"):
        kernels.write_then_fail(x, Region(y, strategy))
    assert np.isin(y, [1, 7]).all()
    if target.separate:
        assert (y == 7).all()


def test_after_an_error_inputs_are_as_they_were_and_later_launches_work(target):
    x = np.arange(10)
    before, y = x.copy(), output(10)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            kernels.divide_integers(x, Region(y))
    assert np.array_equal(x, before)
    kernels.divide_integers(x[1:], Region(y[1:]))
    assert np.array_equal(y[1:], 100 // x[1:])
    assert y[0] == 7


def test_an_error_leaves_nothing_mapped(target):
    from numba_offload.targets.registry import current_target

    y = output(10)
    with pytest.raises(ZeroDivisionError):
        kernels.divide_integers(np.zeros(10, "i8"), Region(y))
    device = current_target().device
    assert not device.present.entries
    assert device.pool.bytes_in_use == 0


def test_only_the_branch_taken_can_fail(target):
    x = np.arange(20)
    y = output(20)
    kernels.stencil(x, Region(y))
    assert y[0] == 1


def test_bounds_checks_can_be_switched_off_where_nothing_fails(target):
    @offload_kernel(boundscheck=False)
    def copy(x, y):
        for i in y.indices():
            y[i] = x[i]

    x, y = np.arange(20), output(20)
    copy(x, Region(y))
    assert np.array_equal(x, y)


class Refused(Exception):
    """An exception of a user's own."""

    def __init__(self, code, reason):
        super().__init__(f"{reason} ({code})")
        self.code = code


@offload_kernel
def raise_own(x, y):
    for i in y.indices():
        if x[i] == 5:
            raise Refused(42, "refused")
        y[i] = x[i]


def test_an_exception_class_of_ones_own(target):
    with pytest.raises(Refused) as caught:
        raise_own(np.arange(9), Region(output(9)))
    assert caught.value.code == 42
    assert "refused (42)" in str(caught.value)
    assert "thread (5, 0, 0)" in told(caught.value)


def test_an_error_in_a_tile(target):
    x = np.ones((6, 6), "i8")
    x[5, 4] = -1
    y = output((6, 6))
    with pytest.raises(ValueError, match="after a write") as caught:
        kernels.write_then_fail(x, Region(y, Tiles2D(2, 3)))
    assert "thread (1, 2, 0)" in told(caught.value)


@pytest.mark.parametrize("at, thread, block", [(37, (5, 2, 0), (0, 0, 0)), (9 * 16 + 10, (2, 1, 0), (1, 1, 0))])
def test_the_position_in_a_launch_of_two_axes_whose_threads_are_counted_in_a_row(target, at, thread, block):
    x = np.zeros(256, "i8")
    x[at] = 5
    with pytest.raises(Refused) as caught:
        raise_own[(2, 2), (8, 8)](x, Region(output(256), GridStride1D()))
    assert f"thread {thread}, block {block}" in told(caught.value)


class Unbuildable(Exception):
    def __init__(self, code):
        raise KeyError("its constructor fails")


@offload_kernel
def raise_unbuildable(y):
    for i in y.indices():
        y[i] = 1.0
        raise Unbuildable(3)


def test_an_exception_that_cannot_be_made_is_told_all_the_same(target):
    with pytest.raises(OffloadError, match="Unbuildable"):
        raise_unbuildable(Region(np.zeros(1)))
