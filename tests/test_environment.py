"""What the environment asks for: said when it cannot be had, and not held against later launches."""

import numpy as np
import pytest

from numba_offload import Region, TargetError, available_targets, offload_kernel


@offload_kernel
def one(y):
    for i in y.indices():
        y[i] = 1.0


def test_a_mistyped_memory_model(monkeypatch):
    monkeypatch.setenv("NUMBA_OFFLOAD_TARGET", "cpu")
    y = np.zeros(3)
    one(Region(y))
    monkeypatch.setenv("NUMBA_OFFLOAD_CPU_MEMORY", "discret")
    with pytest.raises(TargetError, match=r"'discret'.*'unified' or 'discrete'"):
        one(Region(y))
    monkeypatch.delenv("NUMBA_OFFLOAD_TARGET")
    if "cuda" not in available_targets():
        with pytest.raises(TargetError, match="'unified' or 'discrete'"):
            one(Region(y))
    monkeypatch.setenv("NUMBA_OFFLOAD_CPU_MEMORY", "unified")
    y[:] = 0
    one(Region(y))
    assert (y == 1).all()


def test_a_mistyped_target(monkeypatch):
    monkeypatch.setenv("NUMBA_OFFLOAD_TARGET", "gpu")
    with pytest.raises(TargetError, match="'gpu'.*known targets"):
        one(Region(np.zeros(3)))
