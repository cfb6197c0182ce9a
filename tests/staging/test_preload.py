"""Staged arrays: what kernels compute on handles, and what moves."""

from __future__ import annotations

import numpy as np
import pytest
from staged_kernels import Pair, add, add_pair, add_planes, fill, fill_then_fail, numbers, sum_up, total

from numba_offload import (
    Accumulator,
    BorrowError,
    Chunked1D,
    GridStride1D,
    Region,
    TargetError,
    UnsupportedArrayError,
    preload,
    preload_mut,
    profile,
    use_target,
)
from numba_offload.mapping.borrow import BORROWS


@pytest.fixture(autouse=True)
def nothing_stays_preloaded():
    yield
    assert not BORROWS.live


def moved(p, target):
    """Copies over, their bytes, copies back, their bytes; as on a device of its own memory."""
    if not target.separate:
        assert (p.h2d_count, p.d2h_count) == (0, 0)
        return None
    return p.h2d_count, p.h2d_bytes, p.d2h_count, p.d2h_bytes


class TestBytes:
    def test_once_over_and_once_back_for_any_number_of_launches(self, target):
        x, y = numbers(40), np.zeros(40)
        with profile() as p, profile() as before, preload(x) as gx, preload_mut(y) as gy:
            for _ in range(5):
                with profile() as launch:
                    add(gx, Region(gy))
                assert (launch.launches, launch.h2d_count, launch.d2h_count) == (1, 0, 0)
            assert before.d2h_count == 0
        assert moved(p, target) in (None, (2, 640, 1, 320))
        assert p.launches == 5
        np.testing.assert_array_equal(y, 5 * numbers(40))

    def test_what_no_kernel_wrote_does_not_come_back(self, target):
        x, y = numbers(8), numbers(8)
        with profile() as p, preload_mut(x, y) as (gx, gy):
            add(gx, Region(gy))
            add(gx, Region(gy))
        assert moved(p, target) in (None, (2, 128, 1, 64))
        assert x.tolist() == list(range(8))
        with profile() as p, preload_mut(y):
            pass
        assert moved(p, target) in (None, (1, 64, 0, 0))

    def test_nested_and_repeated_preloads_of_an_array_and_its_parts_move_it_once(self, target):
        x, y = numbers(20), np.zeros(10)
        with profile() as p, preload(x) as gx, preload(x[5:15]) as inner, preload(gx) as again, preload_mut(y) as gy:
            add(inner, Region(gy))
            add(gx[:10], Region(gy))
            add(again[::2], Region(gy))
            add(x[10:], Region(gy))  # the array itself, which is there too
            assert not x.flags.writeable
        assert moved(p, target) in (None, (2, 240, 1, 80))
        np.testing.assert_array_equal(y, x[5:15] + x[:10] + x[::2] + x[10:])

    def test_the_last_of_several_readers_frees(self, target):
        x, y = numbers(6), np.zeros(6)
        first, second = preload(x), preload(x)
        first.release()
        assert not x.flags.writeable
        with profile() as p:
            add(second, Region(y))
        assert moved(p, target) in (None, (1, 48, 1, 48))  # only y
        second.release()
        assert x.flags.writeable
        assert y.tolist() == x.tolist()

    def test_a_strided_array_is_packed_once_and_its_neighbours_stay(self, target):
        a, x = np.zeros((6, 6)), numbers(18).reshape(6, 3)
        with profile() as p, preload_mut(a[:, ::2]) as ga, preload(x) as gx:
            add_planes(gx, Region(ga))
            add_planes(gx[1:5, 1:], Region(ga[1:5, 1:]))
        assert moved(p, target) in (None, (2, 288, 1, 144))
        expected = np.zeros((6, 6))
        expected[:, ::2] += x
        expected[1:5, 2::2] += x[1:5, 1:]
        np.testing.assert_array_equal(a, expected)


class TestArguments:
    def test_in_tuples_and_accumulators(self, target):
        x, y, sums = numbers(12), np.zeros(12), np.zeros(1)
        with preload(x) as gx, preload_mut(y, sums) as (gy, gs):
            add_pair(Pair(gx, Region(gy)))
            add_pair(Pair(gx, Region(gy, GridStride1D())))
            total(Region(gy), Accumulator(gs))
        assert y.tolist() == (2 * x).tolist()
        assert sums[0] == 2 * x.sum()

    def test_a_tuple_of_handles_is_a_tuple_of_arrays(self, target):
        x, z, y = numbers(4), numbers(4), np.zeros(4)
        with preload(x, z) as both, preload_mut(y) as gy:
            assert isinstance(both, tuple)
            add_pair(Pair(both[1], Region(gy)))
        assert y.tolist() == z.tolist()

    def test_a_mutable_handle_is_read_as_kernels_left_it(self, target):
        y, out = np.ones(8), np.zeros(8)
        with preload_mut(y) as gy:
            fill(3.0, Region(gy))
            sum_up(gy, Region(out))
        assert out.tolist() == [24.0] * 8

    def test_parts_of_a_handle(self, target):
        y, one = numbers(10), np.ones(10)
        with preload_mut(y) as gy, preload(one) as g1:
            part = gy[2:8]
            assert (part.shape, part.nbytes, part.mutable) == ((6,), 48, True)
            for _ in range(2):
                add(g1, Region(part))
            add(g1, Region(gy[::-3], Chunked1D(2)))
            add(g1, Region(part[1:][:2]))
        expected = numbers(10)
        expected[2:8] += 2
        expected[::-3] += 1
        expected[3:5] += 1
        np.testing.assert_array_equal(y, expected)

    def test_fields_of_records(self, target):
        rows = np.zeros(5, dtype=[("mass", "f8"), ("count", "i8")])
        rows["count"] = 3
        with preload_mut(rows) as handle, preload(numbers(5)) as gx:
            add(gx, Region(handle["mass"]))
        assert rows["mass"].tolist() == [0, 1, 2, 3, 4]
        assert rows["count"].tolist() == [3] * 5

    @pytest.mark.parametrize("shape", [(), (0,), (0, 4)])
    def test_small_shapes(self, target, shape):
        y = np.zeros(shape)
        with preload_mut(y) as gy:
            if len(shape) < 2:
                fill(2.0, Region(gy))
        assert y.tolist() == (np.zeros(shape) + 2).tolist()

    def test_other_dtypes(self, target):
        for dtype in (np.bool_, np.int8, np.uint16, np.float32, np.complex128):
            y = np.zeros(9, dtype)
            with preload_mut(y) as gy:
                fill(dtype(1), Region(gy))
            assert y.tolist() == [dtype(1)] * 9

    def test_repeated_launches_follow_the_handle_that_they_are_given(self, target):
        a, b, x = np.zeros(4), np.zeros(4), np.ones(4)
        with preload_mut(a) as ga, preload_mut(b) as gb, preload(x) as gx:
            ra, rb = Region(ga), Region(gb)
            for region in (ra, ra, rb, ra, rb, rb):
                add(gx, region)
        assert (a[0], b[0]) == (3, 3)
        with preload_mut(a) as ga, preload(x) as gx:
            add(gx, Region(ga))
            with pytest.raises(BorrowError):
                add(gx, rb)
        assert (a[0], b[0]) == (4, 3)

    def test_an_array_that_is_given_another_shape_meanwhile(self, target):
        y = np.zeros(6)
        with preload_mut(y) as gy:
            y.shape = (2, 3)
            fill(1.0, Region(gy))
            assert gy.shape == (6,)
        assert y.tolist() == [[1.0] * 3] * 2


class TestHandles:
    def test_what_a_handle_shows(self, target):
        x = numbers(6).reshape(2, 3)
        with preload(x) as gx:
            assert (gx.shape, gx.dtype, gx.ndim, gx.size, gx.nbytes, len(gx)) == ((2, 3), x.dtype, 2, 6, 48, 2)
            assert "'x'" in repr(gx)
            assert gx[1, 2] == 5
            assert gx[[0, 1], 1].tolist() == [1, 4]
            assert [row.tolist() for row in gx] == x.tolist()
            assert np.add(gx, 1).tolist() == (x + 1).tolist()
            seen = np.asarray(gx)
            assert np.shares_memory(seen, x)
            assert not seen.flags.writeable
            assert np.array(gx, dtype=np.int32).dtype == np.int32
        assert gx.released
        assert "released" in repr(gx)

    def test_names_are_those_of_the_call(self, target):
        state = {"density": numbers(4)}
        with preload(state["density"],
                     state["density"][1:]) as (whole, part):  # fmt: skip
            assert "state['density']'" in repr(whole)
            assert "[1:]" in repr(part)

    def test_an_exception_in_the_block_brings_results_back(self, target):
        y = np.zeros(4)
        with pytest.raises(ZeroDivisionError), preload_mut(y) as gy:
            fill(2.0, Region(gy))
            raise ZeroDivisionError
        assert y.tolist() == [2.0] * 4
        assert y.flags.writeable

    def test_a_failing_launch_keeps_what_was_finished_before(self, target):
        y, z = np.zeros(8), np.zeros(8)
        with pytest.raises(ValueError, match="limit"), preload_mut(y, z) as (gy, gz):
            fill(2.0, Region(gy))
            fill(3.0, Region(gz))
            fill_then_fail(9.0, 4, Region(gy))
        assert set(y.tolist()) <= {2.0, 9.0}
        assert z.tolist() == [3.0] * 8

    def test_a_failing_launch_alone_leaves_the_array(self, target):
        y = np.ones(8)
        with pytest.raises(ValueError, match="limit"), preload_mut(y) as gy:
            fill_then_fail(9.0, 4, Region(gy))
        assert set(y.tolist()) <= ({1.0} if target.separate else {1.0, 9.0})

    def test_a_launch_after_a_failed_one(self, target):
        y = np.zeros(8)
        with preload_mut(y) as gy:
            with pytest.raises(ValueError, match="limit"):
                fill_then_fail(9.0, 4, Region(gy))
            fill(1.0, Region(gy))
        assert y.tolist() == [1.0] * 8

    def test_release_without_a_block_and_twice(self, target):
        y = np.zeros(3)
        handles = preload_mut(y)
        fill(4.0, Region(handles))
        handles.release()
        handles.release()
        assert y.tolist() == [4.0] * 3
        several = preload(y, numbers(2))
        several.release()
        assert all(handle.released for handle in several)


class TestRefusals:
    @pytest.mark.parametrize(
        ("given", "match"),
        [
            ([1.0, 2.0], "list.*numpy.asarray"),
            (3.0, "float"),
            (None, "NoneType"),
            (np.array([object()]), "object"),
            (np.ma.masked_array([1.0, 2.0], [True, False]), "mask"),
        ],
        ids=["list", "float", "none", "objects", "masked"],
    )
    def test_what_is_no_array(self, target, given, match):
        for verb in (preload, preload_mut):
            with pytest.raises(UnsupportedArrayError, match=match):
                verb(given)
            x = numbers(3)
            with pytest.raises(TypeError):
                verb(x, given)
            assert x.flags.writeable

    def test_nothing(self, target):
        with pytest.raises(TypeError, match="one array or more"):
            preload()

    def test_regions_and_accumulators(self, target):
        with pytest.raises(UnsupportedArrayError, match=r"Region\(handle\)"):
            preload_mut(Region(numbers(3)))

    def test_device_arrays_are_there_already(self, target):
        class OnDevice:
            __cuda_array_interface__ = {  # noqa: RUF012
                "shape": (2,), "typestr": "<f8", "data": (4096, False), "version": 3,
            }  # fmt: skip

        with pytest.raises(UnsupportedArrayError, match="in device memory already"):
            preload(OnDevice())

    def test_read_only_arrays_are_not_for_writing(self, target):
        x = numbers(3)
        x.flags.writeable = False
        with pytest.raises(ValueError, match=r"read-only.*writable array or a copy"):
            preload_mut(x)
        with preload(x):
            pass
        assert not x.flags.writeable

    def test_elements_that_share_memory(self, target):
        with pytest.raises(ValueError, match="share memory"):
            preload_mut(np.lib.stride_tricks.as_strided(numbers(4), (3, 2), (8, 8)))


def test_a_launch_runs_where_its_handles_are(monkeypatch):
    monkeypatch.delenv("NUMBA_OFFLOAD_TARGET", raising=False)
    y = np.zeros(4)
    with use_target("cpu"):
        gy = preload_mut(y)
    with gy:
        fill(1.0, Region(gy))
    assert y.tolist() == [1.0] * 4


def test_a_launch_on_another_target_is_refused(monkeypatch):
    x, y = numbers(4), np.zeros(4)
    monkeypatch.setenv("NUMBA_OFFLOAD_CPU_MEMORY", "discrete")
    with use_target("cpu"):
        gx = preload(x)
    monkeypatch.setenv("NUMBA_OFFLOAD_CPU_MEMORY", "unified")
    with use_target("cpu"), gx:
        with pytest.raises(TargetError, match=r"'x' was preloaded on target 'cpu' \(discrete memory\).*test_preload.py"):
            add(gx, Region(y))
        with preload_mut(y) as gy, pytest.raises(TargetError, match=r"'x' .*discrete.*'y' .*unified.*on the same"):
            add(gx, Region(gy))
    assert y.tolist() == [0] * 4
