"""The AMD GPU target's side of a launch, on a stand-in for HIP: arguments, copies, failures, streams, several parts."""

from __future__ import annotations

import ctypes
import os
import struct
from types import SimpleNamespace

import numpy as np
import pytest
from compile_helpers import source_of
from emulation.hip import Code, EmulatedHIP

from numba_offload import Permuted, Region, TargetError, offload_kernel
from numba_offload.errors import DeviceMemoryError
from numba_offload.mapping.state import DeviceState
from numba_offload.targets import registry
from numba_offload.targets.amdgpu import devicelibs, linker
from numba_offload.targets.amdgpu.driver import HIPDriver
from numba_offload.targets.amdgpu.target import AMDGPUTarget
from numba_offload.targets.base import DeviceLimits, LaunchConfig
from numba_offload.targets.entry import ERROR_RECORD_FORMAT
from numba_offload.targets.gpu.launch import LaunchShape, launch_shape
from numba_offload.targets.gpu.staging_ring import RING_BYTES
from numba_offload.targets.reports import RECORD_BYTES
from numba_offload.targets.sites import IndexSite, LineSite

N = 1000
INDEX = np.arange(N)[::-1].copy()
OWN = 3 * 2
"""The kernel's own arguments: an address and an extent for each array."""

pytestmark = pytest.mark.skipif(
    linker.find_linker() is None or devicelibs.find_device_libraries() is None,
    reason="AMD code cannot be linked here (Debian's packages lld-19 and rocm-device-libs)",
)


@offload_kernel
def gather(index, x, y):
    for i in y.indices():
        y[i] = x[index[i]]


def value(launch, position, kind=ctypes.c_int64):
    return kind.from_address(ctypes.c_void_p.from_address(launch.parameters + 8 * position).value).value


def compute(launch):
    """What gather does, in one launch or in parts."""
    index = np.ctypeslib.as_array((ctypes.c_int64 * N).from_address(value(launch, 0)))
    x, y = (np.ctypeslib.as_array((ctypes.c_double * N).from_address(value(launch, k))) for k in (2, 4))
    first = value(launch, OWN + 7)
    part = slice(first, first + launch.grid[0] * launch.block[0])
    y[part] = x[index[part]]


@pytest.fixture
def api():
    made = EmulatedHIP("gfx942")
    made.on_launch = compute
    return made


@pytest.fixture
def target(api, monkeypatch):
    """The AMD GPU target on the stand-in, current for the test."""
    made = AMDGPUTarget(HIPDriver(api))
    state = registry.TargetState(made, DeviceState(made.memory, name="amdgpu"))
    monkeypatch.setitem(registry._states, "amdgpu", state)
    monkeypatch.setenv("NUMBA_OFFLOAD_TARGET", "amdgpu")
    gather._specialisations.clear()
    yield made
    gather._specialisations.clear()


def arguments():
    return INDEX, np.arange(N, dtype=float), np.ones(N)


def test_the_device_is_asked_what_it_is(target):
    assert target.arch == "gfx942"
    assert target.limits.threads_at_once == 2**32 - 1
    assert target.limits.block == (1024, 1024, 1024)


def test_a_launch_gets_its_arguments_and_results_come_back(target, api):
    index, x, y = arguments()
    gather(index, x, Region(y))
    np.testing.assert_array_equal(y, x[::-1])
    (launch,) = api.launches
    assert (launch.grid, launch.block, launch.stream) == ((4, 1, 1), (256, 1, 1), 0)
    assert [value(launch, OWN + k) for k in (0, 1, 2)] == [N, 1, 1]
    assert value(launch, OWN + 7) == 0


def test_a_failure_reaches_the_host_and_leaves_its_arrays_alone(target, api):
    def fail(launch):
        compute(launch)
        (loaded,) = (s.code for s in gather._specialisations.values())
        (code,) = loaded.values()
        site = next(n for n, what in code.image.sites.items() if isinstance(what, IndexSite) and "x" in what.array)
        line = next(n for n, what in code.image.sites.items() if isinstance(what, LineSite))
        values = (1, site, line, 0, 990, 980, 0, 990, 0, 0, 256, 1, 1)
        ctypes.memmove(value(launch, OWN + 6), struct.pack(ERROR_RECORD_FORMAT, *values), RECORD_BYTES)

    api.on_launch = fail
    index, x, y = arguments()
    with pytest.raises(IndexError, match=r"index 990 .* size 980 .*in gather, thread \(222, 0, 0\), block \(3, 0, 0\)"):
        gather(index, x, Region(y))
    np.testing.assert_array_equal(y, np.ones(N))


@pytest.mark.parametrize("asynchronous", [False, True])
def test_where_atomics_do_not_reach_the_host_records_are_on_the_device(api, monkeypatch, asynchronous):
    """A bus without atomic operations drops the one that claims a record: a failure would go unseen."""
    api.limits["HostNativeAtomicSupported"] = 0
    target = AMDGPUTarget(HIPDriver(api))
    index, x, y = arguments()
    kernel = target.compile(source_of(gather, index, x, Region(y)))
    site = next(n for n, what in kernel.image.sites.items() if isinstance(what, IndexSite) and "x" in what.array)
    line = next(n for n, what in kernel.image.sites.items() if isinstance(what, LineSite))
    where = [value for array in (index, x, y) for value in (array.ctypes.data, N)]
    config = LaunchConfig((4, 1, 1), (256, 1, 1), (N, 1, 1), stream=5)

    def fail(launch):
        record = value(launch, OWN + 6)
        assert any(start <= record < start + nbytes for start, (_, nbytes) in api.live.items())
        values = (1, site, line, 0, 990, 980, 0, 990, 0, 0, 256, 1, 1)
        assert ctypes.string_at(record, RECORD_BYTES) == bytes(RECORD_BYTES)
        ctypes.memmove(record, struct.pack(ERROR_RECORD_FORMAT, *values), RECORD_BYTES)

    api.on_launch = fail
    for _ in range(2):  # a record that is used again is cleared
        if asynchronous:
            assert target.launch(kernel, where, config, wait=False) is None
            with pytest.raises(IndexError, match="index 990 .* size 980"):
                target.synchronize(5)
        else:
            report = target.launch(kernel, where, config)
            assert (report.site, report.line, report.payload[:2]) == (site, line, (990, 980))
    api.on_launch = compute
    assert target.launch(kernel, where, config) is None
    np.testing.assert_array_equal(y, x[::-1])


def test_structures_are_given_to_an_older_hip_python():
    made = HIPDriver(EmulatedHIP("gfx942", fills=True))
    assert made.arch == "gfx942"
    host, _ = made.allocate_mapped(8)
    assert made.page_locked(host) and made.ordinal_of(host) == 0
    assert made.ordinal_of(made.allocate(8)) == 0
    assert made.ordinal_of(12345) is None


def test_bindings_that_cannot_be_used_are_told_as_a_target_error(monkeypatch):
    api = EmulatedHIP("gfx942")
    monkeypatch.setattr(api, "_hipDeviceGetAttribute", lambda: None)
    with pytest.raises(TargetError, match=r"no HIP runtime that it can use .*numba-offload\[rocm\]"):
        HIPDriver(api)


def test_a_launch_of_more_threads_than_the_device_takes_is_made_of_several(target, api):
    target.limits = DeviceLimits(1024, (1024,) * 3, (2**31 - 1, 65535, 65535), threads_at_once=600)
    parts = []

    def note(launch):
        compute(launch)
        parts.append((launch.grid[0], value(launch, OWN + 7)))

    api.on_launch = note
    index, x, y = arguments()
    gather(index, x, Region(y))
    np.testing.assert_array_equal(y, x[::-1])
    assert parts == [(2, 0), (2, 512)]


def test_parts_cover_a_launch_once_whatever_its_size():
    limits = DeviceLimits(1024, (1024,) * 3, (2**31 - 1, 65535, 65535), threads_at_once=2**32 - 1)
    for threads in (2**32 - 1, 2**32, 2**32 + 1, 2**35 + 77):
        config = LaunchConfig((-(-threads // 256), 1, 1), (256, 1, 1), (threads, 1, 1))
        parts = list(launch_shape(config, False, limits, 1024, "k").parts())
        following = 0
        for grid, (first, *_), (origin, *_) in parts:
            assert first == following == 256 * origin
            assert grid[0] * 256 < 2**32
            following += grid[0] * 256
        assert threads <= following < threads + 256


@pytest.mark.parametrize("grid", [(1, 1, 1), (7, 5, 3), (100, 1, 1), (1, 9, 11), (2, 1, 200)])
@pytest.mark.parametrize("most", [1, 2, 5, 16, 104, 105])
def test_parts_of_a_grid_are_boxes_that_cover_it_once(grid, most):
    seen = np.zeros(grid, int)
    for (x, y, z), first, (i, j, k) in LaunchShape(grid, (4, 3, 2), grid, most).parts():
        assert x * y * z <= most
        assert first == (4 * i, 3 * j, 2 * k)
        seen[i : i + x, j : j + y, k : k + z] += 1
    assert (seen == 1).all()


@pytest.mark.parametrize("function", ["hipMemcpyHtoDAsync", "hipModuleLaunchKernel", "hipStreamSynchronize"])
def test_what_fails_in_hip_is_told_by_its_name_there(target, api, function):
    api.fail[function] = Code.hipErrorOutOfMemory
    index, x, y = arguments()
    with pytest.raises(TargetError, match=r"HIP: .* failed with hipErrorOutOfMemory \(said the runtime\)"):
        gather(index, x, Region(y))
    np.testing.assert_array_equal(y, np.ones(N))
    api.fail.clear()
    gather(index, x, Region(y))
    np.testing.assert_array_equal(y, x[::-1])


def test_a_failure_is_told_once(target, api):
    """HIP remembers the last failure of a thread. What is an error of ours here must not be one of PyTorch's later."""
    api.fail["hipMalloc"] = Code.hipErrorOutOfMemory
    index, x, y = arguments()
    with pytest.raises(DeviceMemoryError, match="hipErrorOutOfMemory"):
        gather(index, x, Region(y))
    assert api.last_error == Code.hipSuccess
    api.fail = {"hipPointerGetAttributes": Code.hipErrorInvalidValue}
    gather(index, x, Region(y))
    assert api.last_error == Code.hipSuccess
    np.testing.assert_array_equal(y, x[::-1])


def test_memory_that_hip_does_not_know_is_on_no_device(target):
    driver = target._driver
    known = driver.allocate(8)
    assert driver.ordinal_of(known) == 0
    driver.free(known)
    assert driver.ordinal_of(known) is None
    assert not driver.page_locked(known)
    assert driver.page_locked(driver.allocate_mapped(8)[0])


@pytest.mark.parametrize("wait", [True, False])
def test_a_part_that_cannot_be_launched_waits_for_the_parts_before(target, api, wait):
    """They write to the error record and to the arrays, which are others' after the launch."""
    target.limits = DeviceLimits(1024, (1024,) * 3, (2**31 - 1, 65535, 65535), threads_at_once=600)

    def then_fail(launch):
        compute(launch)
        api.fail["hipModuleLaunchKernel"] = Code.hipErrorOutOfMemory

    index, x, y = arguments()
    kernel = target.compile(source_of(gather, index, x, Region(y)))
    api.on_launch = then_fail
    api.calls.clear()
    where = [value for array in (index, x, y) for value in (array.ctypes.data, N)]
    with pytest.raises(TargetError, match="hipErrorOutOfMemory"):
        target.launch(kernel, where, LaunchConfig((4, 1, 1), (256, 1, 1), (N, 1, 1)), wait=wait)
    launched = [name for name in api.calls if name in ("hipModuleLaunchKernel", "hipStreamSynchronize")]
    assert launched == ["hipModuleLaunchKernel", "hipModuleLaunchKernel", "hipStreamSynchronize"]


def test_memory_that_runs_out_is_told_with_what_the_device_has(target, api):
    api.fail["hipMalloc"] = Code.hipErrorOutOfMemory
    with pytest.raises(
        DeviceMemoryError, match=r"'.*' \(kernel gather\).*OutOfMemory.*; of the device's \d+ bytes \d+ are free"
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
    assert {"hipStreamCreateWithFlags", "hipEventSynchronize"} <= set(api.calls)
    assert ("record", 7) in api.events and ("wait", 7) in api.events


def test_copies_on_the_device(target, api):
    memory, x, y = target.memory, np.arange(8.0), np.zeros(8)
    first, second = memory.allocate(64), memory.allocate(64)
    memory.copy_to_device(first, x.ctypes.data, 64)
    memory.copy_within(second, first, 64, 7)
    assert "hipMemcpyDtoDAsync" in api.calls
    memory.copy_to_host(y.ctypes.data, second, 64)
    np.testing.assert_array_equal(y, x)


def test_memory_is_given_back(target, api):
    index, x, y = arguments()
    gather(index, x, Region(y))
    held = len(api.live)
    for _ in range(3):
        gather(index, x, Region(y))
    assert len(api.live) == held


def test_another_device_of_the_thread_is_kept(target, api):
    api.current = 3
    index, x, y = arguments()
    gather(index, x, Region(y))
    assert api.current == 3
    assert "hipSetDevice" in api.calls


def test_index_arrays_stay_on_the_device(target, api):
    api.on_launch = lambda launch: None
    strategy = Permuted(INDEX)
    x, y = np.arange(N, dtype=float), np.ones(N)
    gather(INDEX, x, Region(y, strategy))
    copies = api.calls.count("hipMemcpyHtoDAsync")
    gather(INDEX, x, Region(y, strategy))
    assert api.calls.count("hipMemcpyHtoDAsync") - copies < copies


def test_code_for_another_architecture_is_refused(target):
    index, x, y = arguments()
    image = target.build(source_of(gather, index, x, Region(y)))
    other = AMDGPUTarget(HIPDriver(EmulatedHIP("gfx90a")))
    with pytest.raises(TargetError, match=r"for gfx942, but the device is gfx90a"):
        other.load(image, "gather")


def test_a_forked_child_is_told(target, monkeypatch):
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(TargetError, match="HIP was started before this process was forked"):
        gather(*arguments()[:2], Region(np.ones(N)))


def test_without_a_device_the_error_says_what_to_check():
    with pytest.raises(TargetError, match="HIP_VISIBLE_DEVICES"):
        HIPDriver(EmulatedHIP("gfx942", devices=0))


def test_an_unknown_architecture_is_named():
    with pytest.raises(TargetError, match=r"'gfx803'.*gfx90a"):
        HIPDriver(EmulatedHIP("gfx803"))


def test_without_the_runtime_the_error_says_what_to_install():
    broken = SimpleNamespace(hipInit=lambda flags: (_ for _ in ()).throw(RuntimeError("failed to dlopen 'libamdhip64.so'")))
    with pytest.raises(TargetError, match=r"found no HIP runtime that it can use .*libamdhip64.*numba-offload\[rocm\]"):
        HIPDriver(broken)
