"""Copies of a GPU's memory: staged by threads, direct, or in the driver's own way; what fails, and what is left then."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threaded_driver import threaded_memory as memory_with

from numba_offload import profile
from numba_offload.errors import TargetError
from numba_offload.mapping import ArrayUse, DeviceState, LaunchMapping
from numba_offload.mapping.host_copy import CopyFailure, HostBytes, HostCopy, HostElements
from numba_offload.mapping.layout import layout_of, raw_view
from numba_offload.targets.gpu import memory as gpu_memory
from numba_offload.targets.gpu import staging_ring

THREADS = 4


NATIVE = [False]


@pytest.fixture(autouse=True, params=["python", "native"])
def small_ring(monkeypatch, request):
    """Sizes a thousandth of the real ones, so that a few hundred KiB fill and refill the ring. With lanes of either kind."""
    monkeypatch.setattr(sys.modules[__name__], "NATIVE", [request.param == "native"])
    monkeypatch.setattr(staging_ring, "RING_BYTES", CAPACITY)
    monkeypatch.setattr(staging_ring, "NATIVE_PIECE", 1024)
    monkeypatch.setattr(staging_ring, "LEAST_PIECE", 1024)
    monkeypatch.setattr(staging_ring, "MOST_PIECE", 4096)
    monkeypatch.setattr(staging_ring, "_PIECE_STEP", 512)
    monkeypatch.setattr(staging_ring, "_BYTES_PER_LANE", 2048)
    monkeypatch.setattr(gpu_memory, "SMALL_COPY", 1000)
    monkeypatch.setattr(gpu_memory, "SMALL_BATCH", 1000)
    monkeypatch.setenv("NUMBA_OFFLOAD_COPY_THREADS", str(THREADS))


CAPACITY = THREADS * 8192
python_lanes = pytest.mark.parametrize("small_ring", ["python"], indirect=True)
native_lanes = pytest.mark.parametrize("small_ring", ["native"], indirect=True)


def threaded_memory(**options):
    return memory_with(native=NATIVE[0], **options)


def lanes_used(memory):
    """How many moved something. Of native ones, how many were called: whoever wakes in time does another's part, too."""
    return 1 + memory._ring._native._living[0] if NATIVE[0] else len(memory._driver.threads)


def random_bytes(nbytes, seed=0):
    return np.random.default_rng(seed).integers(0, 256, nbytes, dtype=np.uint8)


def on_host(array):
    return HostBytes(array.ctypes.data) if array.flags.forc else HostElements(layout_of(array))


def on_device(memory, arrays):
    """Copies for arrays and device buffers of their own."""
    return [HostCopy(memory.allocate(max(a.nbytes, 1)), on_host(a), a.nbytes) for a in arrays]


def content(copy):
    return raw_view(copy.device, (copy.nbytes,), (1,), 1).copy()


def both_ways(memory, arrays):
    """Copy over, look, copy back into zeros, look."""
    copies = on_device(memory, arrays)
    memory.copy_all_to_device(copies)
    memory._driver.wait("looking", 0)
    for array, copy in zip(arrays, copies, strict=True):
        np.testing.assert_array_equal(content(copy), np.frombuffer(array.tobytes(), np.uint8))
    before = [array.copy() for array in arrays]
    for array in arrays:
        array[...] = 0
    memory.copy_all_to_host(copies)
    for array, expected in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, expected)


# Bytes


@pytest.mark.parametrize("nbytes", [1, 999, 1000, 1001, 2048, 4097, 8192, CAPACITY - 1, CAPACITY, CAPACITY + 1, 5 * CAPACITY])
def test_every_byte_arrives_both_ways(nbytes):
    memory = threaded_memory(delay=0.001)
    both_ways(memory, [random_bytes(nbytes)])
    assert bool(memory._driver.direct) == (nbytes < 1000)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 30_000), st.integers(0, 64)), min_size=1, max_size=5),
    st.integers(1, 6),
    st.integers(0, 9),
)
def test_any_sizes_and_offsets_arrive(sizes, threads, seed):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMBA_OFFLOAD_COPY_THREADS", str(threads))
        memory = threaded_memory(delay=0.0003, seed=seed)
        for step in range(2):  # again, with lanes that are in use
            arrays = [random_bytes(n + offset, seed + step)[offset:] for n, offset in sizes]
            both_ways(memory, arrays)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_strided_arrays_are_packed_on_the_way(data):
    memory = threaded_memory(delay=0.0002)
    shape = data.draw(st.lists(st.integers(1, 30), min_size=1, max_size=3).filter(lambda s: np.prod(s) < 6000))
    dtype = data.draw(st.sampled_from(["u1", "i2", "f8", "c16", np.dtype([("a", "i1"), ("b", "f8")]), np.dtype("V5000")]))
    base = random_bytes(int(np.prod(shape)) * 4 * np.dtype(dtype).itemsize).view(dtype)
    base = base.reshape(*shape[:-1], -1)
    view = base[..., :: data.draw(st.sampled_from([2, 3, -2]))]
    view = view.transpose(data.draw(st.permutations(range(view.ndim))))
    layout = layout_of(view)
    copy = HostCopy(memory.allocate(view.size * view.itemsize), HostElements(layout), view.size * view.itemsize)
    memory.copy_all_to_device([copy])
    memory._driver.wait("looking", 0)
    assert content(copy).tobytes() == raw_view(layout.pointer, layout.shape, layout.strides, layout.itemsize).tobytes()
    before = base.tobytes()
    elements = raw_view(layout.pointer, layout.shape, layout.strides, layout.itemsize)
    np.copyto(elements, np.zeros(view.shape, elements.dtype))
    memory.copy_all_to_host([copy])
    assert base.tobytes() == before  # what lies between, too


@pytest.mark.parametrize("sizes", [(3000, 3000), (CAPACITY, 3000), (9000, 2 * CAPACITY)])
def test_dense_and_strided_arrays_of_one_launch(sizes):
    memory = threaded_memory(delay=0.0005)
    for _ in range(2):
        both_ways(memory, [random_bytes(sizes[0]), random_bytes(2 * sizes[1], 1)[::2], random_bytes(1500, 2)])


# Which way


def test_small_copies_do_not_use_the_ring():
    memory = threaded_memory()
    both_ways(memory, [random_bytes(999), random_bytes(10)])
    assert memory._driver.direct == ["over", "over", "back", "back"]
    assert not memory._driver.staged and not memory._driver.pinned


def test_page_locked_arrays_are_copied_by_the_device():
    memory = threaded_memory()
    driver = memory._driver
    pinned = raw_view(driver.allocate_pinned(50_000), (50_000,), (1,), 1)
    pinned[:] = random_bytes(50_000)
    both_ways(memory, [pinned])
    assert driver.staged == ["over", "back"] and not driver.direct


def test_page_locked_small_and_large_arrays_together():
    memory = threaded_memory(delay=0.001)
    pinned = [raw_view(memory.allocate_pinned(n), (n,), (1,), 1) for n in (70_000, 3000)]
    for array in pinned:
        array[:] = random_bytes(len(array))
    both_ways(memory, [random_bytes(500), pinned[0], random_bytes(20_000), pinned[1], random_bytes(9000)])


def test_arrays_of_one_launch_share_the_threads():
    memory = threaded_memory(delay=0.005)
    device = DeviceState(memory)
    arrays = [random_bytes(3000, seed) for seed in range(3)]
    mapping = LaunchMapping(device, [ArrayUse(f"a{n}", array, "tofrom") for n, array in enumerate(arrays)])
    memory._driver.wait("looking", 0)
    for view, array in zip(mapping.views, arrays, strict=True):
        raw_view(view.pointer, (3000,), (1,), 1)[:] = array[::-1]
    expected = [array[::-1].copy() for array in arrays]
    memory._driver.reset()
    mapping.finish(True)
    for array, wanted in zip(arrays, expected, strict=True):
        np.testing.assert_array_equal(array, wanted)
    assert 1 < lanes_used(memory) <= THREADS  # one lane alone does not hold them
    assert device.pool.bytes_in_use == 0


@pytest.mark.parametrize(("text", "staged"), [("0", False), ("1", True), ("64", True)])
def test_the_number_of_threads(monkeypatch, text, staged):
    monkeypatch.setenv("NUMBA_OFFLOAD_COPY_THREADS", text)
    memory = threaded_memory(delay=0.001)
    both_ways(memory, [random_bytes(300_000)])
    assert bool(memory._driver.staged) == staged
    if text != "64":
        assert memory._driver.threads == {threading.get_ident()}


@pytest.mark.parametrize("text", ["-1", "65", "many", "2.5", " "])
def test_a_bad_number_of_threads_is_told(monkeypatch, text):
    monkeypatch.setenv("NUMBA_OFFLOAD_COPY_THREADS", text)
    with pytest.raises(TargetError, match="NUMBA_OFFLOAD_COPY_THREADS=.*from 0 .* to 64"):
        LaunchMapping(DeviceState(threaded_memory()), [ArrayUse("x", random_bytes(5000), "to")])


@pytest.mark.parametrize("most", [0, 8192, CAPACITY // 2])
def test_where_little_memory_can_be_page_locked(most):
    both_ways(threaded_memory(most_pinned=most), [random_bytes(3 * CAPACITY), random_bytes(5000)])


def test_a_busy_ring_is_not_waited_for():
    memory = threaded_memory()
    reached, may_go = threading.Event(), threading.Event()
    memory._driver.after(7, lambda: (reached.set(), may_go.wait(60)))
    first, second = random_bytes(3 * CAPACITY), random_bytes(9000, 1)
    copies = on_device(memory, [first, second])
    slow = threading.Thread(target=memory.copy_all_to_device, args=(copies[:1], 7))
    slow.start()
    assert reached.wait(60)
    while not memory._ring.taken:
        time.sleep(0)
    memory.copy_all_to_device(copies[1:])
    np.testing.assert_array_equal(content(copies[1]), second)
    may_go.set()
    slow.join(60)
    memory._driver.wait("looking", 7)
    np.testing.assert_array_equal(content(copies[0]), first)


# Order


def test_copies_over_come_after_the_streams_work_and_before_its_further_work():
    memory = threaded_memory(delay=0.003)
    array = random_bytes(3 * CAPACITY)
    (copy,) = on_device(memory, [array])
    seen = []

    def earlier():
        time.sleep(0.05)
        raw_view(copy.device, (copy.nbytes,), (1,), 1)[:] = 7

    memory._driver.after(9, earlier)
    memory.copy_all_to_device([copy], 9)
    memory._driver.after(9, lambda: seen.append(content(copy)))
    array[:] = 0  # has been read
    memory._driver.wait("looking", 9)
    np.testing.assert_array_equal(seen[0], random_bytes(3 * CAPACITY))


def test_copies_back_come_after_the_streams_work():
    memory = threaded_memory()
    array = random_bytes(9000)
    (copy,) = on_device(memory, [array])

    def work():
        time.sleep(0.05)
        raw_view(copy.device, (copy.nbytes,), (1,), 1)[:] = 7

    memory._driver.after(9, work)
    memory.copy_all_to_host([copy], 9)
    assert (array == 7).all()


def test_a_freed_buffer_is_used_again_behind_the_work_on_it():
    memory = threaded_memory()
    pool = DeviceState(memory).pool
    buffer = pool.allocate(256)
    released, seen = threading.Event(), []
    memory._driver.after(5, lambda: (released.wait(60), raw_view(buffer, (256,), (1,), 1).fill(1)))
    pool.free_behind(buffer, 5)
    assert pool.allocate(256, stream=6) == buffer
    memory._driver.after(6, lambda: seen.append(raw_view(buffer, (256,), (1,), 1).copy()))
    assert not seen
    released.set()
    memory._driver.wait("looking", 6)
    assert (seen[0] == 1).all()


# Failures


@pytest.mark.parametrize("how", ["fail_queueing", "fail_running"])
@pytest.mark.parametrize("sizes", [(20_000, 500, 9000), (2 * CAPACITY,), (2 * CAPACITY, 3000, CAPACITY)])
def test_a_copy_over_that_fails_is_told_once_and_leaves_nothing_under_way(how, sizes):
    memory = threaded_memory(delay=0.0005)
    driver = memory._driver
    arrays = [random_bytes(n, n) for n in sizes]
    copies = on_device(memory, arrays)
    memory.copy_all_to_device(copies)
    driver.wait("looking", None)
    count = driver.queued
    for fault in range(count):
        driver.reset()
        setattr(driver, how, {fault})
        try:
            memory.copy_all_to_device(copies)
            driver.wait("looking", None)  # a copy that fails later is told where somebody waits
            assert NATIVE[0] and driver.queued <= fault, "no error was told"  # fewer copies this time, and larger
        except TargetError as error:
            assert "injected" in str(error)
            assert how == "fail_running" or (isinstance(error, CopyFailure) and not error.partly)
        while True:
            try:
                driver.wait("settling", None)
                break
            except TargetError:
                pass
        driver.reset()
        both_ways(memory, [array.copy() for array in arrays[:2]])


@pytest.mark.parametrize("how", ["fail_queueing", "fail_running"])
@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("locked", [False, True])
@pytest.mark.parametrize("sizes", [(20_000, 500, 3000), (9000,), (2 * CAPACITY,), (2 * CAPACITY, 3000, CAPACITY)])
def test_a_copy_back_that_fails_leaves_arrays_old_or_new(how, persistent, locked, sizes):
    """At each copy, once or for good. Only an array that does not fit may be torn, for good, and is named then."""
    memory = threaded_memory(delay=0.0005)
    driver = memory._driver
    arrays = [random_bytes(n, n) for n in sizes]
    if locked:
        arrays[0] = raw_view(memory.allocate_pinned(sizes[0]), (sizes[0],), (1,), 1)
        arrays[0][:] = random_bytes(sizes[0])
    copies = on_device(memory, arrays)
    memory.copy_all_to_device(copies)
    memory.copy_all_to_host(copies)
    new = [array.copy() for array in arrays]
    driver.reset()
    memory.copy_all_to_host(copies)
    count = driver.queued
    for fault in range(count):
        for array in arrays:
            array[:] = 0
        driver.reset()
        setattr(driver, how, set(range(fault, 10**4 if persistent else fault + 1)))
        torn = None
        try:
            memory.copy_all_to_host(copies)
            failed = False
        except CopyFailure as failure:
            failed, torn = True, failure.position if failure.partly else None
        assert failed or not persistent
        assert torn is None or (torn == 0 and (persistent or locked) and (locked or sizes[0] > CAPACITY))
        for number, (array, wanted) in enumerate(zip(arrays, new, strict=True)):
            if number != torn:
                np.testing.assert_array_equal(array, np.zeros_like(array) if failed else wanted)
        driver.reset()
        while True:
            try:
                driver.wait("settling", None)
                break
            except TargetError:
                pass
    memory.copy_all_to_host(copies)
    for array, wanted in zip(arrays, new, strict=True):
        np.testing.assert_array_equal(array, wanted)


def test_a_torn_array_is_named():
    memory = threaded_memory()
    array, small = random_bytes(2 * CAPACITY), random_bytes(3000)
    uses = [ArrayUse("big", array, "tofrom"), ArrayUse("small", small, "tofrom")]
    mapping = LaunchMapping(DeviceState(memory), uses, kernel="k")
    memory._driver.wait("looking", None)
    memory._driver.reset()
    first = 2 if NATIVE[0] else 11  # copies before anything is written
    memory._driver.fail_running = set(range(first + 1, 10**4))
    with pytest.raises(TargetError, match=r"argument 'big' .* launching k, failed: injected.*'big' is partly written"):
        mapping.finish(True)
    np.testing.assert_array_equal(small, random_bytes(3000))


@python_lanes
def test_an_interrupt_waits_for_the_other_threads(monkeypatch):
    memory = threaded_memory(delay=0.001)
    array = random_bytes(3 * CAPACITY)
    (copy,) = on_device(memory, [array])
    caller, read = threading.get_ident(), HostBytes.read

    def interrupted(self, *part):
        if threading.get_ident() == caller:
            raise KeyboardInterrupt
        read(self, *part)

    monkeypatch.setattr(HostBytes, "read", interrupted)
    with pytest.raises(KeyboardInterrupt):
        memory.copy_all_to_device([copy])
    monkeypatch.undo()
    assert not memory._ring.taken


@python_lanes
def test_an_interrupt_while_arrays_are_written_leaves_them_new(monkeypatch):
    memory = threaded_memory()
    arrays = [random_bytes(9000, 1), random_bytes(9000, 2)]
    copies = on_device(memory, arrays)
    memory.copy_all_to_device(copies)
    memory._driver.wait("looking", 0)
    expected = [array.copy() for array in arrays]
    for array in arrays:
        array[:] = 0
    caller, write, told = threading.get_ident(), HostBytes.write, []

    def interrupted(self, *part):
        if threading.get_ident() == caller and not told:
            told.append(1)
            raise KeyboardInterrupt
        write(self, *part)

    monkeypatch.setattr(HostBytes, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        memory.copy_all_to_host(copies)
    for array, wanted in zip(arrays, expected, strict=True):
        np.testing.assert_array_equal(array, wanted)


@python_lanes
def test_an_interrupt_in_the_middle_of_a_large_array_leaves_it_new(monkeypatch):
    memory = threaded_memory(delay=0.0005)
    array = random_bytes(4 * CAPACITY)
    (copy,) = on_device(memory, [array])
    memory.copy_all_to_device([copy])
    memory._driver.wait("looking", 0)
    array[:] = 0
    caller, wait, told = threading.get_ident(), memory._driver.await_event, []

    def interrupted(doing, event):
        if threading.get_ident() == caller and (array != 0).any() and not told:
            told.append(1)
            raise KeyboardInterrupt
        wait(doing, event)

    monkeypatch.setattr(memory._driver, "await_event", interrupted)
    with pytest.raises(KeyboardInterrupt):
        memory.copy_all_to_host([copy])
    np.testing.assert_array_equal(array, random_bytes(4 * CAPACITY))


# Threads and processes


def test_copies_of_several_threads_at_once():
    memory = threaded_memory(delay=0.0005)
    faults = []

    def work(seed):
        try:
            for step in range(5):
                copies = on_device(memory, arrays := [random_bytes(n, seed + step) for n in (9000, 50_000)])
                memory.copy_all_to_device(copies, seed)
                before = [a.copy() for a in arrays]
                for a in arrays:
                    a[:] = 0
                memory.copy_all_to_host(copies, seed)
                for a, b in zip(arrays, before, strict=True):
                    np.testing.assert_array_equal(a, b)
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not faults


def test_threads_end_with_their_memory():
    memory = threaded_memory()
    both_ways(memory, [random_bytes(50_000)])
    named = [t for t in threading.enumerate() if t.name == "numba_offload copies"]
    assert named and all(t.daemon for t in named)
    count = memory._ring._native._living[0] if NATIVE[0] else memory._ring._python._threads._count[0]
    assert count == THREADS - 1
    del memory
    gc.collect()
    deadline = time.monotonic() + 60
    while sum(t.is_alive() for t in named) > len(named) - count and time.monotonic() < deadline:
        time.sleep(0.01)
    assert sum(t.is_alive() for t in named) <= len(named) - count


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_starts_its_own_threads():
    memory = threaded_memory()
    both_ways(memory, [random_bytes(50_000)])
    turn = memory._ring.reserve()  # as if another thread were copying
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        code = 1
        try:
            memory._driver.streams.clear()
            memory._driver.reset()
            both_ways(memory, [random_bytes(50_000)])
            memory._ring.give_back(turn)  # the parent's
            code = 0 if lanes_used(memory) > 1 else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


# Results that are asked for behind a kernel


def reverse(driver, views, arrays, seconds=0.005):
    """Queue a kernel that takes its time."""

    def kernel():
        time.sleep(seconds)
        for view, array in zip(views, arrays, strict=True):
            device = raw_view(view.pointer, (len(array),), (1,), 1)
            device[:] = device[::-1].copy()

    driver.after(0, kernel)


def launched(memory, arrays):
    device = DeviceState(memory)
    mapping = LaunchMapping(device, [ArrayUse(f"a{n}", array, "tofrom") for n, array in enumerate(arrays)])
    reverse(memory._driver, mapping.views, arrays)
    return device, mapping


def asked(mapping):
    mapping.ask()
    return mapping._launch._asked is not None


@native_lanes
@pytest.mark.parametrize("sizes", [(5000,), (3000, 100, 9000), (CAPACITY,)])
def test_results_come_behind_the_kernel(sizes):
    memory = threaded_memory(delay=0.001)
    arrays = [random_bytes(n, n) for n in sizes]
    expected = [array[::-1].copy() for array in arrays]
    before = [array.copy() for array in arrays]
    device, mapping = launched(memory, arrays)
    memory._driver.reset()
    assert asked(mapping)
    assert memory._driver.staged == ["back"] * len(sizes)
    for array, old in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, old)
    mapping.finish(True)
    for array, new in zip(arrays, expected, strict=True):
        np.testing.assert_array_equal(array, new)
    assert memory._driver.staged == ["back"] * len(sizes) and not memory._driver.direct
    assert device.pool.bytes_in_use == 0 and not memory._ring.taken
    both_ways(memory, arrays)


@native_lanes
def test_results_that_are_not_wanted():
    memory = threaded_memory(delay=0.001)
    array = random_bytes(5000)
    device, mapping = launched(memory, [array])
    assert asked(mapping)
    mapping.finish(False)
    np.testing.assert_array_equal(array, random_bytes(5000))
    assert device.pool.bytes_in_use == 0 and not memory._ring.taken
    device, mapping = launched(memory, [array])
    assert asked(mapping)
    del mapping
    gc.collect()
    with LaunchMapping(device, [ArrayUse("x", array, "to")]):  # which releases what was dropped
        assert not memory._ring.taken
    np.testing.assert_array_equal(array, random_bytes(5000))
    both_ways(memory, [array])


def test_what_is_not_asked_for():
    memory = threaded_memory()
    small, large = random_bytes(500), random_bytes(CAPACITY + 1)
    pinned = raw_view(memory.allocate_pinned(5000), (5000,), (1,), 1)
    strided = random_bytes(10_000)[::2]
    for array in (small, large, pinned, strided):
        expected = array[::-1].copy()
        _, mapping = launched(memory, [array])
        assert not asked(mapping)
        mapping.finish(True)
        np.testing.assert_array_equal(array, expected)
    array = random_bytes(5000)
    with profile() as p:
        _, mapping = launched(memory, [array])
        assert not asked(mapping)
        mapping.finish(True)
    assert p.d2h_count == 1
    _, mapping = launched(memory, [array])
    turn = memory._ring.reserve()
    assert not asked(mapping)
    mapping.finish(True)
    memory._ring.give_back(turn)
    np.testing.assert_array_equal(array, random_bytes(5000))


@native_lanes
def test_any_call_of_asking_may_fail():
    """Arrays are old or new; what fails before the kernel has ended is tried again."""
    memory = threaded_memory()
    for number in range(5):
        array = random_bytes(5000)
        device, mapping = launched(memory, [array])
        memory._driver.reset()
        memory._driver.fail_call = {number}
        asked(mapping)
        try:
            mapping.finish(True)
            failed = False
        except TargetError as error:
            failed = True
            assert "'a0'" in str(error) and "as they were" in str(error)
        assert failed == (number == 2)  # the one that waits
        memory._driver.reset()
        np.testing.assert_array_equal(array, random_bytes(5000)[:: 1 if failed else -1])
        assert device.pool.bytes_in_use == 0 and not memory._ring.taken
