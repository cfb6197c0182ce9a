"""Users' own strategies: each launch is checked exhaustively before it may run."""

from __future__ import annotations

import inspect
import math
import threading
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
from numba.core import errors

from numba_offload.arguments import ArrayLeaf
from numba_offload.captures import Fingerprint, fingerprint
from numba_offload.code_digest import is_package_class
from numba_offload.device.types import StrategyType
from numba_offload.enumerate_compiled import find_fault
from numba_offload.errors import LaunchError, SafetyError
from numba_offload.known_strategies import known_strategy
from numba_offload.launching import failed_method, strategy_threads
from numba_offload.specialisation import Checks
from numba_offload.targets.base import LaunchConfig
from partitioning import (
    Fault,
    LaunchRefused,
    PartitioningStrategy,
    PartitionRefused,
    enumerate_launch,
    ownership,
)

_INTERPRETED = 4096
"""Up to so many threads and elements the interpreter enumerates too: it sees 64-bit overflow."""

_verified: weakref.WeakKeyDictionary[PartitioningStrategy, set[Any]] = weakref.WeakKeyDictionary()
_ours: dict[StrategyType, bool] = {}
_lock = threading.Lock()


def is_ours(ty: StrategyType) -> bool:
    """Whether every piece of a strategy is one of the package's, whose tests show that it is a partition."""
    known = _ours.get(ty)
    if known is None:
        known = _ours[ty] = is_package_class(ty.cls) and all(is_ours(nested) for _, nested in ty.nested)
    return known


def verify_regions(
    leaves: Sequence[ArrayLeaf], config: LaunchConfig, kernel: str, checks: Checks | None = None
) -> None:
    """Raise LaunchError with two threads, their slots and the element where a partition is not one.

    ``checks`` has compiled code of checks that was made before.
    """
    for leaf in leaves:
        if leaf.strategy is not None and not is_ours(known_strategy(leaf.strategy).type):
            _check_unchanged(leaf.strategy, leaf.name, kernel)
            _verify(leaf, leaf.strategy, config, kernel, checks)


def verify_partition(strategy: PartitioningStrategy, shape: tuple[int, ...], config: LaunchConfig) -> None:
    """Check a strategy by itself, as a launch of a kernel on an array of this shape would.

    Raises LaunchError with two threads, their slots and the element where it is no partition, and with what is wrong where it
    does not fit the shape or the launch, or cannot be compiled.
    """
    leaf = ArrayLeaf("array", np.broadcast_to(np.int8(0), shape), "A", strategy)
    try:
        strategy.check_shape(shape)
        strategy.check_launch(config.grid, config.block, shape)
        _verify(leaf, strategy, config, "verify", None)
    except LaunchRefused as refused:
        raise LaunchError(f"{strategy!r} on shape {shape}: {refused}") from refused
    except LaunchError as error:
        if isinstance(error.__cause__, PartitionRefused | LaunchRefused):
            raise LaunchError(str(error.__cause__)) from error.__cause__
        raise LaunchError(str(error).removeprefix("kernel 'verify': Region 'array': ")) from error.__cause__


def _check_readable(strategy: PartitioningStrategy, shape: tuple[int, ...], threads: Any) -> None:
    """Where a strategy says which elements anyone may read, no thread may own one of those."""
    readable = getattr(strategy, "readable", None)
    if readable is None:
        return
    for element, owners in ownership(strategy, shape, threads).items():
        if readable(element, shape):
            t, k = owners[0]
            fault = Fault(t, "readable", f"says that no thread writes element {element}, but this one does", slot=k)
            raise PartitionRefused(f"{strategy!r} on shape {shape} with {threads} threads: {fault}", fault)


_as_first_used: dict[StrategyType, Any] = {}
_prints: dict[Any, Any] = {}


def _methods(ty: StrategyType) -> list[Any]:
    mine = [m for m in _members(ty.cls) if inspect.isfunction(m) and not m.__module__.startswith("partitioning.")]
    return mine + [m for _, nested in ty.nested for m in _methods(nested)]


def _class_values(ty: StrategyType) -> tuple[Any, ...]:
    """What methods read of their class: constants of the compiled code."""
    own = tuple(fingerprint(m) for m in _members(ty.cls) if not inspect.isfunction(m))
    return own + tuple(v for _, nested in ty.nested for v in _class_values(nested))


def _members(cls: type) -> list[Any]:
    return [getattr(cls, name) for name in sorted(dir(cls)) if not name.startswith("__")]


def _check_unchanged(strategy: PartitioningStrategy, name: str, kernel: str) -> None:
    """Compiled code froze what the methods take from around them; a check of later values would be of other code."""
    ty = known_strategy(strategy).type
    with _lock:
        methods = _methods(ty)
        prints = [_prints.setdefault(method, None) or Fingerprint(method) for method in methods]
        _prints.update(zip(methods, prints, strict=True))
        frozen = tuple((m, m.__code__, p.current()) for m, p in zip(methods, prints, strict=True))
        now = (frozen, _class_values(ty))
        first = _as_first_used.setdefault(ty, now)
    if first != now:
        raise LaunchError(
            f"kernel {kernel!r}: Region {name!r}: {type(strategy).__name__} has changed since it was first used: a method or "
            "attribute of its class, or a global or closure variable that its methods read. Make the value a parameter: set "
            "it in __init__, as Runtime(...) if it differs from launch to launch"
        )


def _verify(
    leaf: ArrayLeaf, strategy: PartitioningStrategy, config: LaunchConfig, kernel: str, checks: Checks | None
) -> None:
    shape = tuple(leaf.array.shape)
    threads = strategy_threads(strategy, config, len(shape))
    with _lock:
        if (shape, threads) in _verified.get(strategy, ()):
            return
    try:
        if math.prod(shape) <= _INTERPRETED and math.prod(config.threads) <= _INTERPRETED:
            enumerate_launch(strategy, shape, threads)
            _check_readable(strategy, shape, threads)
        # What Python says need not be what compiled code does: an int() there has no end, and wraps around here.
        found = find_fault(strategy, shape, threads, checks)
        if found is not None:
            raise PartitionRefused(f"{strategy!r} on shape {shape} with {threads} threads: {found}", found)
    except SafetyError as refused:
        raise LaunchError(
            f"kernel {kernel!r}: Region {leaf.name!r}: the methods of {type(strategy).__name__} cannot be compiled: "
            f"{refused.plain}"
        ) from refused
    except (PartitionRefused, LaunchRefused) as refused:
        raise LaunchError(
            f"kernel {kernel!r}: Region {leaf.name!r}: {refused}. Fix the strategy's count and index so that every element "
            "has one owner; a strategy that leaves elements out says covers = False"
        ) from refused
    except errors.NumbaError as error:
        raise LaunchError(
            f"kernel {kernel!r}: Region {leaf.name!r}: {type(strategy).__name__} cannot be compiled: "
            "count must return an integer, index an integer (or a tuple of one for each axis of an array of several axes), "
            "on every path"
        ) from error
    except Exception as error:
        raise failed_method(strategy, leaf.name, kernel, error) from error
    with _lock:
        _verified.setdefault(strategy, set()).add((shape, threads))
