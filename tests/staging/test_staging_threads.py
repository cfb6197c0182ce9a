"""Handles in several threads: launches on one array take turns, and a release waits for them."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from staged_kernels import add, fill, numbers, sum_up

from numba_offload import BorrowError, Region, preload, preload_mut, use_target
from numba_offload.mapping.borrow import BORROWS
from numba_offload.targets.cpu.target import CPUTarget


@pytest.fixture(params=["unified", "discrete"])
def memory(request, monkeypatch):
    monkeypatch.setenv("NUMBA_OFFLOAD_CPU_MEMORY", request.param)
    monkeypatch.setenv("NUMBA_OFFLOAD_TARGET", "cpu")
    yield request.param
    assert not BORROWS.live


def in_threads(work, count=4):
    errors = []

    def guarded(number):
        try:
            with use_target("cpu"):
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


def test_writers_on_one_handle_take_turns(memory):
    one, y = np.ones(3000), np.zeros(3000)
    with preload(one) as g1, preload_mut(y) as gy:
        in_threads(lambda number: [add(g1, Region(gy)) for _ in range(50)])
    assert (y == 200).all()


def test_readers_beside_a_writer_see_whole_launches(memory):
    y = np.zeros(500)
    with preload_mut(y) as gy:

        def work(number):
            for step in range(20):
                if number:
                    out = np.zeros(1)
                    sum_up(gy, Region(out))
                    assert out[0] % 500 == 0
                else:
                    fill(float(step), Region(gy))

        in_threads(work)


def test_each_thread_preloads_and_releases_for_reading(memory):
    x = numbers(50)

    def work(number):
        for _ in range(20):
            y = np.zeros(50 - number)
            with preload(x[number:]) as gx, preload_mut(y) as gy:
                add(gx, Region(gy))
            assert y.tolist() == x[number:].tolist()

    in_threads(work)
    assert x.flags.writeable


@pytest.fixture
def held_launch(monkeypatch):
    """Launches that wait in the target until they are let go."""
    inside, go = threading.Event(), threading.Event()
    launch = CPUTarget.launch

    def waiting(self, *arguments, **options):
        if threading.current_thread() is not threading.main_thread():
            inside.set()
            assert go.wait(30)
        return launch(self, *arguments, **options)

    monkeypatch.setattr(CPUTarget, "launch", waiting)
    return inside, go


def test_a_release_waits_for_a_launch_of_another_thread(memory, held_launch):
    inside, go = held_launch
    y = np.zeros(8)
    gy = preload_mut(y)
    fill(1.0, Region(gy))
    worker = threading.Thread(target=lambda: fill(2.0, Region(gy)))
    worker.start()
    assert inside.wait(30)
    releaser = threading.Thread(target=gy.release)
    releaser.start()
    while not gy.released:
        time.sleep(0.001)
    assert releaser.is_alive()
    with pytest.raises(BorrowError, match="was released at"):
        fill(3.0, Region(gy))
    go.set()
    worker.join(30)
    releaser.join(30)
    assert not releaser.is_alive()
    assert y.tolist() == [2.0] * 8
    assert y.flags.writeable


def test_a_second_release_is_done_when_the_first_is(memory, held_launch):
    inside, go = held_launch
    y = np.zeros(8)
    gy = preload_mut(y)
    worker = threading.Thread(target=lambda: fill(2.0, Region(gy)))
    worker.start()
    assert inside.wait(30)
    seen = []
    releasers = [threading.Thread(target=lambda: (gy.release(), seen.append(y.tolist()))) for _ in range(3)]
    for releaser in releasers:
        releaser.start()
    go.set()
    for thread in (worker, *releasers):
        thread.join(30)
    assert seen == [[2.0] * 8] * 3


def test_an_array_that_is_being_released_is_waited_for(memory, held_launch):
    inside, go = held_launch
    y, out = np.zeros(8), np.zeros(1)
    gy = preload_mut(y)
    worker = threading.Thread(target=lambda: fill(2.0, Region(gy)))
    worker.start()
    assert inside.wait(30)
    releaser = threading.Thread(target=gy.release)
    releaser.start()
    while not gy.released:
        time.sleep(0.001)
    threading.Timer(0.05, go.set).start()
    sum_up(y, Region(out))  # not refused: the release is under way
    assert out[0] == 16
    with preload_mut(y):
        pass
    worker.join(30)
    releaser.join(30)
