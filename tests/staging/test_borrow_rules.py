"""Who may use an array while a preload holds it: every rule, and what its message says."""

from __future__ import annotations

import copy
import pickle
import sys

import numpy as np
import pytest
from staged_kernels import Pair, add, add_pair, fill, fill_then_fail, numbers, sum_up, total, write_anywhere

from numba_offload import Accumulator, BorrowError, LaunchError, Region, preload, preload_mut, profile
from numba_offload.mapping.borrow import BORROWS


@pytest.fixture(autouse=True)
def nothing_stays_preloaded():
    yield
    assert not BORROWS.live


def here(offset: int = 0) -> str:
    """A line of this file near the caller's, as messages give it."""
    return rf"\S*test_borrow_rules\.py:{sys._getframe(1).f_lineno + offset}\b"


class TestPreloads:
    def test_readers_do_not_exclude_each_other(self, target):
        x = numbers(10)
        with preload(x), preload(x), preload(x[2:5]), preload(x[::2]):
            pass
        assert x.flags.writeable

    @pytest.mark.parametrize(("first", "second"), [(preload, preload_mut), (preload_mut, preload), (preload_mut, preload_mut)])
    def test_a_writer_is_alone(self, target, first, second):
        y = numbers(10)
        with first(y), pytest.raises(BorrowError, match=rf"'y'.*since {here()}.*elease"):
            second(y)
        with first(y[:6]), pytest.raises(BorrowError, match=rf"'y\[:6\]'.*since {here()}"):
            second(y[5:])
        with first(y[:6]), second(y[6:]):
            pass
        with first(y[::2]), second(y[1::2]):
            pass
        assert y.flags.writeable

    def test_handles_are_not_preloaded_for_writing(self, target):
        y = numbers(4)
        for verb in (preload, preload_mut):
            with verb(y) as handle, pytest.raises(BorrowError, match=rf"since {here()}.*{verb.__name__}"):
                preload_mut(handle)
        with preload_mut(y) as handle, pytest.raises(BorrowError, match="for writing"):
            preload(handle)

    def test_a_refused_preload_of_several_holds_none(self, target):
        x, y = numbers(4), numbers(4)
        with pytest.raises(BorrowError):
            preload_mut(x, y, x)
        with preload_mut(x, y):
            pass


class TestManagedCalls:
    def test_reading_what_is_preloaded_for_reading_moves_nothing(self, target):
        x, y = numbers(8), np.zeros(8)
        with preload(x), profile() as p:
            add(x, Region(y))
            add(x[::-1], Region(y))
            add(Region(x), Region(y))
        if target.separate:
            assert (p.h2d_bytes, p.d2h_bytes) == (3 * y.nbytes, 3 * y.nbytes)
        assert y.tolist() == (2 * x + x[::-1]).tolist()

    def test_writing_what_is_preloaded_for_reading(self, target):
        x, one = numbers(8), np.ones(8)
        older, region = x[2:4], Region(x)
        with preload(x):
            line = here(-1)
            for wrong in (Region(x), region, Region(older)):
                with pytest.raises(BorrowError, match=rf"argument 'y'.*'x'.*reading since {line}.*preload_mut"):
                    fill(1.0, wrong)
            with pytest.raises(BorrowError, match=line):
                total(Region(one), Accumulator(x))
            with pytest.raises(BorrowError, match=line):
                write_anywhere[1, 1](x)
        assert x.tolist() == list(range(8))

    def test_any_use_of_what_is_preloaded_for_writing(self, target):
        y, out = numbers(8), np.zeros(8)
        region, accumulator, older = Region(y), Accumulator(y), y[2:4]
        calls = [
            lambda: sum_up(y, Region(out)),
            lambda: sum_up(older, Region(out)),
            lambda: sum_up(y[::2], Region(out)),
            lambda: add_pair(Pair(y, Region(out))),
            lambda: fill(1.0, region),
            lambda: fill(1.0, Region(older)),
            lambda: total(Region(out), accumulator),
        ]
        for call in calls:
            call()  # known before, so that the short way of a repeated launch is there to be taken
        y[:], out[:] = numbers(8), 0
        with preload_mut(y):
            line = here(-1)
            for call in calls:
                with pytest.raises(BorrowError, match=rf"'y'.*writing since {line}.*handle"):
                    call()
            with pytest.raises(BorrowError, match=rf"Region\(array\).*{line}.*Region\(handle\)"):
                Region(y)
            with pytest.raises(BorrowError, match=rf"Accumulator\(array\).*{line}"):
                Accumulator(y)
        assert y.tolist() == list(range(8))
        assert out.tolist() == [0] * 8
        fill(2.0, region)
        assert y.tolist() == [2] * 8

    def test_elements_decide(self, target):
        y = np.zeros(10)
        odd = y[1::2]
        with preload_mut(y[::2]) as even:
            fill(1.0, Region(even))
            fill(2.0, Region(odd))
            fill(3.0, Region(y[3:8:2]))  # a view made meanwhile, and read-only for that reason alone
            with pytest.raises(BorrowError):
                fill(4.0, Region(y[3:5]))
        assert y.tolist() == [1, 2, 1, 3, 1, 3, 1, 3, 1, 2]

    def test_views_that_were_read_only_before_stay_so(self, target):
        y = np.zeros(4)
        y.flags.writeable = False
        with preload(y), pytest.raises(BorrowError):
            fill(1.0, Region(y))
        with preload(y[:2]), pytest.raises(LaunchError, match="read-only"):
            fill(1.0, Region(y[2:]))

    def test_captured_arrays(self, target):
        from numba_offload import offload_kernel

        table = np.ones(3)

        @offload_kernel
        def look_up(y):
            for i in y.indices():
                y[i] = table[i]

        y = np.zeros(3)
        look_up(Region(y))
        with preload(table):
            look_up(Region(y))
        with preload_mut(table), pytest.raises(BorrowError, match=rf"argument 'table'.*{here()}"):
            look_up(Region(y))


class TestHandles:
    def test_a_handle_for_reading_is_not_written(self, target):
        x = numbers(4)
        with preload(x) as gx:
            line = here(-1)
            with pytest.raises(BorrowError, match=rf"'x' is preloaded for reading since {line}.*preload_mut"):
                Region(gx)
            with pytest.raises(BorrowError, match=line):
                Region(gx[1:])
            with pytest.raises(BorrowError, match=line):
                Accumulator(gx)
            with pytest.raises(BorrowError, match=rf"argument 'y'.*{line}.*preload_mut"):
                write_anywhere[1, 1](gx)
        assert x.tolist() == [0, 1, 2, 3]

    def test_a_mutable_handle_may_be_written_by_unsafe_kernels(self, target):
        y = np.zeros(2)
        with preload_mut(y) as gy:
            write_anywhere[1, 1](gy)
        assert y.tolist() == [7, 0]

    def test_one_argument_that_is_written_is_no_other(self, target):
        y = np.zeros(4)
        with preload_mut(y) as gy:
            with pytest.raises(LaunchError, match="share memory"):
                add(gy, Region(gy))
            add(gy[:2], Region(gy[2:]))

    def test_after_the_release(self, target):
        x, y = numbers(4), np.zeros(4)
        gx, gy = preload(x, y)
        part, region = gx[1:], None
        gx.release(), gy.release()
        line = here(-1)
        for use in (
            lambda: add(gx, Region(y)),
            lambda: add(part, Region(y[1:])),
            lambda: gx[0],
            lambda: gx[1:],
            lambda: np.asarray(gx),
            lambda: preload(gx),
            lambda: gx.__enter__(),
        ):
            with pytest.raises(BorrowError, match=rf"'x'.*released at .*{line}"):
                use()
        with preload_mut(y) as gy:
            region = Region(gy)
        with pytest.raises(BorrowError, match=rf"'y'.*released at .*{here(-2)}"):
            fill(1.0, region)
        assert y.tolist() == [0] * 4

    def test_a_mutable_handle_is_not_read_on_the_host(self, target):
        y = np.zeros((2, 2))
        with preload_mut(y) as gy:
            line = here(-1)
            for read in (
                lambda: gy[0, 0],
                lambda: gy[[0, 1]],
                lambda: gy[gy.dtype == float],
                lambda: np.asarray(gy),
                lambda: np.sum(gy),
                lambda: list(gy),
                lambda: y + gy,
            ):
                with pytest.raises(BorrowError, match=rf"'y'.*since .*{line}.*Release it first"):
                    read()
            assert gy[0].shape == (2,)

    def test_handles_are_not_assigned_to(self, target):
        y = np.zeros(3)
        for verb in (preload, preload_mut):
            with verb(y) as handle, pytest.raises(BorrowError, match="by kernels only"):
                handle[0] = 1.0

    def test_a_part_has_no_hold_of_its_own(self, target):
        with preload(numbers(4)) as gx, pytest.raises(BorrowError, match=rf"part of the handle.*{here()}"):
            gx[1:].release()

    def test_handles_are_not_copied(self, target):
        with preload(numbers(4)) as gx:
            for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
                with pytest.raises(BorrowError, match="cannot be copied"):
                    duplicate(gx)

    def test_messages_tell_of_a_failed_release_after_an_error(self, target):
        y = np.zeros(8)
        with pytest.raises(ValueError, match="limit") as caught, preload_mut(y) as gy:
            fill_then_fail(1.0, 2, Region(gy))
        assert not getattr(caught.value, "__notes__", [])


class TestLocks:
    def test_the_array_and_what_it_is_a_view_of_are_locked(self, target):
        x = numbers(12)
        grid = x.reshape(3, 4)
        column = grid[:, 1]
        for verb in (preload, preload_mut):
            with verb(column):
                for array in (x, column):
                    with pytest.raises(ValueError, match="read-only"):
                        array[0] = 1.0
                with pytest.raises(ValueError, match="WRITEABLE"):
                    x[1:].flags.writeable = True
                assert grid.flags.writeable  # a view from before, of the same owner: the debug mode's to find
            assert x.flags.writeable
            assert column.flags.writeable

    def test_what_was_read_only_before_stays_so(self, target):
        x = numbers(6)
        part = x[2:]
        part.flags.writeable = False
        with preload(part):
            assert not x.flags.writeable
        assert x.flags.writeable
        assert not part.flags.writeable
        x.flags.writeable = False
        with preload(x, part):
            pass
        assert not x.flags.writeable

    def test_the_last_release_unlocks_in_any_order(self, target):
        x = numbers(6)
        part = x[2:]
        outer, inner, again = preload(x), preload(part), preload(x)
        outer.release()
        assert not x.flags.writeable
        again.release()
        assert not x.flags.writeable  # for the part's sake
        inner.release()
        assert x.flags.writeable
        assert part.flags.writeable

    def test_parts_for_different_holders(self, target):
        x = numbers(6)
        left, right = x[:3], x[3:]
        first, second = preload_mut(left), preload_mut(right)
        first.release()
        assert left.flags.writeable
        left[0] = 9.0
        assert not right.flags.writeable
        second.release()
        assert x.tolist() == [9, 1, 2, 3, 4, 5]
        assert x.flags.writeable and right.flags.writeable

    def test_memory_that_numpy_takes_for_read_only(self, target):
        x = numbers(6)
        tiles = np.lib.stride_tricks.as_strided(x, (2, 3), (24, 8), writeable=True)
        shared = np.from_dlpack(x)
        shared_is_writable = shared.flags.writeable
        for array in (tiles, shared, np.frombuffer(bytearray(32)), np.frombuffer(memoryview(x))):
            before = array.flags.writeable
            with preload(array):
                assert not array.flags.writeable
            assert array.flags.writeable == before
        assert shared.flags.writeable == shared_is_writable
        with preload(tiles):
            assert not x.flags.writeable
        assert x.flags.writeable

    def test_memory_maps(self, target, tmp_path):
        np.save(tmp_path / "x.npy", numbers(6))
        mapped = np.load(tmp_path / "x.npy", mmap_mode="r+")
        with preload_mut(mapped) as handle:
            assert not mapped.flags.writeable
            fill(5.0, Region(handle))
        assert mapped.flags.writeable
        assert mapped.tolist() == [5.0] * 6
        assert handle.shape == (6,)


def test_what_arrays_have_and_handles_do_not():
    x, y = np.ones(10), np.ones(10)
    with preload(x) as read, preload_mut(y) as written:
        with pytest.raises(AttributeError, match=r"a handle has no attribute 'sum'.*numpy\.asarray\(handle\)\.sum"):
            read.sum()
        with pytest.raises(AttributeError, match=r"'mean', .*: 'y' is preloaded for writing since .*Release it first"):
            written.mean()
        for handle in (read, written, read[1:]):
            with pytest.raises(AttributeError, match="a handle has no attribute 'averge'$"):
                _ = handle.averge
            assert not hasattr(handle, "__array_interface__") and not hasattr(handle, "sum")
