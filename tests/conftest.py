"""The targets that a test runs on: the `target` fixture, for tests whose kernels must mean the same everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import pytest

from numba_offload import use_target
from numba_offload.targets import registry
from numba_offload.targets.registry import TargetState, why_unavailable


@dataclass(frozen=True)
class TestedTarget:
    """A target as a test sees it. ``separate``: the device has memory of its own, so arrays are copied."""

    name: str
    separate: bool
    emulated: str | None = None
    """The architecture whose instructions are executed by an emulator."""

    __test__ = False


# A new target is one more line here, and nothing else.
TARGETS = {
    "cpu-unified": TestedTarget("cpu", separate=False),
    "cpu-discrete": TestedTarget("cpu", separate=True),
    "cuda": TestedTarget("cuda", separate=True),
    "amdgpu": TestedTarget("amdgpu", separate=True),
    "gfx90a": TestedTarget("amdgpu", separate=True, emulated="gfx90a"),
    "gfx942": TestedTarget("amdgpu", separate=True, emulated="gfx942"),
    "gfx1100": TestedTarget("amdgpu", separate=True, emulated="gfx1100"),
}
_MARKS = {
    name: pytest.mark.emulated if tested.emulated else getattr(pytest.mark, name)
    for name, tested in TARGETS.items()
    if tested.name != "cpu"
}
_MEMORY = {"cpu-unified": "unified", "cpu-discrete": "discrete"}


def _parameters() -> list[object]:
    return [pytest.param(name, marks=_MARKS[name]) if name in _MARKS else name for name in TARGETS]


@pytest.fixture(scope="session", autouse=True)
def cache_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Kernels with ``cache=True`` leave the user's cache alone, in the processes that tests start too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMBA_OFFLOAD_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tests marked with a target's name are skipped, with the reason, where it does not work."""
    for name in ("cuda", "amdgpu"):
        why = why_unavailable(name) if item.get_closest_marker(name) else None
        if why is not None:
            pytest.skip(f"target {name}: {why}")
    if item.get_closest_marker("emulated"):
        why = _why_no_emulator()
        if why is not None:
            pytest.skip(f"emulated AMD GPU: {why}")


def _why_no_emulator() -> str | None:
    try:
        from emulation import emulator
    except ImportError as error:
        return str(error)
    return emulator.why_unavailable()


@cache
def emulated_state(arch: str) -> TargetState:
    """The AMD GPU target over an emulated device, one for all tests: compiled kernels stay loaded on it."""
    from emulation.hip import EmulatedHIP

    from numba_offload.mapping.state import DeviceState
    from numba_offload.targets.amdgpu.driver import HIPDriver
    from numba_offload.targets.amdgpu.target import AMDGPUTarget

    made = AMDGPUTarget(HIPDriver(EmulatedHIP(arch)))
    return TargetState(made, DeviceState(made.memory, name="amdgpu"))


@pytest.fixture(params=_parameters())
def target(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestedTarget]:
    """Each target in turn, current for the length of the test; skipped with the reason where it does not work."""
    name = request.param
    tested = TARGETS[name]
    if name in _MEMORY:
        monkeypatch.setenv("NUMBA_OFFLOAD_CPU_MEMORY", _MEMORY[name])
    if tested.emulated:
        monkeypatch.setitem(registry._states, tested.name, emulated_state(tested.emulated))
    with use_target(tested.name):
        yield tested
