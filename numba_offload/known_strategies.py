"""Strategies that calls have used: one object for all that are equal, and the type of each.

Launches find their plans by a strategy's identity, and a call makes its strategy anew as often as not. Strategies with
index arrays stand for themselves: comparing the arrays would take longer than it saves. They are not kept alive here.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

from numba_offload.device.strategies import strategy_type
from numba_offload.device.types import StrategyType
from partitioning import PartitioningStrategy

_MOST = 1000

_by_id: dict[int, tuple[weakref.ref[PartitioningStrategy], KnownStrategy | StrategyType]] = {}
_by_value: dict[PartitioningStrategy, KnownStrategy] = {}


@dataclass(frozen=True, slots=True)
class KnownStrategy:
    """A strategy to use in place of every equal one, and its type."""

    strategy: PartitioningStrategy
    type: StrategyType


def known_strategy(strategy: PartitioningStrategy) -> KnownStrategy:
    """The strategy's representative."""
    found = _by_id.get(id(strategy))
    if found is not None and found[0]() is strategy:
        # Only the type, where keeping the strategy would keep its index arrays.
        return found[1] if isinstance(found[1], KnownStrategy) else KnownStrategy(strategy, found[1])
    if strategy.index_values():
        ty = strategy_type(strategy)
        _remember(strategy, ty)
        return KnownStrategy(strategy, ty)
    known = _by_value.get(strategy)
    if known is None:
        if len(_by_value) >= _MOST:
            _by_value.clear()
        known = _by_value.setdefault(strategy, KnownStrategy(strategy, strategy_type(strategy)))
    _remember(strategy, known)
    return known


def _remember(strategy: PartitioningStrategy, what: Any) -> None:
    if len(_by_id) >= _MOST:
        _by_id.clear()
    _by_id[id(strategy)] = (weakref.ref(strategy), what)
