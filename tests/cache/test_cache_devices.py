"""The cache on GPU targets: on stand-ins for their drivers, which are given the code that was on disk."""

from __future__ import annotations

import os

import numpy as np
import pytest
from cached_kernels import HIT, MISS, again, counts, nothing_compiles
from emulation.hip import EmulatedHIP
from targets.fake_cuda import FakeDriver

from numba_offload import Region, offload_kernel
from numba_offload.mapping.state import DeviceState
from numba_offload.targets import registry
from numba_offload.targets.amdgpu import devicelibs, linker
from numba_offload.targets.amdgpu.driver import HIPDriver
from numba_offload.targets.amdgpu.target import AMDGPUTarget
from numba_offload.targets.cuda import libdevice
from numba_offload.targets.cuda.driver import CUDADriver
from numba_offload.targets.cuda.target import CUDATarget

N = 1000


@offload_kernel
def waves(x, y):
    for i in y.indices():
        y[i] = np.sin(x[i])


def cuda(loaded):
    api = FakeDriver(lambda: 2 * 2 + 8)
    api._cuModuleLoadDataEx = lambda image, *more: loaded.append(image) or ("module",)
    return CUDATarget(CUDADriver(api))


def amdgpu(loaded, arch="gfx942"):
    api = EmulatedHIP(arch)
    api.on_launch = lambda launch: None
    load = api._hipModuleLoadData
    api._hipModuleLoadData = lambda image: loaded.append(image) or load(image)
    return AMDGPUTarget(HIPDriver(api))


@pytest.fixture
def use(monkeypatch):
    def made(target):
        state = registry.TargetState(target, DeviceState(target.memory, name=target.name))
        monkeypatch.setitem(registry._states, target.name, state)
        monkeypatch.setenv("NUMBA_OFFLOAD_TARGET", target.name)

    return made


def launched():
    kernel = again(waves)
    kernel(np.arange(float(N)), Region(np.zeros(N)))
    return kernel


@pytest.fixture
def linked():
    if linker.find_linker() is None or devicelibs.find_device_libraries() is None:
        pytest.skip("AMD code cannot be linked here (Debian's packages lld-19 and rocm-device-libs)")


@pytest.fixture
def mathematics():
    if libdevice.find_libdevice() is None:
        pytest.skip("libdevice is not installed")


def test_cuda(folder, use, mathematics, monkeypatch):
    loaded = []
    use(cuda(loaded))
    assert counts(launched()) == MISS
    nothing_compiles(monkeypatch)
    use(cuda(loaded))
    assert counts(launched()) == HIT
    first, second = loaded
    assert first == second
    assert b".target sm_90" in second


def test_amdgpu(folder, use, linked, monkeypatch):
    loaded = []
    use(amdgpu(loaded))
    assert counts(launched()) == MISS
    nothing_compiles(monkeypatch)
    use(amdgpu(loaded))
    assert counts(launched()) == HIT
    first, second = loaded
    assert first == second
    assert second.startswith(b"\x7fELF")


def test_another_architecture(folder, use, linked):
    loaded = []
    for arch, found in (("gfx942", MISS), ("gfx90a", (1, 0, 0, 1)), ("gfx942", HIT), ("gfx90a", HIT)):
        use(amdgpu(loaded, arch))
        assert counts(launched()) == found
    assert loaded[0] == loaded[2] != loaded[1] == loaded[3]


def test_one_record_serves_all_targets(folder, use, linked, mathematics):
    use(amdgpu([]))
    assert counts(launched()) == MISS
    use(cuda([]))
    assert counts(launched()) == (1, 0, 0, 1)
    assert len(list(folder.glob("*.record"))) == 1


def copied(path, to):
    to.write_bytes(path.read_bytes())
    os.utime(to, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    return to


def test_another_libdevice(folder, use, mathematics, tmp_path, monkeypatch):
    use(cuda([]))
    assert counts(launched()) == MISS
    other = copied(libdevice.find_libdevice(), tmp_path / "libdevice.10.bc")
    monkeypatch.setenv("NUMBA_OFFLOAD_LIBDEVICE", str(other))
    assert counts(launched()) == (1, 0, 0, 1)
    assert counts(launched()) == HIT
    os.utime(other, (1, 1))
    # A process reads the file once. Another one, for which the time is another, compiles.
    assert counts(launched()) == HIT
    libdevice._described.cache_clear()
    assert counts(launched()) == (1, 0, 0, 1)


def test_other_device_libraries(folder, use, linked, tmp_path, monkeypatch):
    use(amdgpu([]))
    assert counts(launched()) == MISS
    for path in devicelibs.find_device_libraries().glob("*.bc"):
        copied(path, tmp_path / path.name)
    monkeypatch.setattr(devicelibs, "_folders", lambda: iter([tmp_path]))
    assert counts(launched()) == (1, 0, 0, 1)
    (tmp_path / "more.bc").write_bytes(b"")
    devicelibs._described.cache_clear()
    assert counts(launched()) == (1, 0, 0, 1)
    assert counts(launched()) == HIT


def test_another_linker(folder, use, linked, tmp_path, monkeypatch):
    use(amdgpu([]))
    assert counts(launched()) == MISS
    wrapper = tmp_path / "ld.lld"
    wrapper.write_text(f'#!/bin/sh\nexec {linker.find_linker()} "$@"\n')
    wrapper.chmod(0o700)
    monkeypatch.setattr(linker, "_candidates", lambda: iter([str(wrapper)]))
    assert counts(launched()) == (1, 0, 0, 1)
    os.utime(wrapper, (1, 1))
    assert counts(launched()) == (1, 0, 0, 1)
    assert counts(launched()) == HIT
