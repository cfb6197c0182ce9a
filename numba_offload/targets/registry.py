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
from numba_offload.mapping.state import DeviceState
from numba_offload.targets.base import Target


@dataclass(frozen=True)
class TargetState:
    """A target and what mapping keeps for its device."""

    target: Target
    device: DeviceState


def _cpu() -> Target:
    from numba_offload.targets.cpu.target import CPUTarget

    model = os.environ.get("NUMBA_OFFLOAD_CPU_MEMORY", "unified")
    if model not in ("unified", "discrete"):
        raise TargetError(f"NUMBA_OFFLOAD_CPU_MEMORY={model!r}: expected 'unified' or 'discrete'")
    return CPUTarget(HostHeap() if model == "discrete" else UnifiedHostMemory())


def _vendor(module: str, name: str) -> Callable[[], Target]:
    def make() -> Target:
        return getattr(importlib.import_module(f"numba_offload.targets.{module}.target"), name)()

    return make


_MAKERS: dict[str, Callable[[], Target]] = {
    "cuda": _vendor("cuda", "CUDATarget"),
    "cpu": _cpu,
}
"""In order of preference."""

_states: dict[str, TargetState] = {}
_failures: dict[str, str] = {}
_lock = threading.RLock()
_chosen: ContextVar[str | None] = ContextVar("numba_offload_target", default=None)


def target_state(name: str) -> TargetState:
    """A target by name, made at first use. Raises TargetError where it is unknown or does not work here."""
    key = name
    if name == "cpu":
        key = f"cpu/{os.environ.get('NUMBA_OFFLOAD_CPU_MEMORY', 'unified')}"
    known = _states.get(key)
    if known is not None:
        return known
    if name not in _MAKERS:
        raise TargetError(f"unknown target {name!r}; known targets: {', '.join(_MAKERS)}")
    with _lock:
        if key not in _states:
            target = _MAKERS[name]()
            _states[key] = TargetState(target, DeviceState(target.memory, name=name))
        return _states[key]


def known_targets() -> tuple[str, ...]:
    """The names of all targets, working here or not, in order of preference."""
    return tuple(_MAKERS)


def available_targets() -> tuple[str, ...]:
    """The targets that work on this machine, in order of preference."""
    working = []
    for name in _MAKERS:
        if name in _failures:
            continue
        try:
            target_state(name)
        except TargetError as error:
            if name != "cpu":  # whose memory model can be set right
                _failures[name] = str(error)
        else:
            working.append(name)
    return tuple(working)


def why_unavailable(name: str) -> str | None:
    """Why a known target does not work here, or None if it does."""
    if name not in _failures:
        try:
            target_state(name)
        except TargetError as error:
            return str(error)
    return _failures.get(name)


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
    name = requested_target() or lives_on
    if name is not None:
        return target_state(name)
    working = available_targets()
    # The CPU's own error, if even that does not work.
    return target_state(working[0] if working else "cpu")


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
