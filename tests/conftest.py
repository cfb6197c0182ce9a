"""The targets that a test runs on: the `target` fixture, for tests whose kernels must mean the same everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from numba_offload import use_target
from numba_offload.targets.registry import why_unavailable


@dataclass(frozen=True)
class TestedTarget:
    """A target as a test sees it. ``separate``: the device has memory of its own, so arrays are copied."""

    name: str
    separate: bool

    __test__ = False


# A new target is one more line here, and nothing else.
TARGETS = {
    "cpu-unified": TestedTarget("cpu", separate=False),
    "cpu-discrete": TestedTarget("cpu", separate=True),
    "cuda": TestedTarget("cuda", separate=True),
}
_MARKS = {"cuda": pytest.mark.cuda}
_MEMORY = {"cpu-unified": "unified", "cpu-discrete": "discrete"}


def _parameters() -> list[object]:
    return [pytest.param(name, marks=_MARKS[name]) if name in _MARKS else name for name in TARGETS]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tests marked with a target's name are skipped, with the reason, where it does not work."""
    for name in _MARKS:
        why = why_unavailable(name) if item.get_closest_marker(name) else None
        if why is not None:
            pytest.skip(f"target {name}: {why}")


@pytest.fixture(params=_parameters())
def target(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestedTarget]:
    """Each target in turn, current for the length of the test; skipped with the reason where it does not work."""
    name = request.param
    tested = TARGETS[name]
    if name in _MEMORY:
        monkeypatch.setenv("NUMBA_OFFLOAD_CPU_MEMORY", _MEMORY[name])
    else:
        why = why_unavailable(tested.name)
        if why is not None:
            pytest.skip(f"target {tested.name}: {why}")
    with use_target(tested.name):
        yield tested
