"""The present table: held entries, and launches of several threads at once."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from mapping_helpers import FaultyHeap, assert_nothing_in_use, discrete, kernel_view, launch

from numba_offload.diagnostics.profile import profile
from numba_offload.errors import AliasError, BorrowError, TargetError
from numba_offload.mapping import ArrayUse, DeviceState, HostHeap, LaunchMapping


@pytest.fixture
def device():
    state = discrete()
    yield state
    assert_nothing_in_use(state)


def add_one(y):
    y[...] += 1


def nothing(*views):
    pass


class TestHeldEntries:
    def test_a_contained_range_copies_nothing(self, device):
        x = np.arange(20.0)
        with profile() as p:
            entry = device.present.hold(ArrayUse("x", x, "to"))
            for part in (x, x[5:], x[::2], x[::-1], x.reshape(4, 5).T):
                mapping = LaunchMapping(device, [ArrayUse("x", part, "to")])
                assert entry.count == 2
                np.testing.assert_array_equal(kernel_view(mapping.views[0], part), part)
                mapping.finish(True)
                assert entry.count == 1
            device.present.release(entry)
        assert (p.h2d_count, p.d2h_count) == (1, 0)

    def test_readers_count(self, device):
        x = np.arange(20.0)
        first = device.present.hold(ArrayUse("x", x, "to"))
        second = device.present.hold(ArrayUse("x", x[3:7], "to"))
        assert first is second
        assert first.count == 2
        device.present.release(first)
        assert device.present.entries == (second,)
        device.present.release(second)

    def test_writes_come_back_once_at_the_last_release(self, device):
        y = np.zeros(8)
        with profile() as p:
            entry = device.present.hold(ArrayUse("y", y, "tofrom"))
            for _ in range(3):
                launch(device, add_one, ("y", y, "tofrom"))
            assert entry.dirty
            assert y.tolist() == [0] * 8
            device.present.release(entry)
        assert y.tolist() == [3] * 8
        assert (p.h2d_count, p.d2h_count) == (1, 1)

    def test_without_an_error_free_write_nothing_comes_back(self, device):
        y = np.zeros(8)
        entry = device.present.hold(ArrayUse("y", y, "tofrom"))
        launch(device, add_one, ("y", y, "tofrom"), ok=False)
        assert not entry.dirty
        with profile() as p:
            device.present.release(entry)
        assert p.d2h_count == 0

    def test_a_strided_array_comes_back_element_by_element_though_it_is_locked(self, device):
        y = np.zeros((4, 4))
        view = y[:, ::2]
        entry = device.present.hold(ArrayUse("y", view, "tofrom"))
        view.flags.writeable = False
        launch(device, add_one, ("y", view, "tofrom"))
        device.present.release(entry)
        assert y.tolist() == [[1, 0, 1, 0]] * 4

    def test_a_launch_may_outlive_the_handle(self, device):
        y = np.zeros(8)
        entry = device.present.hold(ArrayUse("y", y, "tofrom"))
        mapping = LaunchMapping(device, [ArrayUse("y", y, "tofrom")])
        device.present.release(entry)
        add_one(kernel_view(mapping.views[0], y))
        assert y.tolist() == [0] * 8
        mapping.finish(True)
        assert y.tolist() == [1] * 8

    def test_partial_overlap(self, device):
        x = np.arange(20.0)
        entry = device.present.hold(ArrayUse("left", x[:10], "to"))
        mapping = LaunchMapping(device, [ArrayUse("x", x, "to")])  # read over read: a private copy
        np.testing.assert_array_equal(kernel_view(mapping.views[0], x), x)
        assert entry.count == 1
        mapping.finish(True)
        with pytest.raises(AliasError, match=r"'x'.*only a part.*'left'"):
            LaunchMapping(device, [ArrayUse("x", x, "tofrom")])
        launch(device, add_one, ("right", x[10:], "tofrom"))
        with pytest.raises(BorrowError, match=r"'x'.*preloaded for reading as 'left'"):
            LaunchMapping(device, [ArrayUse("x", x[:5], "tofrom")])
        device.present.release(entry)
        entry = device.present.hold(ArrayUse("left", x[:10], "tofrom"))
        with pytest.raises(AliasError, match="only a part"):
            LaunchMapping(device, [ArrayUse("x", x, "to")])
        device.present.release(entry)

    def test_interleaved_views_may_be_held_and_written(self, device):
        x = np.zeros(10)
        entry = device.present.hold(ArrayUse("even", x[::2], "tofrom"))
        launch(device, add_one, ("odd", x[1::2], "tofrom"))
        launch(device, add_one, ("even", x[::2], "tofrom"))
        assert x.tolist() == [0, 1] * 5
        device.present.release(entry)
        assert x.tolist() == [1] * 10

    @pytest.mark.parametrize(("first", "second"), [("to", "tofrom"), ("tofrom", "to"), ("tofrom", "tofrom")])
    def test_a_writing_holder_excludes_others(self, device, first, second):
        x = np.zeros(10)
        entry = device.present.hold(ArrayUse("x", x, first))
        with pytest.raises(BorrowError, match=r"preloading 'y'.*'x'"):
            device.present.hold(ArrayUse("y", x[2:], second))
        assert device.present.overlapping(x[9:]) == (entry,)
        device.present.release(entry)
        assert device.present.overlapping(x) == ()

    def test_nothing_to_hold(self, device):
        entry = device.present.hold(ArrayUse("x", np.zeros(0), "tofrom"))
        device.present.release(entry)

    def test_faults(self):
        heap = FaultyHeap()
        device = DeviceState(heap)
        y = np.zeros(4)
        heap.fail_copies = {0}
        with pytest.raises(TargetError):
            device.present.hold(ArrayUse("y", y, "tofrom"))
        assert_nothing_in_use(device)
        entry = device.present.hold(ArrayUse("y", y, "tofrom"))
        launch(device, add_one, ("y", y, "tofrom"))
        heap.fail_copies = {heap.copies}
        with pytest.raises(TargetError, match="back from"):
            device.present.release(entry)
        assert y.tolist() == [0] * 4
        assert_nothing_in_use(device)


class TestOneThread:
    def test_open_launches_may_share_what_they_read(self, device):
        x = np.arange(4.0)
        first = LaunchMapping(device, [ArrayUse("x", x, "to")])
        x[0] = 9  # after the copy: the second launch must see it
        second = LaunchMapping(device, [ArrayUse("x", x, "to")])
        assert kernel_view(first.views[0], x)[0] == 0
        assert kernel_view(second.views[0], x)[0] == 9
        first.finish(True)
        assert kernel_view(second.views[0], x)[0] == 9
        second.finish(True)

    def test_a_conflict_with_an_open_launch_is_an_error_not_a_wait(self, device):
        y = np.zeros(4)
        first = LaunchMapping(device, [ArrayUse("y", y, "tofrom")])
        with pytest.raises(AliasError, match=r"'z'.*has not ended"):
            LaunchMapping(device, [ArrayUse("z", y[1:], "to")])
        interleaved = LaunchMapping(device, [ArrayUse("z", np.zeros(4), "tofrom")])
        interleaved.finish(True)
        first.finish(True)

    def test_launches_on_a_held_array_are_ordered_by_their_stream(self, device):
        y = np.zeros(4)
        entry = device.present.hold(ArrayUse("y", y, "tofrom"))
        first = LaunchMapping(device, [ArrayUse("y", y, "tofrom")])
        second = LaunchMapping(device, [ArrayUse("y", y, "tofrom")])
        assert first.views == second.views
        first.finish(True)
        second.finish(True)
        device.present.release(entry)


class TestThreads:
    def run_threads(self, work, count=4):
        errors = []

        def guarded(number):
            try:
                work(number)
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
        if errors:
            raise errors[0]

    def test_shared_inputs_and_own_outputs(self, device):
        x = np.arange(500.0)

        def work(number):
            y = np.zeros(500)
            for step in range(40):
                part = x[step:] if step % 2 else x[::-1][step:]
                out = y[step:]

                def kernel(a, b):
                    b[...] = a * number

                launch(device, kernel, ("x", part, "to"), ("y", out, "from"))
                np.testing.assert_array_equal(out, part * number)

        self.run_threads(work)

    def test_writers_of_one_array_take_turns(self, device):
        y = np.zeros(100)

        def slow_add(v):
            before = v.copy()
            time.sleep(0.001)
            v[...] = before + 1

        def work(number):
            for _ in range(10):
                launch(device, slow_add, ("y", y, "tofrom"))

        self.run_threads(work)
        assert y.tolist() == [40] * 100

    def test_readers_and_writers_of_one_array_take_turns(self, device):
        y = np.zeros(1000)

        def work(number):
            for _ in range(20):
                if number:
                    seen = []
                    launch(device, lambda v, seen=seen: seen.append(v.copy()), ("y", y, "to"))
                    assert (seen[0] == seen[0][0]).all()
                else:
                    launch(device, add_one, ("y", y, "tofrom"))

        self.run_threads(work)
        assert y.tolist() == [20] * 1000

    def test_holders_in_several_threads(self, device):
        x = np.arange(100.0)

        def work(number):
            for _ in range(30):
                entry = device.present.hold(ArrayUse("x", x[number:], "to"))
                seen = []
                launch(device, lambda v, seen=seen: seen.append(v.copy()), ("x", x[number + 1 :], "to"))
                np.testing.assert_array_equal(seen[0], x[number + 1 :])
                device.present.release(entry)

        self.run_threads(work)

    def test_a_launch_waits_for_the_copy_back_of_a_held_array(self, device):
        y = np.zeros(1000)

        def work(number):
            for _ in range(20):
                while True:
                    try:
                        entry = device.present.hold(ArrayUse("y", y, "tofrom"))
                        break
                    except BorrowError:
                        time.sleep(0)
                launch(device, add_one, ("y", y, "tofrom"))
                device.present.release(entry)

        self.run_threads(work, 3)
        assert y.tolist() == [60] * 1000

    def test_a_dropped_launch_of_another_thread_does_not_block(self, device):
        y = np.zeros(4)
        opened = threading.Thread(target=lambda: LaunchMapping(device, [ArrayUse("y", y, "tofrom")]))
        opened.start()
        opened.join()
        launch(device, add_one, ("y", y, "tofrom"))
        assert y.tolist() == [1] * 4

    def test_what_is_being_copied_back_is_waited_for(self):
        reached, may_copy = threading.Event(), threading.Event()

        class SlowHeap(HostHeap):
            def copy_to_host(self, *arguments, **options):
                reached.set()
                assert may_copy.wait(30)
                super().copy_to_host(*arguments, **options)

        device = DeviceState(SlowHeap())
        y = np.zeros(8)
        entry = device.present.hold(ArrayUse("y", y[:4], "tofrom"))
        mapping = LaunchMapping(device, [ArrayUse("y", y[:4], "tofrom")])
        add_one(kernel_view(mapping.views[0], y[:4]))
        mapping.finish(True)
        seen = []

        def release(number):
            if number == 0:
                device.present.release(entry)
                return
            assert reached.wait(30)
            if number == 1:  # the whole array: only a part is held, but not for long
                launch(device, lambda v: seen.append(v.copy()), ("y", y, "to"))
            elif number == 2:
                held = device.present.hold(ArrayUse("y", y[2:], "to"))
                launch(device, lambda v: seen.append(v.copy()), ("y", y[2:], "to"))
                device.present.release(held)
            else:
                time.sleep(0.1)
                assert not seen
                may_copy.set()

        self.run_threads(release)
        assert sorted(map(list, seen)) == [[1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 0, 0, 0, 0]]
        assert_nothing_in_use(device)
