"""What the environment says, where it says nothing, and where it is not understood."""

from __future__ import annotations

import numpy as np
import pytest

from numba_offload import preload, preload_mut
from numba_offload.errors import DeviceMemoryError, TargetError
from numba_offload.mapping.discrete import HostHeap
from numba_offload.mapping.pool import BufferPool
from numba_offload.mapping.settings import cpu_memory, debugging_borrows
from numba_offload.targets import registry


def test_an_empty_memory_model_is_none(monkeypatch):
    monkeypatch.setenv("NUMBA_OFFLOAD_CPU_MEMORY", "")
    assert cpu_memory() == "unified"
    monkeypatch.delenv("NUMBA_OFFLOAD_CPU_MEMORY")
    unset = registry.target_state("cpu")
    monkeypatch.setenv("NUMBA_OFFLOAD_CPU_MEMORY", "")
    assert registry.target_state("cpu") is unset


@pytest.mark.parametrize("text", ["borrows", "1", "trace, other", "Borrow"])
@pytest.mark.parametrize("hold", [preload, preload_mut])
def test_a_debug_mode_that_does_not_exist_is_told(hold, text, monkeypatch):
    monkeypatch.setenv("NUMBA_OFFLOAD_DEBUG", text)
    x = np.ones(10)
    with pytest.raises(TargetError, match=f"NUMBA_OFFLOAD_DEBUG={text!r}: expected 'borrow'"):
        hold(x)
    assert x.flags.writeable


@pytest.mark.parametrize(
    ("text", "on"),
    [("", False), (" ", False), ("borrow", True), (" borrow , ", True), ("other, borrow", True)],
)
def test_a_debug_mode_is_on_or_off(text, on, monkeypatch):
    monkeypatch.setenv("NUMBA_OFFLOAD_DEBUG", text)
    assert debugging_borrows() is on


def test_where_the_limit_is_in_the_way_the_way_out_is_the_limit(monkeypatch):
    monkeypatch.setenv("NUMBA_OFFLOAD_MEMORY_LIMIT", "1K")
    with pytest.raises(DeviceMemoryError, match=r"Release preloaded arrays, raise the limit, or pass smaller arrays$"):
        BufferPool(HostHeap()).allocate(8000, "x", "kernel saxpy")
