"""Users' own strategies: each launch is checked exhaustively before it may run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numba_offload.arguments import ArrayLeaf
from numba_offload.errors import LaunchError
from numba_offload.launching import strategy_threads
from numba_offload.targets.base import LaunchConfig
from partitioning import PartitioningStrategy, PartitionRefused, enumerate_launch

_verified: set[Any] = set()


def is_ours(strategy: PartitioningStrategy) -> bool:
    """Whether every piece of a strategy is one of the package's, whose tests prove it."""
    pieces = [strategy, *(v for v in strategy.parameters().values() if hasattr(v, "parameters"))]
    return all(type(p).__module__.split(".")[0] == "partitioning" for p in pieces) and all(
        is_ours(p) for p in pieces[1:]
    )


def verify_regions(leaves: Sequence[ArrayLeaf], config: LaunchConfig, kernel: str) -> None:
    """Raise LaunchError with two threads, their slots and the element where a partition is not one."""
    for leaf in leaves:
        strategy = leaf.strategy
        if strategy is None or is_ours(strategy):
            continue
        shape = tuple(leaf.array.shape)
        threads = strategy_threads(strategy, config, len(shape))
        key = (strategy, shape, threads)
        if key in _verified:
            continue
        try:
            enumerate_launch(strategy, shape, threads)
        except PartitionRefused as refused:
            raise LaunchError(
                f"kernel {kernel!r}: Region {leaf.name!r} of shape {shape}: {refused}"
            ) from refused
        _verified.add(key)


