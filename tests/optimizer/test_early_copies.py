"""Copies begin before somebody waits for them: which, and that nothing else changes."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from numba_offload import Region, offload_kernel, optimize_transfers, profile
from numba_offload.mapping import early
from numba_offload.optimizer import scope


@offload_kernel
def add(x, y):
    for i in y.indices():
        y[i] += x[i]


@pytest.fixture(autouse=True)
def separate_memory(target, monkeypatch):
    if not target.separate:
        pytest.skip("nothing is copied where memory is shared")
    monkeypatch.setattr(early, "LEAST_BYTES", 1)


@pytest.fixture
def begun(monkeypatch):
    """The copies that have begun early: which way, and the first value of the host's array."""
    log = []

    def back(residency, resident):
        started = early.bring_back_early(residency, resident)
        log.append(("back", resident.label) if started else ("not back", resident.label))
        return started

    def over(residency, array, name):
        resident = early.take_over_early(residency, array, name)
        log.append(("over", name) if resident is not None else ("not over", name))
        return resident

    monkeypatch.setattr(scope, "bring_back_early", back)
    monkeypatch.setattr(scope, "take_over_early", over)
    return log


@optimize_transfers
def read_later(x, y, z):
    add(x, Region(y))
    add(x, Region(z))
    return y[0] + z[0]


def test_what_the_host_reads_later_comes_back_while_other_launches_run(begun):
    assert read_later(np.ones(100), np.zeros(100), np.zeros(100)) == 2
    assert begun == [("back", "y")]
    assert "return y[0] + z[0] brings y back, 800 bytes, once" in read_later.explain()


@pytest.fixture
def made_first():
    """The function, which nobody has called before."""
    return optimize_transfers(_made_first)


def _made_first(n, late):
    x = np.ones(100)
    y = np.zeros(100)
    total = 0.0
    if late:
        x = x + 1
    for _ in range(n):
        add(x, Region(y))
    return total + y.sum()


def test_what_a_launch_took_over_the_last_time_goes_over_as_soon_as_it_is_final(begun, made_first):
    assert made_first(2, False) == 200
    assert ("over", "y") not in begun
    with profile() as counted:
        assert made_first(2, False) == 200
    assert ("over", "y") in begun
    assert (counted.h2d_count, counted.d2h_count) == (2, 1)
    assert "for _ in range(n) takes y over, 800 bytes, once" in made_first.explain()


def test_an_array_that_no_launch_used_does_not_go_over_again(begun, made_first):
    made_first(2, False)
    made_first(0, False)
    begun.clear()
    assert made_first(0, False) == 0
    assert ("over", "y") not in begun


@optimize_transfers
def written_between(x, y, flag):
    x = x * 2
    z = y
    if flag:
        z[0] += 1  # another name of y, not of x
    add(x, Region(y))
    return y.sum()


def test_host_writes_after_an_early_copy_count(begun):
    for flag in (False, True, True):
        x, y = np.ones(4), np.zeros(4)
        assert written_between(x, y, flag) == 8 + flag


@optimize_transfers
def aliased(a, n):
    b = np.ones(100)
    c = a
    for _ in range(n):
        add(b, Region(c))
    return a.sum()


def test_an_alias_is_as_good_as_the_name(begun):
    for _ in range(3):
        assert aliased(np.zeros(100), 3) == 300


def test_the_host_waits_for_what_is_under_way(monkeypatch):
    go_on, copied = threading.Event(), early.bring_back_all

    def slowly(residents, stream=None):
        assert go_on.wait(10)
        copied(residents, stream)

    monkeypatch.setattr(early, "bring_back_all", slowly)
    threading.Timer(0.2, go_on.set).start()
    y = np.zeros(100)
    assert read_later(np.ones(100), y, np.zeros(100)) == 2
    assert go_on.is_set()
    assert np.all(y == 1)


def test_a_copy_that_fails_early_is_made_where_it_is_waited_for(monkeypatch):
    def failing(residents, stream=None):
        raise RuntimeError("injected")

    monkeypatch.setattr(early, "bring_back_all", failing)
    assert read_later(np.ones(100), np.zeros(100), np.zeros(100)) == 2
