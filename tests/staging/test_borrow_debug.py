"""``NUMBA_OFFLOAD_DEBUG=borrow``: what the host reads or writes behind a preload's back shows."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from staged_kernels import Pair, add, add_pair, add_planes, fill, fill_then_fail, numbers, sum_up

from numba_offload import BorrowError, Region, preload, preload_mut, profile
from numba_offload.mapping.borrow import BORROWS


@pytest.fixture(autouse=True)
def debug_mode(monkeypatch):
    monkeypatch.setenv("NUMBA_OFFLOAD_DEBUG", "other, borrow")
    yield
    assert not BORROWS.live


def here(offset: int = 0) -> str:
    return rf"\S*test_borrow_debug\.py:{sys._getframe(1).f_lineno + offset}\b"


class TestStaleReads:
    def test_the_host_sees_nan_until_the_release(self, target):
        x, y = numbers(8), numbers(8)
        with preload(x) as gx, preload_mut(y) as gy:
            assert np.isnan(y).all()
            assert x.sum() == 28  # for reading: the host's copy is current
            add(gx, Region(gy))
            assert np.isnan(y.sum())
        assert y.tolist() == (2 * x).tolist()

    def test_what_no_kernel_wrote_is_as_before(self, target):
        y = numbers(8)
        with profile() as p, preload_mut(y) as gy:
            assert np.isnan(y).all()
            sum_up(gy, Region(np.zeros(2)))
        assert p.d2h_count == (1 if target.separate else 0)  # sum_up's own result
        assert y.tolist() == list(range(8))
        with pytest.raises(ValueError, match="limit"), preload_mut(y) as gy:
            fill_then_fail(5.0, 3, Region(gy))
        assert set(y.tolist()) <= {5.0, *range(8)}

    @pytest.mark.parametrize("dtype", ["?", "i1", "u8", "f4", "c8", "M8[s]", "i4,f8", [("a", "i8"), ("b", "f4", (2,))]])
    def test_every_dtype_is_poisoned_and_restored(self, target, dtype):
        y = np.zeros(5, np.dtype(dtype, align=not isinstance(dtype, str) or "," in dtype))
        before = y.tobytes()
        with preload_mut(y):
            assert y.tobytes() != before
            assert (y != np.zeros_like(y)).all() if y.dtype.names is None else True
        assert y.tobytes() == before

    def test_only_the_elements_of_a_view_are_poisoned(self, target):
        a = np.zeros((4, 6))
        with preload_mut(a[1:3, ::-2]) as handle:
            assert np.isnan(a).sum() == 6
            assert not np.isnan(a[:, ::2]).any()
            with preload(numbers(6).reshape(2, 3)) as gx:
                add_planes(gx, Region(handle))
                add_planes(gx[:, 1:], Region(handle[:, 1:]))
        expected = np.zeros((4, 6))
        expected[1:3, ::-2] += numbers(6).reshape(2, 3)
        expected[1:3, 3::-2] += numbers(6).reshape(2, 3)[:, 1:]
        np.testing.assert_array_equal(a, expected)

    def test_results_are_those_without_the_mode(self, target):
        x, y = numbers(10), np.zeros(10)
        with preload(x) as gx, preload_mut(y) as gy:
            part = gy[2:7]
            add_pair(Pair(gx[:5], Region(part)))
            add(gx, Region(gy))
            add(gx, Region(gy))
        expected = 2 * numbers(10)
        expected[2:7] += numbers(5)
        assert y.tolist() == expected.tolist()

    def test_an_exception_in_the_block(self, target):
        y = numbers(4)
        with pytest.raises(KeyError), preload_mut(y) as gy:
            fill(3.0, Region(gy))
            raise KeyError
        assert y.tolist() == [3.0] * 4

    @pytest.mark.parametrize("shape", [(), (0,), (3, 0)])
    def test_small_shapes(self, target, shape):
        y = np.ones(shape)
        with preload_mut(y):
            pass
        assert y.tolist() == np.ones(shape).tolist()


class TestWritesThroughOlderViews:
    def test_while_preloaded_for_reading(self, target):
        x = numbers(8)
        older = x[2:]
        told = rf"'x' was written on the host.*preload at {here(+1)}.*before the preload"
        with pytest.raises(BorrowError, match=told), preload(x):
            older[0] = 50.0
        assert x[2] == 50
        assert x.flags.writeable

    def test_while_preloaded_for_writing_results_are_kept(self, target):
        y = numbers(8)
        older = y[2:]
        told = rf"'y' was written.*preload_mut at {here(+1)}.*What the host wrote is lost"
        with pytest.raises(BorrowError, match=told), preload_mut(y) as gy:
            fill(4.0, Region(gy))
            older[0] = 50.0
        assert y.tolist() == [4.0] * 8

    def test_the_block_s_own_exception_comes_first(self, target):
        y = numbers(8)
        older = y[2:]
        with pytest.raises(KeyError) as caught, preload_mut(y) as gy:
            fill(4.0, Region(gy))
            older[0] = 50.0
            raise KeyError("mine")
        assert any("written on the host" in note for note in caught.value.__notes__)
        assert y.tolist() == [4.0] * 8

    def test_of_several_all_are_released(self, target):
        x, y, z = numbers(4), numbers(4), numbers(4)
        older = x[:]
        with pytest.raises(BorrowError, match="'x'"), preload_mut(x, y, z) as handles:
            for handle in handles:
                fill(6.0, Region(handle))
            older[1] = 0.0
        assert (x.tolist(), y.tolist(), z.tolist()) == ([6.0] * 4,) * 3

    def test_without_such_writes_nothing_is_said(self, target):
        x, y = numbers(4), numbers(4)
        other = y[3:]
        with preload(x, x[1:]), preload_mut(y[:3]) as gy:
            other[0] = 9.0  # not preloaded
            fill(1.0, Region(gy))
        assert y.tolist() == [1, 1, 1, 9]


def test_without_the_mode_nothing_is_poisoned(target, monkeypatch):
    monkeypatch.delenv("NUMBA_OFFLOAD_DEBUG")
    y = numbers(3)
    older = y[:]
    with preload_mut(y):
        assert y.tolist() == [0, 1, 2]
        older[0] = 5.0
    assert y[0] == 5
