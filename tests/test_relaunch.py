"""A call like the last one takes a short way; what differs from the last one must be seen all the same."""

import gc

import numpy as np
import pytest

from numba_offload import (
    Chunked1D,
    LaunchError,
    PartitioningStrategy,
    Region,
    TargetError,
    offload_kernel,
    profile,
    use_target,
)

FACTOR = 2.0


@offload_kernel
def scale(x, shift, y):
    for i in y.indices():
        y[i] = FACTOR * x[i] + shift


@offload_kernel
def read_ahead(x, distance, y):
    for i in y.indices():
        y[i] = x[i + distance]


@pytest.fixture
def arrays(monkeypatch):
    monkeypatch.setenv("NUMBA_OFFLOAD_CPU_MEMORY", "unified")
    with use_target("cpu"):
        x, y = np.arange(12.0), np.zeros(12)
        region = Region(y)
        scale(x, 1.0, region)
        assert scale._last is not None
        np.testing.assert_array_equal(y, 2 * x + 1)
        yield x, y, region


def test_contents_and_float_scalars_are_current(arrays):
    x, y, region = arrays
    x *= 3
    scale(x, 5.0, region)
    np.testing.assert_array_equal(y, 2 * x + 5)


def test_a_scalar_of_another_type(arrays):
    x, y, region = arrays
    for shift in (3, True, np.float32(0.5), 2**63, 1.5):
        scale(x, shift, region)
        np.testing.assert_array_equal(y, 2 * x + float(shift))


def test_an_integer_decides_which_code_runs(arrays):
    x, y = np.arange(20.0), np.zeros(12)
    region = Region(y)
    for distance in (1, 2, 8, 0):
        read_ahead(x, distance, region)
        read_ahead(x, distance, region)
        np.testing.assert_array_equal(y, x[distance : distance + 12])
    read_ahead(x, -1, region)
    np.testing.assert_array_equal(y, np.r_[x[-1], x[:11]])
    with pytest.raises(IndexError):
        read_ahead(x, 9, region)
    with pytest.raises(IndexError):
        read_ahead(x, 9, region)


def test_another_array(arrays):
    x, y, region = arrays
    other = x + 100
    scale(other, 1.0, region)
    np.testing.assert_array_equal(y, 2 * other + 1)
    scale(x, 1.0, Region(y, Chunked1D(5)))
    np.testing.assert_array_equal(y, 2 * x + 1)


def test_an_array_that_was_changed_in_place(arrays):
    x, y, region = arrays
    x.shape = (3, 4)
    with pytest.raises(Exception, match="x"):
        scale(x, 1.0, region)
    x.shape = (12,)
    scale(x, 1.0, region)
    x = x.view(np.int64)
    x[:] = np.arange(12)
    scale(x, 1.0, region)
    np.testing.assert_array_equal(y, 2 * np.arange(12) + 1)
    x = np.arange(12.0)
    scale(x, 1.0, region)
    x.resize(5, refcheck=False)
    with pytest.raises(IndexError):
        scale(x, 1.0, region)


def test_an_output_that_became_read_only(arrays):
    x, y, region = arrays
    y.flags.writeable = False
    with pytest.raises(LaunchError, match="'y'"):
        scale(x, 1.0, region)
    y.flags.writeable = True
    scale(x, 2.0, region)
    np.testing.assert_array_equal(y, 2 * x + 2)


def test_a_captured_value_that_changed(arrays):
    global FACTOR
    x, y, region = arrays
    FACTOR = 7.0
    try:
        scale(x, 1.0, region)
        np.testing.assert_array_equal(y, 7 * x + 1)
    finally:
        FACTOR = 2.0


def test_another_memory_model_and_configuration(arrays, monkeypatch):
    x, y, region = arrays
    monkeypatch.setenv("NUMBA_OFFLOAD_CPU_MEMORY", "discrete")
    with use_target("cpu"), profile() as p:
        scale(x, 3.0, region)
    assert (p.h2d_count, p.d2h_count) == (1, 1)
    np.testing.assert_array_equal(y, 2 * x + 3)
    monkeypatch.setenv("NUMBA_OFFLOAD_CPU_MEMORY", "unified")
    with pytest.raises(LaunchError):
        scale[1, 4](x, 1.0, region)
    with pytest.raises(TargetError):
        use_target("nowhere")


def test_launches_are_counted(arrays):
    x, _, region = arrays
    with profile() as p:
        scale(x, 1.0, region)
        scale(x, 1.0, region)
    assert p.launches == 2


def test_nothing_is_kept_alive(arrays):
    big = np.zeros(12)
    kept = Region(big)
    scale(big + 1, 1.0, kept)
    import weakref

    gone = weakref.ref(big)
    del big, kept
    gc.collect()
    assert gone() is None


class Halves(PartitioningStrategy):
    """Its method refers to a value that may change."""

    ndim = 1

    def count(self, t, T, shape):
        return SLOTS if t < shape[0] else 0

    def index(self, t, k, T, shape):
        return t

    def threads(self, shape):
        return shape[0]


SLOTS = 1


def test_a_strategy_of_ones_own_is_looked_at_again(arrays):
    global SLOTS
    x, y, _ = arrays
    region = Region(y, Halves())
    scale(x, 1.0, region)
    SLOTS = 2
    try:
        with pytest.raises(LaunchError):
            scale(x, 1.0, region)
    finally:
        SLOTS = 1
