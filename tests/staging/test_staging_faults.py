"""Preloads on a device that runs out of memory or fails to copy: nothing stays held, nothing stays locked."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from staged_kernels import fill, numbers

from numba_offload import Region, TargetError, preload, preload_mut, use_target
from numba_offload.errors import DeviceMemoryError
from numba_offload.mapping.borrow import BORROWS
from numba_offload.targets.registry import current_target


@pytest.fixture
def memory(monkeypatch):
    """The discrete model's memory. What a test makes fail is mended when it ends."""
    monkeypatch.setenv("NUMBA_OFFLOAD_CPU_MEMORY", "discrete")
    with use_target("cpu"):
        device = current_target().device
        device.pool.trim()
        in_use, held = device.pool.bytes_in_use, device.present.entries
        yield device.memory
        assert not BORROWS.live
        assert (device.pool.bytes_in_use, device.present.entries) == (in_use, held)


def failing(monkeypatch, memory, method, at):
    """Let the ``at``-th call of a method fail, from 0."""
    calls = iter(range(1000))
    original = getattr(memory, method)

    def sometimes(*arguments, **options):
        if next(calls) == at:
            raise RuntimeError("injected")
        return original(*arguments, **options)

    monkeypatch.setattr(memory, method, sometimes)


@pytest.mark.parametrize("debug", ["", "borrow"])
@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_copy_over_that_fails(memory, monkeypatch, at, debug):
    monkeypatch.setenv("NUMBA_OFFLOAD_DEBUG", debug)
    arrays = [numbers(5), numbers(6), numbers(7)]
    failing(monkeypatch, memory, "copy_to_device", at)
    with pytest.raises(TargetError, match=rf"'{'abc'[at]}'.*injected"):
        a, b, c = arrays
        preload_mut(a, b, c)
    assert all(array.flags.writeable and array.tolist() == list(range(array.size)) for array in arrays)
    with preload_mut(*arrays) as handles:
        fill(1.0, Region(handles[at]))
    assert arrays[at].sum() == arrays[at].size


def test_no_device_memory(memory, monkeypatch):
    monkeypatch.setattr(memory, "allocate", lambda nbytes: (_ for _ in ()).throw(MemoryError("injected")))
    x = numbers(1000)
    with pytest.raises(DeviceMemoryError, match=r"'x'.*injected.*Release preloaded arrays"):
        preload(x)
    assert x.flags.writeable


@pytest.mark.parametrize("debug", ["", "borrow"])
def test_a_copy_back_that_fails_leaves_the_array_and_brings_the_others(memory, monkeypatch, debug):
    monkeypatch.setenv("NUMBA_OFFLOAD_DEBUG", debug)
    x, y, z = numbers(4), numbers(4), numbers(4)
    with pytest.raises(TargetError, match=r"'y'.*back from.*injected"), preload_mut(x, y, z) as handles:
        for handle in handles:
            fill(8.0, Region(handle))
        failing(monkeypatch, memory, "copy_to_host", 1)
    assert y.tolist() == [0, 1, 2, 3]
    assert x.tolist() == z.tolist() == [8.0] * 4
    assert all(array.flags.writeable for array in (x, y, z))


def test_an_interrupt_while_a_release_waits_leaves_the_hold(memory, monkeypatch):
    y = np.zeros(4)
    gy = preload_mut(y)
    fill(1.0, Region(gy))
    gy.borrow.users.append((0, True))  # as of a launch in another thread

    def interrupted(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, contextlib.suppress(KeyboardInterrupt):
        patch.setattr(BORROWS._changed, "wait", interrupted)
        gy.release()
    assert not gy.released
    gy.borrow.users.clear()
    gy.release()
    assert y.tolist() == [1.0] * 4
