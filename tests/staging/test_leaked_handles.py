"""Handles that nobody releases: results are not lost, and the warning tells where they were made."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import numpy as np
import pytest
from staged_kernels import fill, numbers

import numba_offload
from numba_offload import BorrowError, Region, preload, preload_mut
from numba_offload.mapping.borrow import BORROWS

ROOT = str(Path(numba_offload.__file__).parents[1])


@pytest.fixture(autouse=True)
def nothing_stays_preloaded():
    yield
    assert not BORROWS.live


def test_a_dropped_handle_warns_with_its_line_and_copies_back(target):
    y = np.zeros(4)
    gy = preload_mut(y)
    line = sys._getframe().f_lineno - 1
    fill(2.0, Region(gy))
    with pytest.warns(ResourceWarning, match=rf"'y', preloaded at .*:{line}.*without a release") as caught:
        del gy
        gc.collect()
    assert caught[0].filename == __file__
    assert caught[0].lineno == line
    assert y.tolist() == [2.0] * 4
    assert y.flags.writeable


def test_a_part_keeps_the_whole_alive(target):
    y = np.zeros(4)
    part = preload_mut(y)[1:]
    gc.collect()
    fill(2.0, Region(part))
    with pytest.warns(ResourceWarning):
        del part
        gc.collect()
    assert y.tolist() == [0, 2, 2, 2]


def test_what_was_released_does_not_warn(target):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with preload(numbers(4)) as gx, preload_mut(numbers(4)) as gy:
            pass
        del gx, gy
        gc.collect()


def test_a_warning_that_is_an_error_does_not_keep_results_away(target, monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    y = np.zeros(4)
    gy = preload_mut(y)
    fill(2.0, Region(gy))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        del gy
        gc.collect()
    assert [one.exc_type for one in told] == [ResourceWarning]
    assert y.tolist() == [2.0] * 4


def test_a_handle_dropped_in_the_middle_of_a_launch_is_released_by_the_next(target):
    """As by the garbage collector, which may run while locks are held."""
    from numba_offload import PartitioningStrategy

    y, z = np.zeros(4), np.zeros(4)
    kept = [preload_mut(y)]
    fill(2.0, Region(kept[0]))

    class Dropping(PartitioningStrategy):
        ndim = 1

        def count(self, t, T, shape):
            return 1 if t < shape[0] else 0

        def index(self, t, k, T, shape):
            return t

        def threads(self, shape):
            return shape[0]

        def preferred_threads(self, shape):
            kept.clear()
            gc.collect()
            return shape[0]

    with pytest.warns(ResourceWarning, match="'y'"):
        fill(1.0, Region(z, Dropping()))
        if BORROWS.live:
            fill(1.0, Region(z))
    assert y.tolist() == [2.0] * 4
    assert z.tolist() == [1.0] * 4


def test_the_short_way_of_a_launch_keeps_no_array_alive(target):
    import weakref

    y = np.zeros(4)
    with preload_mut(y) as gy:
        for _ in range(3):
            fill(1.0, Region(gy))
    gone = weakref.ref(y)
    del y, gy
    gc.collect()
    assert gone() is None


PROGRAM = """
import numpy as np
from numba_offload import Region, offload_kernel, preload_mut

@offload_kernel
def fill(value, y):
    for i in y.indices():
        y[i] = value

import atexit
y = np.zeros(4)
atexit.register(lambda: print("exit:", y.tolist(), y.flags.writeable))
gy = preload_mut(y)
fill(3.0, Region(gy))
"""


def program_environment(memory):
    return {**os.environ, "PYTHONPATH": ROOT, "NUMBA_OFFLOAD_TARGET": "cpu", "NUMBA_OFFLOAD_CPU_MEMORY": memory}


@pytest.mark.parametrize("memory", ["unified", "discrete"])
def test_handles_alive_at_exit_are_released(tmp_path, memory):
    script = tmp_path / "leaks.py"
    script.write_text(textwrap.dedent(PROGRAM))
    environment = program_environment(memory)
    done = subprocess.run(
        [sys.executable, "-W", "always::ResourceWarning", script], capture_output=True, text=True, env=environment, check=True
    )
    assert "exit: [3.0, 3.0, 3.0, 3.0] True" in done.stdout
    assert "ResourceWarning: the handle of 'y', preloaded at" in done.stderr
    assert "leaks.py:13, was alive at the program's end" in done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("memory", ["unified", "discrete"])
def test_a_forked_child_has_no_part_in_its_parent_s_preloads(tmp_path, memory):
    script = tmp_path / "forks.py"
    script.write_text(
        PROGRAM
        + textwrap.dedent("""
        import os, sys
        from numba_offload import BorrowError
        child = os.fork()
        if child == 0:
            try:
                fill(4.0, Region(gy))
            except BorrowError as error:
                print("refused:", "forked from" in str(error))
            try:
                gy.release()
            except BorrowError as error:
                print("behind:", "comes back in the process" in str(error))
            print("child:", y.flags.writeable)
            sys.stdout.flush()
            os._exit(0)
        os.waitpid(child, 0)
        fill(5.0, Region(gy))
        gy.release()
    """)
    )
    environment = program_environment(memory)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, env=environment, check=True, timeout=120)
    expected = ["refused: True", *(["behind: True"] if memory == "discrete" else []), "child: True"]
    assert done.stdout.splitlines() == [*expected, "exit: [5.0, 5.0, 5.0, 5.0] True"]


def test_a_handle_of_a_released_array_raises_no_second_time(target):
    y = np.zeros(4)
    gy = preload_mut(y)
    gy.release()
    with pytest.raises(BorrowError):
        fill(1.0, Region(gy))
