"""pinned_empty and pinned_zeros: what they are, and how long their memory is page-locked."""

from __future__ import annotations

import gc
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from threaded_driver import threaded_memory

from numba_offload import (
    Region,
    TargetError,
    UnsupportedArrayError,
    offload_kernel,
    pinned_empty,
    pinned_zeros,
)
from numba_offload.mapping import DeviceState
from numba_offload.targets import registry


@pytest.fixture
def memory(monkeypatch):
    """A GPU's memory, current for the test."""
    made = threaded_memory(most_pinned=1 << 20)
    target = registry.target_state("cpu").target
    monkeypatch.setitem(registry._states, "cuda", registry.TargetState(target, DeviceState(made)))
    monkeypatch.setenv("NUMBA_OFFLOAD_TARGET", "cuda")
    return made


@offload_kernel
def saxpy(alpha, x, y):
    for i in y.indices():
        y[i] = alpha * x[i] + y[i]


def test_kernels_take_them(target):
    x, y = pinned_empty(5000), pinned_zeros(5000)
    x[:] = np.arange(5000)
    for _ in range(3):
        saxpy(2.0, x, Region(y))
    np.testing.assert_array_equal(y, 6.0 * np.arange(5000))


@pytest.mark.parametrize("gpu", [False, True])
def test_they_are_arrays_like_any_other(gpu, request):
    if gpu:
        request.getfixturevalue("memory")
    record = np.dtype([("a", "i1"), ("b", "f8")])
    for shape, dtype, order in [
        (7, "f8", "C"), ((3, 4), "i2", "F"), ((), "c16", "C"), ((2, 0), "f4", "C"), ([2, 3], "?", "C"),
        (np.int64(5), record, "C"),
        ((2,), np.dtype(("f4", (3,))), "C"), (3, "M8[s]", "C"),
    ]:  # fmt: skip
        for make, like in ((pinned_empty, np.empty), (pinned_zeros, np.zeros)):
            array, expected = make(shape, dtype, order), like(shape, dtype, order)
            assert type(array) is np.ndarray
            assert (array.shape, array.dtype, array.strides) == (expected.shape, expected.dtype, expected.strides)
            assert array.flags.writeable and array.flags.aligned
            assert array.ctypes.data % 64 == 0 or array.size == 0 or gpu
            if like is np.zeros:
                np.testing.assert_array_equal(array, expected)
    assert pinned_empty(3).dtype == np.float64


def test_what_is_no_array_is_refused():
    with pytest.raises(UnsupportedArrayError, match="dtype object"):
        pinned_empty(3, object)
    with pytest.raises(ValueError, match="negative"):
        pinned_zeros((3, -1))
    with pytest.raises(ValueError, match="'K'"):
        pinned_empty(3, order="K")
    for shape in (2.5, "3", (2, 2.5), None):
        with pytest.raises(TypeError, match=re.escape(f"a pinned array of shape {shape!r}: expected an integer, or a tuple")):
            pinned_empty(shape)
    with pytest.raises(ValueError, match=r"shape \(1152921504606846976,\), dtype float64: \d+ bytes are more than"):
        pinned_zeros(2**60)


def test_memory_is_locked_as_long_as_a_view_lives(memory):
    driver = memory._driver
    array = pinned_zeros((10, 10))
    assert driver.page_locked(array.ctypes.data)
    view = array[2:, ::2].T
    del array
    gc.collect()
    assert len(driver.pinned) == 1
    view[:] = 3
    assert (view == 3).all()
    del view
    gc.collect()
    assert not driver.pinned


def test_they_are_copied_directly(memory):
    driver = memory._driver
    array = pinned_zeros(1 << 16)
    buffer = memory.allocate(array.nbytes)
    array[:] = np.arange(1 << 16)
    memory.copy_to_device(buffer, array.ctypes.data, array.nbytes)
    array[:] = 0
    memory.copy_to_host(array.ctypes.data, buffer, array.nbytes)
    np.testing.assert_array_equal(array, np.arange(1 << 16))
    assert driver.queued == 2 and len(driver.pinned) == 1


def test_memory_that_runs_out_is_told(memory):
    kept = pinned_empty(1 << 16)
    with pytest.raises(TargetError, match="no page-locked memory for a pinned array of 1048576 bytes: .* plain NumPy array"):
        pinned_empty(1 << 17)
    del kept
    assert pinned_empty(1 << 17).size == 1 << 17


def test_the_interpreter_ends_with_pinned_arrays_and_threads_alive():
    program = """
import sys
sys.path[:0] = [{mapping!r}, {root!r}]
import numpy as np
from threaded_driver import threaded_memory
from numba_offload.mapping.pinned import _PageLocked

memory = threaded_memory(delay=0.001)
array = np.asarray(_PageLocked(memory, memory.allocate_pinned(1 << 20), 1 << 20))
sys.kept = array
plain = np.ones(1 << 20)
buffer = memory.allocate(plain.nbytes)
memory.copy_to_device(buffer, plain.ctypes.data, plain.nbytes)
"""
    here = Path(__file__).parent
    text = program.format(mapping=str(here), root=str(here.parents[1]))
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
