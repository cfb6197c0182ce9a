"""The CUDA target's side of a launch, on a stand-in for the driver: arguments, copies, failures, streams."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from compile_helpers import source_of
from fake_cuda import Code, FakeDriver

from numba_offload import LaunchError, Linear1D, Permuted, Region, TargetError, offload_kernel
from numba_offload.errors import DeviceMemoryError
from numba_offload.mapping.arrays import CUDA_INTERFACE_DEVICE, DeviceArray, c_strides
from numba_offload.mapping.state import DeviceState
from numba_offload.targets import registry
from numba_offload.targets.cuda.driver import CUDADriver
from numba_offload.targets.cuda.target import CUDATarget
from numba_offload.targets.entry import ERROR_RECORD_FORMAT
from numba_offload.targets.gpu.staging_ring import RING_BYTES
from numba_offload.targets.gpu.streams import stream_handle
from numba_offload.targets.reports import RECORD_BYTES
from numba_offload.targets.sites import IndexSite, LineSite

N = 1000
PARAMETERS = 3 * 2 + 13


@offload_kernel
def gather(index, x, y):
    for i in y.indices():
        y[i] = x[index[i]]


INDEX = np.arange(N)[::-1].copy()


@pytest.fixture
def api():
    return FakeDriver(lambda: PARAMETERS)


@pytest.fixture
def target(api, monkeypatch):
    """The CUDA target on the stand-in, current for the test."""
    made = CUDATarget(CUDADriver(api))
    state = registry.TargetState(made, DeviceState(made.memory, name="cuda"))
    monkeypatch.setitem(registry._states, "cuda", state)
    monkeypatch.setenv("NUMBA_OFFLOAD_TARGET", "cuda")
    gather._specialisations.clear()
    yield made
    gather._specialisations.clear()


def compute(launch):
    """What gather does."""
    index = np.ctypeslib.as_array((ctypes.c_int64 * N).from_address(launch.value(0)))
    x, y = (np.ctypeslib.as_array((ctypes.c_double * N).from_address(launch.value(k))) for k in (2, 4))
    y[:] = x[index]


def fail_at(index, size):
    """A launch whose thread ``index`` fails, as the entry would record it."""

    def run(launch):
        compute(launch)
        (loaded,) = (s.code for s in gather._specialisations.values())
        sites = next(code.image.sites for (target, *_), code in loaded.items() if target == "cuda")
        site = next(n for n, what in sites.items() if isinstance(what, IndexSite) and "x" in what.array)
        line = next(n for n, what in sites.items() if isinstance(what, LineSite))
        values = (1, site, line, 0, index, size, 0, index, 0, 0, 256, 1, 1)
        ctypes.memmove(launch.value(PARAMETERS - 7), struct.pack(ERROR_RECORD_FORMAT, *values), RECORD_BYTES)

    return run


def device_array(host, stream=None, device_id=None):
    """An array as another library would export it; its memory is the host's here."""
    return DeviceArray(
        host.ctypes.data,
        host.shape,
        c_strides(host.shape, host.itemsize),
        host.dtype,
        False,
        host,
        CUDA_INTERFACE_DEVICE,
        stream,
        device_id,
    )


def test_a_launch_gets_its_arguments_and_results_come_back(target, api):
    api.on_launch = compute
    x, y = np.arange(N, dtype=float), np.ones(N)
    gather(INDEX, x, Region(y))
    np.testing.assert_array_equal(y, x[::-1])
    (launch,) = api.launches
    assert (launch.grid, launch.block, launch.stream) == ((4, 1, 1), (256, 1, 1), 0)
    assert [launch.value(k) for k in (6, 7, 8)] == [N, 1, 1]
    assert launch.value(2) != x.ctypes.data


def test_a_failure_reaches_the_host_and_leaves_its_arrays_alone(target, api):
    api.on_launch = fail_at(990, 980)
    x, y = np.arange(N, dtype=float), np.ones(N)
    with pytest.raises(
        IndexError, match=r"index 990 .* size 980 .*line \d+, in gather, thread \(222, 0, 0\), block \(3, 0, 0\)"
    ):
        gather(INDEX, x, Region(y))
    np.testing.assert_array_equal(y, np.ones(N))
    api.on_launch = compute
    gather(INDEX, x, Region(y))
    np.testing.assert_array_equal(y, x[::-1])


def test_a_launch_along_x_keeps_the_coordinates_it_was_asked_for(target, api):
    api.on_launch = fail_at(70, 60)
    x, y = np.ones(N), np.ones(N)
    with pytest.raises(IndexError, match=r"thread \(6, 0, 0\), block \(0, 1, 0\)"):
        gather[(4, 16), (16, 1)](INDEX, x, Region(y))
    assert api.launches[0].grid == (64, 1, 1)
    assert api.launches[0].block == (16, 1, 1)


def test_a_stream_is_for_the_launch_that_names_it(target, api):
    api.on_launch = compute
    x, y = np.arange(N, dtype=float), np.ones(N)
    gather[4, 256, 7](INDEX, x, Region(y))
    gather[4, 256](INDEX, x, Region(y))
    assert [launch.stream for launch in api.launches] == [7, 0]


def test_launches_on_device_arrays_do_not_wait(target, api):
    api.on_launch = compute
    x, y = np.arange(N, dtype=float), np.ones(N)
    gather(device_array(INDEX), device_array(x), Region(device_array(y)))
    assert "cuStreamSynchronize" not in api.calls
    assert "cuMemcpyHtoDAsync" not in api.calls
    assert api.launches[0].value(2) == x.ctypes.data
    target.synchronize()
    np.testing.assert_array_equal(y, x[::-1])


@pytest.mark.parametrize("stream", [None, 7])
def test_an_asynchronous_failure_is_raised_once_where_somebody_waits(target, api, stream):
    api.on_launch = fail_at(5, 4)
    x, y = np.ones(N), np.ones(N)
    gather[4, 256, stream](device_array(INDEX), device_array(x), Region(device_array(y)))
    with pytest.raises(IndexError, match="kernel gather"):
        target.synchronize(stream)
    target.synchronize(stream)
    target.synchronize()


def test_an_asynchronous_failure_is_raised_by_the_next_launch_that_waits(target, api):
    api.on_launch = fail_at(5, 4)
    x, y = np.ones(N), np.ones(N)
    gather(device_array(INDEX), device_array(x), Region(device_array(y)))
    api.on_launch = compute
    host = np.ones(N)
    with pytest.raises(IndexError, match="kernel gather"):
        gather(INDEX, x, Region(host))
    np.testing.assert_array_equal(host, np.ones(N))


def test_a_copy_back_raises_the_failure_before_the_host_sees_anything(target, api):
    x, y = np.ones(N), np.ones(N)
    buffer = target.memory.allocate(8 * N)
    host = np.zeros(N)
    api.on_launch = fail_at(5, 4)
    gather(device_array(INDEX), device_array(x), Region(device_array(y)))
    with pytest.raises(IndexError, match="kernel gather"):
        target.memory.copy_to_host(host.ctypes.data, buffer, 8 * N)
    np.testing.assert_array_equal(host, np.zeros(N))


def test_a_kernels_failure_is_not_mistaken_for_a_failed_copy(target, api):
    from numba_offload.mapping.launch import LaunchMapping
    from numba_offload.mapping.plan import ArrayUse

    x, y, host = np.ones(N), np.ones(N), np.zeros(N)
    mapping = LaunchMapping(registry._states["cuda"].device, [ArrayUse("host", host, "tofrom")])
    api.on_launch = fail_at(5, 4)
    gather(device_array(INDEX), device_array(x), Region(device_array(y)))
    with pytest.raises(IndexError, match="kernel gather"):
        mapping.finish(True)
    np.testing.assert_array_equal(host, np.zeros(N))


def test_pageable_memory_is_not_waited_for_and_page_locked_memory_is(target, api):
    device = target.memory.allocate(64)
    target.memory.copy_to_device(device, np.ones(8).ctypes.data, 64)
    assert "cuStreamSynchronize" not in api.calls
    _, pinned = api.cuMemHostAlloc(64, 0)
    target.memory.copy_to_device(device, pinned, 64)
    assert "cuStreamSynchronize" in api.calls


def test_memory_that_runs_out_is_told_with_what_the_device_has(target, api):
    api.fail["cuMemAlloc"] = Code.CUDA_ERROR_OUT_OF_MEMORY
    with pytest.raises(
        DeviceMemoryError, match=r"'.*' \(kernel gather\).*OUT_OF_MEMORY.*; of the device's \d+ bytes \d+ are free"
    ):
        gather(INDEX, np.arange(N, dtype=float), Region(np.ones(N)))
    api.fail.clear()
    gather(INDEX, np.arange(N, dtype=float), Region(np.ones(N)))


def test_large_arrays_are_staged_in_page_locked_memory(target, api, monkeypatch):
    monkeypatch.setenv("NUMBA_OFFLOAD_COPY_THREADS", "3")
    memory, x = target.memory, np.arange(1 << 17)
    buffer, before = memory.allocate(x.nbytes), set(api.pinned)
    for _ in range(2):
        y = np.zeros_like(x)
        memory.copy_to_device(buffer, x.ctypes.data, x.nbytes, 7)
        memory.copy_to_host(y.ctypes.data, buffer, x.nbytes, 7)
        np.testing.assert_array_equal(y, x)
    (ring,) = set(api.pinned) - before  # one for both, and for all later ones
    assert len(api.pinned[ring]) == RING_BYTES
    assert {"cuStreamCreate", "cuEventSynchronize"} <= set(api.calls)
    assert ("record", 7) in api.events and ("wait", 7) in api.events


def test_copies_on_the_device(target, api):
    memory, x, y = target.memory, np.arange(8.0), np.zeros(8)
    first, second = memory.allocate(64), memory.allocate(64)
    memory.copy_to_device(first, x.ctypes.data, 64)
    memory.copy_within(second, first, 64, 7)
    assert "cuMemcpyDtoDAsync" in api.calls
    memory.copy_to_host(y.ctypes.data, second, 64)
    np.testing.assert_array_equal(y, x)


def test_records_of_asynchronous_launches_are_shared_and_given_back(target, api):
    x, y = np.ones(N), np.ones(N)
    for _ in range(200):
        gather(device_array(INDEX), device_array(x), Region(device_array(y)))
    assert len({launch.value(PARAMETERS - 7) for launch in api.launches}) == 1
    target.synchronize()
    assert not target._awaited._awaited
    assert len(api.pinned) == 1


def test_a_record_that_a_new_launch_may_be_writing_is_left_alone(target, api):
    x, y = np.ones(N), np.ones(N)
    api.on_launch = fail_at(5, 4)
    gather(device_array(INDEX), device_array(x), Region(device_array(y)))
    before = target._awaited.snapshot(None)
    gather(device_array(INDEX), device_array(x), Region(device_array(y)))
    assert target._awaited.first(before) is None
    with pytest.raises(IndexError, match="kernel gather"):
        target.synchronize()


def test_a_launch_waits_for_the_exporters_stream_and_is_waited_for(target, api):
    x, y = np.ones(N), np.ones(N)
    gather(device_array(INDEX), device_array(x, stream=9), Region(device_array(y, stream=1)))
    assert api.events == [("record", 9), ("wait", 0), ("record", 0), ("wait", 9)]


def test_arrays_on_another_device_are_refused(target, api):
    x, y = np.ones(N), np.ones(N)
    with pytest.raises(LaunchError, match="CUDA device 1"):
        gather(device_array(INDEX), device_array(x, device_id=1), Region(device_array(y)))


def test_index_arrays_are_copied_to_the_device_once(target, api):
    @offload_kernel
    def fill(y):
        for i in y.indices():
            y[i] = 1.0

    api._parameters = lambda: 2 + 2 + 13
    strategy = Permuted(np.arange(N)[::-1].copy())
    y = np.ones(N)
    for _ in range(2):
        fill(Region(y, strategy))
    first, second = api.launches
    assert first.value(2) == second.value(2)
    index = (ctypes.c_int64 * N).from_address(first.value(2))
    assert list(index[:2]) == [N - 1, N - 2]


def test_the_context_of_another_library_is_given_back(target, api):
    api.current = 77
    x, y = np.ones(N), np.ones(N)
    gather(INDEX, x, Region(y))
    assert api.current == 77
    assert not api.stack


def test_errors_of_the_driver_are_named(target, api):
    x, y = np.ones(N), np.ones(N)
    api.fail["cuStreamSynchronize"] = Code.CUDA_ERROR_ILLEGAL_ADDRESS
    with pytest.raises(
        TargetError, match=r"running gather failed with CUDA_ERROR_ILLEGAL_ADDRESS .*start it again"
    ):
        gather(INDEX, x, Region(y))


def test_ptx_that_the_driver_refuses_is_told_with_its_log(target, api):
    api.log = b"line 3: bad"
    api.fail["cuModuleLoadDataEx"] = Code.CUDA_ERROR_INVALID_PTX
    with pytest.raises(TargetError, match=r"cannot load its ptx for sm_90: CUDA_ERROR_INVALID_PTX .*\n*line 3: bad"):
        target.compile(source_of(gather, INDEX, np.ones(N), Region(np.ones(N), Linear1D())))


def test_without_a_device_the_target_says_so(api):
    api.devices = 0
    with pytest.raises(TargetError, match="CUDA_VISIBLE_DEVICES"):
        CUDATarget(CUDADriver(api))


def test_without_bindings_the_target_says_how_to_install_them(monkeypatch):
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", None)
    with pytest.raises(TargetError, match=r"numba-offload\[cuda13\]"):
        CUDATarget()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_is_told(target, monkeypatch):
    monkeypatch.setattr(target._driver, "_pid", os.getpid() + 1)
    with pytest.raises(TargetError, match="spawn"):
        gather(INDEX, np.ones(N), Region(np.ones(N)))


@pytest.mark.parametrize(
    ("stream", "handle"),
    [
        (None, 0),
        (12, 12),
        (SimpleNamespace(__cuda_stream__=lambda: (0, 5)), 5),
        (SimpleNamespace(__cuda_stream__=(0, 6)), 6),
        (SimpleNamespace(ptr=8), 8),
        (SimpleNamespace(cuda_stream=9), 9),
        (SimpleNamespace(handle=SimpleNamespace(value=10)), 10),
        (SimpleNamespace(handle=SimpleNamespace(value=None)), 0),
        (SimpleNamespace(handle=11), 11),
    ],
)
def test_streams_of_other_libraries_are_understood(stream, handle):
    assert stream_handle(stream) == handle


@pytest.mark.parametrize("stream", ["1", 1.0, True, object()])
def test_what_is_no_stream_is_refused(stream):
    with pytest.raises(LaunchError, match="no stream of a GPU"):
        stream_handle(stream)
