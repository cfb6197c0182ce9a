"""The CPU with memory of its own, on which a missing or stale copy shows."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def discrete(monkeypatch):
    monkeypatch.setenv("NUMBA_OFFLOAD_CPU_MEMORY", "discrete")
    monkeypatch.setenv("NUMBA_OFFLOAD_TARGET", "cpu")
