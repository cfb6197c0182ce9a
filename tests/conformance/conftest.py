"""Every kernel that a test of this folder compiles for the CPU is compiled and linked for AMD GPUs too."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from emulation.compiled_for_amd import compiled_for_amd, why_not


@pytest.fixture(autouse=True)
def _amd_code_objects(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if "cpu-unified" not in request.node.name or why_not() is not None:
        yield
        return
    with compiled_for_amd(monkeypatch):
        yield
