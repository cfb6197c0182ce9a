"""Which targets there are, which work here, and which one is to be used."""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Callable
from contextvars import ContextVar, Token
from dataclasses import dataclass
from typing import Any

from numba_offload.errors import TargetError
from numba_offload.mapping.discrete import HostHeap, UnifiedHostMemory
from numba_offload.mapping.settings import cpu_memory
from numba_offload.mapping.state import DeviceState
from numba_offload.targets.base import Target


@dataclass(frozen=True)
class TargetState:
    """A target and what mapping keeps for its device."""

    target: Target
    device: DeviceState


def _cpu() -> Target:
    from numba_offload.targets.cpu.target import CPUTarget

    model = cpu_memory()
    if model not in ("unified", "discrete"):
        raise TargetError(f"NUMBA_OFFLOAD_CPU_MEMORY={model!r}: expected 'unified' or 'discrete'")
    return CPUTarget(HostHeap() if model == "discrete" else UnifiedHostMemory())


def _vendor(module: str, name: str) -> Callable[[], Target]:
    def make() -> Target:
        return getattr(importlib.import_module(f"numba_offload.targets.{module}.target"), name)()

    return make


_MAKERS: dict[str, Callable[[], Target]] = {
    "cuda": _vendor("cuda", "CUDATarget"),
    "amdgpu": _vendor("amdgpu", "AMDGPUTarget"),
    "cpu": _cpu,
}
"""In order of preference."""

_DEVICE_TYPES = {2: "cuda", 13: "cuda", 10: "amdgpu"}
"""Whose devices DLPack's device types are."""

_states: dict[str, TargetState] = {}
_failures: dict[str, str] = {}
_lock = threading.RLock()
_chosen: ContextVar[str | None] = ContextVar("numba_offload_target", default=None)


def _key(name: str) -> str:
    """What a target's state is kept under: the CPU has one for each memory model."""
    if name == "cpu":
        return f"cpu/{cpu_memory()}"
    return name


def target_state(name: str) -> TargetState:
    """A target by name, made at first use. Raises TargetError where it is unknown or does not work here."""
    key = _key(name)
    known = _states.get(key)
    if known is not None:
        return known
    _check_name(name)
    with _lock:
        if key not in _states:
            target = _MAKERS[name]()
            _states[key] = TargetState(target, DeviceState(target.memory, name=name))
        return _states[key]


def known_targets() -> tuple[str, ...]:
    """The names of all targets, working here or not, in order of preference."""
    return tuple(_MAKERS)


def target_of_device(device_type: int) -> str:
    """The name of the target for a DLPack device type. Raises TargetError where no target runs on such devices."""
    name = _DEVICE_TYPES.get(device_type)
    if name is None:
        raise TargetError(
            f"no target runs kernels on devices of DLPack type {device_type}; copy the array to the host first"
        )
    return name


def described(state: TargetState) -> str:
    """A target's name, and the memory model of the CPU's."""
    if state.target.name != "cpu":
        return repr(state.target.name)
    return f"'cpu' ({'unified' if state.device.memory.unified else 'discrete'} memory)"


def available_targets() -> tuple[str, ...]:
    """The targets that work on this machine, in order of preference."""
    working = []
    for name in _MAKERS:
        if _key(name) in _failures:
            continue
        try:
            target_state(name)
        except TargetError as error:
            _failures[_key(name)] = str(error)
        else:
            working.append(name)
    return tuple(working)


def why_unavailable(name: str) -> str | None:
    """Why a known target does not work here, or None if it does."""
    available_targets()
    return _failures.get(_key(name))


def _first_that_works() -> str:
    working = available_targets()
    if not working:
        raise TargetError("no target works here: " + "; ".join(f"{n}: {why_unavailable(n)}" for n in _MAKERS))
    return working[0]


def _check_name(name: str) -> str:
    if not isinstance(name, str) or name not in _MAKERS:
        raise TargetError(f"unknown target {name!r}; known targets: {', '.join(_MAKERS)}")
    return name


class use_target:
    """Run kernels on a named target: ``with use_target("cpu"):``, or as a call, from then on.

    Holds for the calling thread (more exactly: the ``contextvars`` context); ``NUMBA_OFFLOAD_TARGET`` is for all.
    Raises TargetError where the target is unknown or does not work on this machine.
    """

    def __init__(self, name: str) -> None:
        _check_name(name)
        target_state(name)
        self.name = name
        self._token: Token[str | None] = _chosen.set(name)

    def __enter__(self) -> use_target:
        return self

    def __exit__(self, *exc: Any) -> None:
        _chosen.reset(self._token)


def requested_target() -> str | None:
    """What ``use_target`` or ``NUMBA_OFFLOAD_TARGET`` asks for, if anything."""
    name = _chosen.get()
    if name is not None:
        return name
    name = os.environ.get("NUMBA_OFFLOAD_TARGET")
    return _check_name(name) if name else None


def current_target(lives_on: str | None = None) -> TargetState:
    """The target for a launch: as asked for, else where its arguments live, else the first that works."""
    if lives_on is None:
        # On the way of every launch; what program and environment ask for is looked up once.
        key = (_chosen.get(), _ENVIRONMENT.get(_TARGET_KEY), _ENVIRONMENT.get(_MEMORY_KEY))
        state = _states.get(_by_environment.get(key, ""))
        if state is None:
            asked = requested_target()
            name = asked if asked is not None else _first_that_works()
            state = target_state(name)
            _by_environment[key] = _key(name)
        return state
    return target_state(requested_target() or lives_on)


# os.environ looks a missing name up by catching an exception; the mapping behind it does not.
_ENVIRONMENT: Any = getattr(os.environ, "_data", os.environ)
_TARGET_KEY, _MEMORY_KEY = (
    os.environ.encodekey(name) if _ENVIRONMENT is not os.environ else name
    for name in ("NUMBA_OFFLOAD_TARGET", "NUMBA_OFFLOAD_CPU_MEMORY")
)
_by_environment: dict[Any, str] = {}


def _after_fork() -> None:
    """A child starts with the CPU afresh: launches of the parent's other threads hold arrays and locks here for good.

    Devices stay as they are, to say that they do not survive a fork.
    """
    global _lock
    _lock = threading.RLock()
    for key in [key for key in _states if key.startswith("cpu/")]:
        del _states[key]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def synchronize(stream: Any = None) -> None:
    """Wait for everything launched on the targets in use; raises what an asynchronous launch failed with."""
    for state in list(_states.values()):
        state.target.synchronize(stream)
