"""A cache of its own for each test, in which nothing has been warned about yet."""

from __future__ import annotations

import pytest
from cached_kernels import forget_checks

from numba_offload import use_target
from numba_offload.cache import folder as cache_folder
from numba_offload.cache import told


@pytest.fixture
def folder(tmp_path, monkeypatch):
    path = tmp_path / "cache"
    monkeypatch.setenv("NUMBA_OFFLOAD_CACHE_DIR", str(path))
    monkeypatch.setattr(told, "_told", set())
    monkeypatch.setattr(cache_folder, "_writes", 0)
    forget_checks(monkeypatch)
    return path


@pytest.fixture
def cpu():
    with use_target("cpu"):
        yield

