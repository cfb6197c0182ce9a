"""hip-python itself between the AMD GPU target and an emulated device: its marshalling, handles, enumerations and errors."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

PROGRAM = """
import sys
from pathlib import Path

sys.path[:0] = [{tests!r}, {root!r}]
from emulation import hip_library

device = hip_library.load(Path({folder!r}), "gfx1100")

import numpy as np

from numba_offload import Region, TargetError, available_targets, offload_kernel, synchronize, use_target
from numba_offload.targets.amdgpu.driver import HIPDriver
from numba_offload.targets.registry import target_state

assert "amdgpu" in available_targets()
target = target_state("amdgpu").target
assert target.arch == "gfx1100", target.arch
assert target.limits.threads_per_block == 1024
assert target.limits.grid == (2**31 - 1, 65535, 65535)


@offload_kernel
def gather(index, x, y):
    for i in y.indices():
        y[i] = 2.0 * x[index[i]]


index, x, y = np.arange(300)[::-1].copy(), np.arange(300.0), np.zeros(300)
with use_target("amdgpu"):
    gather(index, x, Region(y))
    assert np.array_equal(y, 2.0 * x[::-1])
    index[7] = 300
    try:
        gather(index, x, Region(y))
    except IndexError as error:
        assert "index 300" in str(error) and "thread (7, 0, 0)" in str(error), error
    else:
        raise SystemExit("no error was reported")
    synchronize()

driver = target._driver
assert driver.page_locked(driver.allocate_mapped(64)[0])
assert not driver.page_locked(y.ctypes.data)
assert driver.ordinal_of(y.ctypes.data) is None
assert driver.ordinal_of(driver.allocate(8)) == 0
first, second, seen = driver.allocate(2400), driver.allocate(2400), np.zeros(300)
driver.copy_to_device(first, y.ctypes.data, 2400, 0)
driver.copy_within(second, first, 2400, 0)
driver.copy_to_host(seen.ctypes.data, second, 2400, 0)
assert np.array_equal(seen, y)
pinned = driver.allocate_pinned(64)
assert driver.page_locked(pinned)
driver.free_pinned(pinned)
assert not driver.page_locked(pinned)
free, total = driver.memory_info()
assert 0 < free < total == 64 << 30
assert driver.create_stream() == 101
event = driver.create_event()
driver.await_event("waiting", event)
driver.record_event(event, 0)
driver.wait_event(event, 5)
assert device.events[-2:] == [("record", 0), ("wait", 5)]
assert driver.native_copies() is not None
large, back = np.arange(500_000.0), np.zeros(500_000)
buffer = target.memory.allocate(large.nbytes)
target.memory.copy_to_device(buffer, large.ctypes.data, large.nbytes)
target.memory.copy_to_host(back.ctypes.data, buffer, large.nbytes)
assert np.array_equal(back, large)
device.fail["hipMemcpyHtoDAsync"] = 2
try:
    target.memory.copy_to_device(buffer, large.ctypes.data, large.nbytes)
except TargetError as error:
    assert str(error) == "HIP: copying to the device failed with hipErrorOfTheTest (said the runtime)", error
else:
    raise SystemExit("no error was reported")
device.fail.clear()
device.fail["hipMalloc"] = 2
try:
    driver.allocate(10)
except TargetError as error:
    assert "hipErrorOfTheTest (said the runtime)" in str(error), error
else:
    raise SystemExit("no error was reported")
print("ran", len(device.launches), "launches")
"""


@pytest.mark.emulated
@pytest.mark.skipif(importlib.util.find_spec("hip") is None, reason="hip-python is not installed (the extra rocm)")
def test_a_kernel_runs_through_hip_python(tmp_path):
    program = PROGRAM.format(tests=str(TESTS), root=str(TESTS.parent), folder=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=dict(os.environ), check=False)
    assert done.returncode == 0, done.stderr
    assert "ran 2 launches" in done.stdout
