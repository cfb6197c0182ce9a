"""Native copy lanes: their code, each call of a runtime that may fail, and lanes that do not wake in time."""

from __future__ import annotations

import ctypes
import itertools
import subprocess
import sys
import threading
from pathlib import Path

import llvmlite.binding as ll
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threaded_driver import NativeThreadedDriver, threaded_memory

from numba_offload.errors import TargetError
from numba_offload.mapping.host_copy import CopyFailure, HostBytes, HostCopy
from numba_offload.mapping.layout import raw_view
from numba_offload.targets.gpu import lane_code, staging_ring
from numba_offload.targets.gpu import memory as gpu_memory
from numba_offload.targets.gpu.native_lanes import NativeCopies, NativeLanes, Pieces, loaded_copies

LANES, PIECE, SLOTS = 3, 1024, 12
CAPACITY = SLOTS * PIECE


@pytest.fixture(autouse=True)
def small_ring(monkeypatch):
    monkeypatch.setattr(staging_ring, "RING_BYTES", CAPACITY)
    monkeypatch.setattr(staging_ring, "NATIVE_PIECE", PIECE)
    monkeypatch.setattr(staging_ring, "MOST_QUEUED", 4)
    monkeypatch.setattr(staging_ring, "_BYTES_PER_LANE", PIECE)
    monkeypatch.setattr(gpu_memory, "SMALL_COPY", 1)
    monkeypatch.setattr(gpu_memory, "SMALL_BATCH", 1)
    monkeypatch.setenv("NUMBA_OFFLOAD_COPY_THREADS", str(LANES))


def random_bytes(nbytes, seed=0):
    return np.random.default_rng(seed).integers(0, 256, nbytes, dtype=np.uint8)


def on_device(memory, arrays):
    return [HostCopy(memory.allocate(a.nbytes), HostBytes(a.ctypes.data), a.nbytes) for a in arrays]


def content(copy):
    return raw_view(copy.device, (copy.nbytes,), (1,), 1).copy()


def settle(driver):
    while True:
        try:
            driver.wait("settling", None)
            return
        except TargetError:
            pass


# Cutting


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(1, 5000), min_size=1, max_size=6), st.integers(1, 2000))
def test_pieces_are_the_copies_bytes_in_order(sizes, piece_bytes):
    """As the native code cuts them."""
    sent = [random_bytes(n, n) for n in sizes]
    received = [np.zeros(n + 2, np.uint8) for n in sizes]
    driver = NativeThreadedDriver()
    lanes = NativeLanes(driver, driver.native_copies(), lane_code.lane_code(), 1)
    copies = [
        (7 * n, HostCopy(one.ctypes.data, HostBytes(other.ctypes.data + 1), one.nbytes))
        for n, (one, other) in enumerate(zip(sent, received, strict=True))
    ]
    pieces = Pieces(copies, piece_bytes)
    lanes.move(pieces, 1)
    for one, other in zip(sent, received, strict=True):
        np.testing.assert_array_equal(other[1:-1], one)
        assert other[0] == other[-1] == 0
    counts = [-(-n // piece_bytes) for n in sizes]
    assert len(pieces) == sum(counts)
    expected = [7 * n for n, count in enumerate(counts) for _ in range(count)]
    assert [pieces.position(number) for number in range(len(pieces))] == expected


# What is called


def test_a_copy_over_asks_the_runtime_for_no_more_than_it_needs(monkeypatch):
    """Copies grow, up to four pieces; where slots are filled again, lanes look for the event behind a copy from them."""
    monkeypatch.setenv("NUMBA_OFFLOAD_COPY_THREADS", "1")
    memory = threaded_memory(native=True)
    arrays = [random_bytes(SLOTS * PIECE), random_bytes((2 * SLOTS) * PIECE)]
    fitting, larger = on_device(memory, arrays)
    for _ in range(2):
        memory._driver.reset()
        memory.copy_all_to_device([fitting])
        assert memory._driver.calls == 6 * ["over"]  # of 1, 1, 2, 3, 4 and the last 1 piece
    memory._driver.reset()
    memory.copy_all_to_device([larger])
    calls = [name for name in memory._driver.calls if name != "query"]
    assert calls == 9 * ["over", "record"]


def test_a_copy_back_asks_the_runtime_for_no_more_than_it_needs(monkeypatch):
    """One copy for each array that the ring holds; the rest in fours as slots become free."""
    monkeypatch.setenv("NUMBA_OFFLOAD_COPY_THREADS", "1")
    memory = threaded_memory(native=True)
    arrays = [random_bytes(5000), random_bytes(3000), random_bytes((SLOTS + 6) * PIECE)]
    one, other, larger = on_device(memory, arrays)
    memory.copy_all_to_host([one, other])
    assert memory._driver.calls == ["back", "back", "record", "await"]
    memory._driver.reset()
    memory.copy_all_to_host([larger])
    calls = [name for name in memory._driver.calls if name != "query"]
    assert calls == ["back", "record", "await", *2 * ["back", "record"]]


# Failures


def faults(memory, do):
    """Do something with each call of the runtime failing in turn; yields the call's name and what was raised."""
    driver = memory._driver
    for number in itertools.count():
        driver.reset()
        driver.fail_call = {number}
        raised = None
        try:
            do()
        except TargetError as error:
            raised = error
        calls = driver.calls
        settle(driver)
        driver.reset()
        if len(calls) <= number:
            return
        yield calls[number], raised


@pytest.mark.parametrize("threads", [1, LANES])
@pytest.mark.parametrize("sizes", [(3000, 500, 2000), (2 * CAPACITY,), (CAPACITY, 3000, CAPACITY)])
def test_any_call_of_a_copy_over_may_fail(monkeypatch, threads, sizes):
    monkeypatch.setenv("NUMBA_OFFLOAD_COPY_THREADS", str(threads))
    memory = threaded_memory(native=True)
    arrays = [random_bytes(n, n) for n in sizes]
    copies = on_device(memory, arrays)
    said = {"over": "copying to the device", "record": "ordering streams", "query": "waiting for a copy"}
    for name, error in faults(memory, lambda: memory.copy_all_to_device(copies)):
        assert said[name] in str(error) and str(NativeThreadedDriver.REFUSED) in str(error)
        assert isinstance(error, CopyFailure) and not error.partly
    memory.copy_all_to_device(copies)
    settle(memory._driver)
    for array, copy in zip(arrays, copies, strict=True):
        np.testing.assert_array_equal(content(copy), array)


@pytest.mark.parametrize("threads", [1, LANES])
@pytest.mark.parametrize("sizes", [(3000, 500, 2000), (2 * CAPACITY,), (3 * CAPACITY, 3000, CAPACITY)])
def test_any_call_of_a_copy_back_may_fail(monkeypatch, threads, sizes):
    """Nothing has been written then, or all of it was fetched once more."""
    monkeypatch.setenv("NUMBA_OFFLOAD_COPY_THREADS", str(threads))
    memory = threaded_memory(native=True)
    arrays = [random_bytes(n, n) for n in sizes]
    wanted = [array.copy() for array in arrays]
    copies = on_device(memory, arrays)
    memory.copy_all_to_device(copies)
    settle(memory._driver)

    def back():
        for array in arrays:
            array[:] = 0
        memory.copy_all_to_host(copies)

    told = []
    for _, error in faults(memory, back):
        told.append(error is not None)
        assert error is None or (isinstance(error, CopyFailure) and not error.partly)
        for array, new in zip(arrays, wanted, strict=True):
            np.testing.assert_array_equal(array, np.zeros_like(new) if error else new)
    assert told[0] and all(told) == (max(sizes) <= CAPACITY)
    back()
    for array, new in zip(arrays, wanted, strict=True):
        np.testing.assert_array_equal(array, new)


def test_the_array_that_failed_is_told():
    memory = threaded_memory(native=True)
    arrays = [random_bytes(n) for n in (1000, 3000, 1000)]
    copies = on_device(memory, arrays)
    for position, fault in ((0, 0), (1, 1), (2, 2)):
        memory._driver.reset()
        memory._driver.fail_call = {fault}
        with pytest.raises(CopyFailure) as failure:
            memory.copy_all_to_host(copies)
        assert failure.value.position == position
        settle(memory._driver)


def test_others_stop_when_one_lane_fails():
    memory = threaded_memory(native=True, delay=0.001)
    array = random_bytes(40 * CAPACITY)
    copies = on_device(memory, [array])
    memory._driver.fail_queueing = {5}
    with pytest.raises(CopyFailure):
        memory.copy_all_to_device(copies)
    assert memory._driver.queued <= 5 + LANES


def interrupted(function):
    """As if a signal had come while native code was running: it is told when that returns."""

    def call(*arguments):
        function(*arguments)
        raise KeyboardInterrupt

    return call


@pytest.mark.parametrize(("step", "written"), [("land", False), ("write", True)])
def test_an_interrupt_leaves_arrays_old_or_new(monkeypatch, step, written):
    memory = threaded_memory(native=True)
    array = random_bytes(5 * CAPACITY)
    expected = array.copy() if written else np.zeros_like(array)
    copies = on_device(memory, [array])
    memory.copy_all_to_device(copies)
    settle(memory._driver)
    array[:] = 0
    native = memory._ring._native
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(native, step, interrupted(getattr(native, step)))
        memory.copy_all_to_host(copies)
    np.testing.assert_array_equal(array, expected)
    memory.copy_all_to_host(copies)
    np.testing.assert_array_equal(array, random_bytes(5 * CAPACITY))


# Lanes and threads


def test_functions_are_taken_from_libraries_that_are_loaded():
    names = ("memcpy", "memmove", "labs", "strlen", "free")
    found = loaded_copies("libc.so.6", names)
    assert isinstance(found, NativeCopies) and found.record_event == ctypes.cast(ctypes.CDLL(None).labs, ctypes.c_void_p).value
    assert loaded_copies("libc.so.6", (*names[:4], "no_such_function")) is None
    assert loaded_copies("libnosuchlibrary.so.1", names) is None


_BARE = """
declare ptr @memcpy(ptr, ptr, i64)
define i32 @copy(ptr %to, ptr %from, i64 %n, ptr %stream) {
  %1 = call ptr @memcpy(ptr %to, ptr %from, i64 %n)
  ret i32 0
}
define i32 @nothing(i64 %event) {
  ret i32 0
}
"""
"""A runtime whose device is the host, at once: as quick as can be, so that lanes meet."""


class BareDriver(NativeThreadedDriver):
    """Events and waits are not recorded: everything has happened when it is asked for."""

    def native_copies(self):
        module = ll.parse_assembly(_BARE)
        self.engine = ll.create_mcjit_compiler(module, ll.Target.from_default_triple().create_target_machine(jit=True))
        self.engine.finalize_object()
        copy, nothing = map(self.engine.get_function_address, ("copy", "nothing"))
        return NativeCopies(copy, copy, nothing, nothing, nothing)


@pytest.mark.parametrize("lanes", [1, 2, 7])
def test_thousands_of_batches_at_full_speed(monkeypatch, lanes):
    monkeypatch.setenv("NUMBA_OFFLOAD_COPY_THREADS", str(lanes))
    ring = staging_ring.StagingRing(BareDriver())
    random = np.random.default_rng(lanes)
    source = random_bytes(3 * 60_000).reshape(3, -1)
    for step in range(1000):
        sizes = random.integers(1, 60_000 if step % 10 == 0 else 6000, random.integers(1, 4))
        device, back = np.zeros_like(source), np.zeros_like(source)
        over = [(n, HostCopy(device[n].ctypes.data, HostBytes(source[n].ctypes.data), int(size))) for n, size in enumerate(sizes)]
        home = [(n, HostCopy(device[n].ctypes.data, HostBytes(back[n].ctypes.data), int(size))) for n, size in enumerate(sizes)]
        turn = ring.reserve()
        ring.upload(over, 0)
        ring.download(home)
        ring.give_back(turn)
        for n, size in enumerate(sizes):
            assert back[n, :size].tobytes() == source[n, :size].tobytes()
            assert not back[n, size:].any() and not device[n, size:].any()


def test_a_process_ends_while_lanes_sleep():
    script = """
import os, sys
sys.path[:0] = sys.argv[1:]
os.environ["NUMBA_OFFLOAD_COPY_THREADS"] = "4"
import numpy as np
from threaded_driver import threaded_memory
memory = threaded_memory(native=True)
array = np.ones(8 << 20, np.uint8)
memory.copy_to_device(memory.allocate(array.nbytes), array.ctypes.data, array.nbytes)
print("ended")
"""
    here = Path(__file__).parent
    paths = [str(here), str(here.parents[1])]
    done = subprocess.run([sys.executable, "-c", script, *paths], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ended\n", "")


def test_the_code_is_made_once_and_by_several_threads():
    found = []
    threads = [threading.Thread(target=lambda: found.append(lane_code.lane_code())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, found))) == 1 and found[0] is not None


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 20_000), min_size=1, max_size=4), st.integers(1, 6), st.data())
def test_lanes_that_are_not_there_are_not_waited_for(sizes, lanes, data):
    """Batches for more lanes than have threads: the others do the work."""
    monkey = pytest.MonkeyPatch()
    with monkey.context() as patch:
        patch.setenv("NUMBA_OFFLOAD_COPY_THREADS", str(lanes))
        there = data.draw(st.integers(0, lanes - 1))
        memory = threaded_memory(native=True)
        arrays = [random_bytes(n, n) for n in sizes]
        copies = on_device(memory, arrays)
        memory._ring.give_back(memory._ring.reserve())
        native = memory._ring._native
        ready = native.ready
        patch.setattr(native, "ready", lambda wanted: (ready(min(wanted, 1 + there)), wanted)[1])
        for _ in range(3):
            memory.copy_all_to_device(copies)
            settle(memory._driver)
            for array, copy in zip(arrays, copies, strict=True):
                np.testing.assert_array_equal(content(copy), array)
            before = [array.copy() for array in arrays]
            for array in arrays:
                array[:] = 0
            memory.copy_all_to_host(copies)
            for array, new in zip(arrays, before, strict=True):
                np.testing.assert_array_equal(array, new)
