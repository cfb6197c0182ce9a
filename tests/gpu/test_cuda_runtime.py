"""Kernels on an NVIDIA GPU: results, transfers, failures, device arrays, streams."""

from __future__ import annotations

import ctypes
import gc
import importlib
import importlib.util
import math
import os
import threading
import warnings

import numpy as np
import pytest

from numba_offload import (
    Accumulator,
    Chunked1D,
    GridStride1D,
    LaunchError,
    Permuted,
    Region,
    TargetError,
    Tiles2D,
    offload_kernel,
    pinned_zeros,
    profile,
    synchronize,
    use_target,
)
from numba_offload.errors import DeviceMemoryError
from numba_offload.targets.registry import target_state, why_unavailable

pytestmark = pytest.mark.cuda

N = 100_003


@pytest.fixture(scope="module", autouse=True)
def cuda():
    """The CUDA target, for every test here."""
    why = why_unavailable("cuda")
    if why is not None:
        pytest.skip(why)
    with use_target("cuda"):
        yield target_state("cuda").target


@offload_kernel
def saxpy(alpha, x, y):
    for i in y.indices():
        y[i] = alpha * x[i] + y[i]


@offload_kernel
def gather(index, x, y):
    for i in y.indices():
        y[i] = x[index[i]]


@offload_kernel
def blur(image, out):
    rows, columns = image.shape
    for i, j in out.indices():
        if 0 < i < rows - 1 and 0 < j < columns - 1:
            out[i, j] = 0.25 * (image[i - 1, j] + image[i + 1, j] + image[i, j - 1] + image[i, j + 1])


@offload_kernel
def add(x, y):
    for i in y.indices():
        y[i] += x[i]


@offload_kernel
def fill(value, y):
    for i in y.indices():
        y[i] = value


def exporters():
    """Libraries that can hold arrays on the device, each as (name, to device, to host)."""
    found = []
    if importlib.util.find_spec("cupy"):
        cupy = importlib.import_module("cupy")
        found.append(pytest.param(cupy.asarray, cupy.asnumpy, id="cupy"))
    if importlib.util.find_spec("torch"):
        torch = importlib.import_module("torch")
        if torch.cuda.is_available():
            found.append(
                pytest.param(lambda a: torch.from_numpy(a).cuda(), lambda t: t.cpu().numpy(), id="torch")
            )
    if importlib.util.find_spec("numba_cuda"):
        from numba import cuda as numba_cuda

        found.append(pytest.param(numba_cuda.to_device, lambda d: d.copy_to_host(), id="numba.cuda"))
    found.append(pytest.param(OnDevice, lambda d: d.to_host(), id="driver"))
    return found


class OnDevice:
    """An array on the device with nothing but the interface."""

    def __init__(self, host, stream=None):
        host = np.ascontiguousarray(host)
        self.memory = target_state("cuda").target.memory
        self.like = host
        self.address = self.memory.allocate(max(host.nbytes, 1))
        self.memory.copy_to_device(self.address, host.ctypes.data, host.nbytes)
        synchronize()  # the copy is on the default stream, and non-blocking ones do not wait for that
        self.stream = stream

    @property
    def __cuda_array_interface__(self):
        return {
            "shape": self.like.shape,
            "typestr": self.like.dtype.str,
            "data": (self.address, False),
            "version": 3,
            "strides": None,
            "stream": self.stream,
        }

    def to_host(self):
        out = np.empty_like(self.like)
        self.memory.copy_to_host(out.ctypes.data, self.address, out.nbytes)
        return out


def new_stream():
    """A non-blocking stream's handle."""
    driver = target_state("cuda").target._driver
    with driver.current():
        return int(driver.call("creating a stream", driver.api.cuStreamCreate, 1))


def copies(log):
    """Kinds and names of the copies that a profile saw."""
    return sorted((event.kind, event.name) for event in log.events if event.kind in ("h2d", "d2h"))


# Results


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
@pytest.mark.parametrize("strategy", [None, GridStride1D(), Chunked1D(7)], ids=repr)
def test_saxpy(dtype, strategy):
    x, y = np.arange(N).astype(dtype), np.arange(N)[::-1].astype(dtype)
    expected = dtype(3) * x + y
    saxpy(dtype(3), x, Region(y) if strategy is None else Region(y, strategy))
    np.testing.assert_allclose(y, expected, rtol=1e-6)


def test_fewer_threads_than_elements_under_a_grid_stride():
    x, y = np.ones(N), np.zeros(N)
    saxpy[16, 64](2.0, x, Region(y, GridStride1D()))
    np.testing.assert_array_equal(y, np.full(N, 2.0))


@pytest.mark.parametrize("strategy", [None, Tiles2D(2, 3)], ids=repr)
def test_a_plane(strategy):
    image = np.random.default_rng(1).random((257, 131))
    out = np.zeros_like(image)
    blur(image, Region(out) if strategy is None else Region(out, strategy))
    expected = np.zeros_like(image)
    expected[1:-1, 1:-1] = 0.25 * (image[:-2, 1:-1] + image[2:, 1:-1] + image[1:-1, :-2] + image[1:-1, 2:])
    np.testing.assert_allclose(out, expected, rtol=1e-14)


def test_strided_views_and_untouched_neighbours():
    base = np.arange(2 * N, dtype=float)
    before = base.copy()
    x = np.ones(N)
    saxpy(1.0, x, Region(base[::2]))
    np.testing.assert_array_equal(base[::2], before[::2] + 1.0)
    np.testing.assert_array_equal(base[1::2], before[1::2])


def test_a_permutation_is_read_on_the_device():
    order = np.random.default_rng(2).permutation(N)
    y = np.zeros(N)
    for value in (1.0, 2.0):
        fill(value, Region(y, Permuted(order)))
        np.testing.assert_array_equal(y, np.full(N, value))


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64, np.uint8])
def test_accumulator(dtype):
    @offload_kernel
    def count(x, bins):
        for i in x.indices():
            bins.update(i % 7, 1)

    bins = np.zeros(7, dtype)
    count(Region(np.zeros(700, np.int8)), Accumulator(bins))
    np.testing.assert_array_equal(bins, np.full(7, 100, dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_mathematics_agrees_with_numpy(dtype):
    x = (np.random.default_rng(3).random(1000) * 4 + 0.1).astype(dtype)
    tolerance = 2e-6 if dtype is np.float32 else 2e-15
    cases = {
        "math.exp(a)": np.exp(x), "math.log(a)": np.log(x), "math.sin(a)": np.sin(x), "math.pow(a, a)": x**x,
        "math.atan2(a, a * a)": np.arctan2(x, x * x), "math.sqrt(a) / 3": np.sqrt(x) / 3, "a % 1.5": x % dtype(1.5),
        "np.exp2(a)": np.exp2(x), "math.hypot(a, 1)": np.hypot(x, 1), "math.log1p(a)": np.log1p(x),
        "math.gamma(a)": np.array([math.gamma(v) for v in x]), "math.erf(a)": np.array([math.erf(v) for v in x]),
    }  # fmt: skip
    for expression, expected in cases.items():
        namespace = {"np": np, "math": math}
        exec(
            f"def kernel(x, y):\n    for i in y.indices():\n        a = x[i]\n        y[i] = {expression}\n",
            namespace,
        )
        y = np.zeros_like(x)
        offload_kernel(namespace["kernel"])(x, Region(y))
        np.testing.assert_allclose(y, expected, rtol=20 * tolerance, atol=tolerance, err_msg=expression)


def test_denormals_and_division_are_ieee():
    @offload_kernel
    def divide(a, b, y):
        for i in y.indices():
            y[i] = a[i] / b[i]

    rng = np.random.default_rng(4)
    for dtype in (np.float32, np.float64):
        a, b = rng.random(10_000).astype(dtype), (rng.random(10_000) + 0.5).astype(dtype)
        a[:100] *= np.finfo(dtype).tiny
        y = np.zeros_like(a)
        divide(a, b, Region(y))
        np.testing.assert_array_equal(y, a / b)


def test_complex_power():
    @offload_kernel
    def power(a, b, y):
        for i in y.indices():
            y[i] = a[i] ** b[i]

    rng = np.random.default_rng(5)
    a, b = (rng.random(500) + 1j * rng.random(500) for _ in range(2))
    a[0], b[0], b[1] = 0, 1, 0
    y = np.zeros_like(a)
    power(a, b, Region(y))
    np.testing.assert_allclose(y, a**b, rtol=1e-12)


# Transfers


def test_transfers_are_those_that_the_kernel_needs():
    x, y = np.ones(N), np.zeros(N)
    with profile() as log:
        saxpy(2.0, x, Region(y))
    assert copies(log) == [("d2h", "y"), ("h2d", "x"), ("h2d", "y")]
    with profile() as log:
        fill(1.0, Region(y))
    assert copies(log) == [("d2h", "y")]


def test_page_locked_host_arrays():
    driver = target_state("cuda").target._driver
    with driver.current():
        address = int(driver.call("allocating", driver.api.cuMemHostAlloc, 8 * N, 0))
    y = np.ctypeslib.as_array((ctypes.c_double * N).from_address(address))
    y[:] = 1.0
    x = np.ones(N)
    for _ in range(10):
        saxpy(1.0, x, Region(y))
    np.testing.assert_array_equal(y, np.full(N, 11.0))


@pytest.mark.parametrize("threads", [0, 1, 3, 8, 16])
def test_large_arrays_are_staged(monkeypatch, threads):
    monkeypatch.setenv("NUMBA_OFFLOAD_COPY_THREADS", str(threads))
    memory, rng = target_state("cuda").target.memory, np.random.default_rng(6)
    for nbytes in (130_000, (1 << 20) + 3, 24 << 20, (100 << 20) + 7):
        sent, seen = rng.integers(0, 256, nbytes, dtype=np.uint8), np.zeros(nbytes, np.uint8)
        buffer = memory.allocate(nbytes)
        for stream in (None, new_stream()):
            memory.copy_to_device(buffer, sent.ctypes.data, nbytes, stream)
            sent += 1  # has been read
            memory.copy_to_host(seen.ctypes.data, buffer, nbytes, stream)
            np.testing.assert_array_equal(seen, sent - np.uint8(1))
        memory.free(buffer)


@pytest.mark.parametrize("make", [np.zeros, pinned_zeros])
@pytest.mark.parametrize("n", [10_000, 1_000_000, 8_000_000])
def test_several_inputs_and_outputs_of_one_launch(make, n):
    @offload_kernel
    def three(x, a, b, c):
        for i in a.indices():
            a[i] = x[i] + 1.0
            b[i] = x[i] + 2.0
            c[i] = c[i] + x[i]

    x, a, b, c = (make(n) for _ in range(4))
    for step in range(1, 6):
        x += 1.0
        three(x, Region(a), Region(b), Region(c))
        assert (a[0], b[-1], c[n // 2]) == (step + 1, step + 2, step * (step + 1) / 2)
        np.testing.assert_array_equal(a, x + 1.0)
        np.testing.assert_array_equal(b, x + 2.0)
        np.testing.assert_array_equal(c, np.full(n, c[0]))


def test_large_strided_arrays_are_packed_on_the_way():
    base = np.arange(3 * 2000 * 1500, dtype=float).reshape(3, 2000, 1500)
    before = base.copy()
    for view in (np.s_[1, :, ::2], np.s_[:, ::-1, 3:700], np.s_[::2, 1::3]):
        x = np.ones(base[view].shape)
        add(x, Region(base[view]))
        before[view] += 1.0
        np.testing.assert_array_equal(base, before)


def test_copies_from_several_threads_at_once():
    faults = []

    def work(seed):
        with use_target("cuda"):
            for k in range(5):
                x, y = np.full(2_000_000, float(seed)), np.zeros(2_000_000)
                saxpy(float(k), x, Region(y))
                if not (y == k * seed).all():
                    faults.append((seed, k))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults


def test_pinned_arrays_are_page_locked_while_they_live():
    driver = target_state("cuda").target._driver
    y = pinned_zeros((300, 200))
    address = y.ctypes.data
    with driver.current():
        assert driver.page_locked(address)
        view = y[1:]
        del y
        gc.collect()
        assert driver.page_locked(address)
        add(np.ones(view.shape), Region(view))
        assert (view == 1.0).all()
        del view
        gc.collect()
        assert not driver.page_locked(address)


def test_memory_that_runs_out_is_told_with_what_the_device_has():
    pool = target_state("cuda").device.pool
    with pytest.raises(DeviceMemoryError, match=r"of the device's \d+ bytes \d+ are free"):
        pool.allocate(1 << 45)
    free, total = target_state("cuda").target.memory.memory_info()
    assert 0 < free <= total


def test_copies_on_the_device_follow_the_work_before_them():
    memory, x = target_state("cuda").target.memory, OnDevice(np.ones(N))
    y, z, seen = OnDevice(np.zeros(N)), OnDevice(np.zeros(N)), np.zeros(N)
    for _ in range(20):
        saxpy(1.0, x, Region(y))
    memory.copy_within(z.address, y.address, 8 * N)
    memory.copy_to_host(seen.ctypes.data, z.address, 8 * N)
    np.testing.assert_array_equal(seen, np.full(N, 20.0))


# Failures


def test_an_index_error_reaches_the_host_with_its_line():
    index = np.arange(1000)
    index[700] = 5000
    y = np.zeros(1000)
    with pytest.raises(IndexError, match=r"index 5000 .* size 1000") as caught:
        gather(index, np.ones(1000), Region(y))
    line = gather.py_func.__code__.co_firstlineno + 3
    assert f"line {line}" in str(caught.value)
    assert "thread (188, 0, 0), block (2, 0, 0)" in str(caught.value)
    np.testing.assert_array_equal(y, np.zeros(1000))
    index[700] = 1
    gather(index, np.ones(1000), Region(y))
    np.testing.assert_array_equal(y, np.ones(1000))


def test_every_thread_failing_gives_one_whole_report():
    index = np.full(N, N, np.int64)
    with pytest.raises(IndexError, match=f"index {N} .* size {N}"):
        gather(index, np.ones(N), Region(np.zeros(N)))


def test_raise_and_integer_division():
    @offload_kernel
    def check(x, y):
        for i in y.indices():
            if x[i] > 7:
                raise ValueError("too large")
            y[i] = 10 // x[i]

    x, y = np.ones(100, np.int64), np.zeros(100, np.int64)
    check(x, Region(y))
    np.testing.assert_array_equal(y, np.full(100, 10))
    x[3] = 0
    with pytest.raises(ZeroDivisionError):
        check(x, Region(y))
    x[3] = 8
    with pytest.raises(ValueError, match="too large"):
        check(x, Region(y))


# Device arrays


@pytest.mark.parametrize(("to_device", "to_host"), exporters() if why_unavailable("cuda") is None else [])
def test_device_arrays_are_used_in_place(to_device, to_host):
    x, y = to_device(np.arange(N, dtype=float)), to_device(np.ones(N))
    with profile() as log:
        saxpy(2.0, x, Region(y))
        synchronize()
    assert not copies(log)
    np.testing.assert_array_equal(to_host(y), 2.0 * np.arange(N) + 1.0)


def test_host_and_device_arrays_together():
    x, y = np.arange(N, dtype=float), OnDevice(np.ones(N))
    saxpy(2.0, x, Region(y))
    np.testing.assert_array_equal(y.to_host(), 2.0 * x + 1.0)


def test_an_asynchronous_failure_is_raised_when_waited_for():
    index = np.arange(N)
    index[-1] = -N - 1
    gather(OnDevice(index), OnDevice(np.ones(N)), Region(OnDevice(np.zeros(N))))
    with pytest.raises(IndexError, match="kernel gather"):
        synchronize()
    synchronize()


def test_an_asynchronous_failure_is_raised_by_the_next_waiting_launch():
    index = np.full(N, N)
    gather(OnDevice(index), OnDevice(np.ones(N)), Region(OnDevice(np.zeros(N))))
    y = np.zeros(N)
    with pytest.raises(IndexError, match="kernel gather"):
        saxpy(1.0, np.ones(N), Region(y))
    np.testing.assert_array_equal(y, np.zeros(N))


# Streams


def test_a_launch_on_a_stream():
    stream = new_stream()
    x, y = np.ones(N), np.zeros(N)
    saxpy[-(-N // 256), 256, stream](2.0, x, Region(y))
    np.testing.assert_array_equal(y, np.full(N, 2.0))
    dx, dy = OnDevice(x), OnDevice(np.zeros(N))
    for _ in range(50):
        saxpy[-(-N // 256), 256, stream](1.0, dx, Region(dy))
    synchronize(stream)
    np.testing.assert_array_equal(dy.to_host(), np.full(N, 50.0))


def test_work_is_ordered_behind_the_exporters_stream():
    theirs, ours = new_stream(), new_stream()
    x = OnDevice(np.ones(1 << 22))
    y = OnDevice(np.zeros(1 << 22))
    blocks = -(-x.like.size // 256)
    for _ in range(20):
        saxpy[blocks, 256, theirs](1.0, x, Region(y))
    y.stream = theirs
    z = OnDevice(np.zeros(1 << 22))
    saxpy[blocks, 256, ours](1.0, y, Region(z))
    synchronize(ours)
    np.testing.assert_array_equal(z.to_host(), np.full(1 << 22, 20.0))


# Limits, threads, processes


def test_limits_of_the_device_are_checked():
    with pytest.raises(LaunchError, match="1024"):
        saxpy[1, 2048](1.0, np.ones(10), Region(np.ones(10)))


def test_launches_from_many_threads():
    faults = []

    def work(seed):
        with use_target("cuda"):
            for k in range(20):
                x, y = np.full(1000, float(seed)), np.zeros(1000)
                saxpy(float(k), x, Region(y))
                if not (y == k * seed).all():
                    faults.append((seed, k))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_gets_a_clear_error():
    saxpy(1.0, np.ones(10), Region(np.ones(10)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        code = 1
        try:
            saxpy(1.0, np.ones(10), Region(np.ones(10)))
        except TargetError as error:
            code = 0 if "spawn" in str(error) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
