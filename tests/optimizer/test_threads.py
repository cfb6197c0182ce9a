"""Optimised functions of several threads, with locks as the plain functions would need them."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from numba_offload import Region, offload_kernel, optimize_transfers, use_target
from numba_offload.targets.registry import current_target


@offload_kernel
def add(x, y):
    for i in y.indices():
        y[i] += x[i]


@pytest.fixture(autouse=True)
def separate_memory(target):
    if not target.separate:
        pytest.skip("nothing stays on a device where memory is shared")


def together(target, *jobs):
    failures = []

    def run(job):
        try:
            with use_target(target.name):
                job()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert not failures, failures
    device = current_target().device
    assert not device.present.residents
    assert device.pool.bytes_in_use == 0


def test_one_array_under_a_lock(target):
    x, y, lock = np.ones(1000), np.zeros(1000), threading.Lock()

    @optimize_transfers
    def program(n):
        for _ in range(n):
            with lock:
                add(x, Region(y))
                add(x, Region(y))

    def plain():
        for _ in range(10):
            with lock:
                add(x, Region(y))
                y[:] += 1

    together(target, lambda: program(10), lambda: program(10), plain)
    assert np.all(y == 60)


def test_a_shared_input_and_outputs_of_their_own(target):
    x, outputs = np.ones(1000), [np.zeros(1000) for _ in range(4)]

    @optimize_transfers
    def program(y, n):
        for _ in range(n):
            add(x, Region(y))
        return y.sum()

    together(target, *[lambda y=y: program(y, 20) for y in outputs])
    assert all(np.all(y == 20) for y in outputs)


def test_parts_of_one_array(target):
    x, y = np.ones(500), np.zeros((2, 500))

    @optimize_transfers
    def program(part, n):
        for _ in range(n):
            add(x, Region(part))

    together(target, lambda: program(y[0], 30), lambda: program(y[1], 20))
    assert np.all(y[0] == 30)
    assert np.all(y[1] == 20)


def test_a_launch_of_another_thread_sees_what_stays_on_the_device(target):
    # No lock: events order the two threads, and setting one is code that cannot be seen.
    x, y, z = np.ones(100), np.zeros(100), np.zeros(100)
    ready, done = threading.Event(), threading.Event()

    @optimize_transfers
    def first():
        add(x, Region(y))
        ready.set()
        done.wait(30)
        add(x, Region(y))

    def second():
        ready.wait(30)
        add(y, Region(z))
        y[:] = 10
        done.set()

    together(target, first, second)
    assert np.all(z == 1)
    assert np.all(y == 11)
