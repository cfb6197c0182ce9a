"""A call like an earlier one takes a short way; what differs from that must be seen all the same. In both memory models."""

import gc
import threading

import numpy as np
import pytest

from numba_offload import (
    BorrowError,
    Chunked1D,
    LaunchError,
    PartitioningStrategy,
    Region,
    TargetError,
    TransferError,
    offload_kernel,
    optimize_transfers,
    preload,
    preload_mut,
    profile,
    transfer_guard,
    use_target,
)
from numba_offload.errors import DeviceMemoryError
from numba_offload.mapping import launch
from numba_offload.targets.registry import current_target

FACTOR = 2.0


@offload_kernel
def scale(x, shift, y):
    for i in y.indices():
        y[i] = FACTOR * x[i] + shift


@offload_kernel
def read_ahead(x, distance, y):
    for i in y.indices():
        y[i] = x[i + distance]


@pytest.fixture(params=["unified", "discrete"])
def arrays(monkeypatch, request):
    monkeypatch.setenv("NUMBA_OFFLOAD_CPU_MEMORY", request.param)
    with use_target("cpu"):
        x, y = np.arange(12.0), np.zeros(12)
        region = Region(y)
        scale(x, 1.0, region)
        assert scale._recent
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


# What is moved over anew each time, without planning anew


@offload_kernel
def combine(index, x, y, z):
    for i in y.indices():
        y[i] += x[index[i]]
    for i in z.indices():
        z[i] -= x[i]


class Moving:
    """Arrays and the launch with them. What a test makes fail is mended when it ends."""

    def __init__(self, device):
        self.device = device
        self.index, self.x = np.arange(10), np.arange(10.0)
        self.y, self.z = np.zeros(20)[::2], np.zeros(10)
        self.times = 0

    def launch(self):
        combine(self.index, self.x, Region(self.y), Region(self.z))
        self.times += 1

    def check(self):
        np.testing.assert_array_equal(self.y, self.times * self.x)
        np.testing.assert_array_equal(self.z, -self.times * self.x)
        assert not self.y.base[1::2].any()


@pytest.fixture
def moving(monkeypatch):
    monkeypatch.setenv("NUMBA_OFFLOAD_CPU_MEMORY", "discrete")
    with use_target("cpu"):
        device = current_target().device
        device.pool.trim()
        in_use = device.pool.bytes_in_use
        moving = Moving(device)
        moving.launch()
        moving.check()
        yield moving
        assert (device.pool.bytes_in_use, device.present.entries) == (in_use, ())
        monkeypatch.undo()
        monkeypatch.setenv("NUMBA_OFFLOAD_CPU_MEMORY", "discrete")
        moving.launch()
        moving.check()


def not_planned(monkeypatch):
    def plan(*parts):
        raise AssertionError("planned anew")

    monkeypatch.setattr(launch, "plan_launch", plan)


def test_launches_that_take_turns_are_planned_once(moving, monkeypatch):
    other = Moving(moving.device)
    other.launch()
    not_planned(monkeypatch)
    for one in (moving, other, other, moving, moving):
        one.launch()
    moving.check()
    other.check()


def test_contents_are_moved_each_time(moving, monkeypatch):
    not_planned(monkeypatch)
    with profile() as p:
        moving.launch()
    moving.check()
    assert (p.h2d_count, p.d2h_count, p.launches) == (4, 2, 1)
    moving.y[:] = moving.z[:] = 0
    moving.x[:] += 1
    moving.times = 0
    moving.launch()
    moving.check()


def test_a_preload_in_between(moving):
    with preload(moving.x), profile() as p:
        moving.launch()
        moving.launch()
    moving.check()
    assert p.h2d_count == 6
    with preload_mut(moving.z), pytest.raises(BorrowError, match="z"):
        moving.launch()
    moving.check()


def test_a_guard_is_heard(moving):
    with transfer_guard("disallow"), pytest.raises(TransferError, match="argument 'y'"):
        moving.launch()
    moving.check()


@pytest.mark.parametrize(("method", "most"), [("allocate", 4), ("copy_to_device", 4), ("copy_to_host", 2)])
def test_a_failure_at_each_step(moving, monkeypatch, method, most):
    original = getattr(moving.device.memory, method)
    for at in range(most):
        moving.device.pool.trim()
        calls = iter(range(100))

        def sometimes(*arguments, **options):
            if next(calls) == at:  # noqa: B023
                raise RuntimeError("injected")
            return original(*arguments, **options)

        monkeypatch.setattr(moving.device.memory, method, sometimes)
        if method == "allocate":
            moving.launch()  # what is cached may be what is missing: it is asked for again
        else:
            with pytest.raises(TargetError, match="injected"):
                moving.launch()
        monkeypatch.setattr(moving.device.memory, method, original)
        moving.check()
        moving.launch()
        moving.check()


def test_no_memory_at_all(moving, monkeypatch):
    moving.device.pool.trim()
    with monkeypatch.context() as patch, pytest.raises(DeviceMemoryError, match="'y'|'z'|'x'|'index'"):
        patch.setattr(moving.device.memory, "allocate", lambda nbytes: (_ for _ in ()).throw(MemoryError("injected")))
        moving.launch()
    moving.check()


def test_an_error_of_the_kernel(moving):
    moving.index[3] = 10
    for _ in range(2):
        with pytest.raises(IndexError, match="index 10"):
            moving.launch()
        moving.check()
    moving.index[3] = 3


def test_an_optimised_function_with_the_same_arrays(moving):
    """Its launches keep arrays on the device, which the short way would not know."""

    @optimize_transfers
    def twice(moving):
        for _ in range(2):
            combine(moving.index, moving.x, Region(moving.y), Region(moving.z))

    for _ in range(2):
        with profile() as p:
            twice(moving)
        moving.times += 2
        moving.check()
        assert (p.h2d_count, p.d2h_count) == (4, 2)
        moving.launch()
        moving.check()


def test_launches_of_several_threads(moving):
    others = [Moving(moving.device) for _ in range(3)]

    def work(one):
        with use_target("cpu"):
            for _ in range(50):
                one.launch()

    threads = [threading.Thread(target=work, args=(one,)) for one in others]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one in others:
        assert one.times == 50
        one.check()


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
