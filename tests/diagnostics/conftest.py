"""Everything here runs on the CPU, where ``discrete`` makes copies real."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from numba_offload import use_target


@pytest.fixture
def discrete(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("NUMBA_OFFLOAD_CPU_MEMORY", "discrete")
    with use_target("cpu"):
        yield


@pytest.fixture
def unified(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("NUMBA_OFFLOAD_CPU_MEMORY", "unified")
    with use_target("cpu"):
        yield
