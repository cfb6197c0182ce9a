"""A progress display in an optimised function leaves arrays on the device."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest

from numba_offload import Region, offload_kernel, optimize_transfers, profile, progress


@offload_kernel
def add(x, y):
    for i in y.indices():
        y[i] += x[i]


@optimize_transfers
def counted(x, y, n, force):
    for _ in progress(range(n), "adding", force=force):
        add(x, Region(y))
    with progress(total=n, force=force) as shown:
        for _ in range(n):
            add(x, Region(y))
            shown.advance()
    return y.sum()


@pytest.mark.parametrize("force", [False, True])
def test_loops_with_a_display_move_as_little_as_without(target, force, monkeypatch):
    if not target.separate:
        pytest.skip("nothing is copied where memory is shared")
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with profile() as moved:
        assert counted(np.ones(10), np.zeros(10), 5, force) == 100
    assert (moved.h2d_count, moved.d2h_count, moved.launches) == (2, 1, 10)


@optimize_transfers
def loops_in_a_loop(x, y, n):
    for _ in range(n):
        for _, _ in enumerate(range(1)):
            add(x, Region(y))
    return y.sum()


def test_iterators_made_anew_each_time_are_known_every_time(target):
    if not target.separate:
        pytest.skip("nothing is copied where memory is shared")
    with profile() as moved:
        assert loops_in_a_loop(np.ones(10), np.zeros(10), 600) == 6000
    assert (moved.h2d_count, moved.d2h_count) == (2, 1)
