"""What the host settles before a launch so that the kernel need not check it: the choice of a code variant."""

from __future__ import annotations

import math
import threading
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from numba_offload.analysis.affine import Access, Facts, Key, symbols
from numba_offload.arguments import Arguments, ArrayLeaf
from numba_offload.device.types import RegionType, ViewType
from numba_offload.mapping.arrays import Array
from numba_offload.targets.base import LaunchConfig
from numba_offload.targets.layout import Slot
from numba_offload.targets.options import THREADS_FIT
from partitioning import PartitioningStrategy

MAX_VARIANTS = 6
"""A kernel whose launches keep settling other sets of facts falls back to the code that assumes none."""


class LaunchFacts:
    """The decidable accesses of one specialisation, and the variants that launches have asked for.

    ``leaves`` are the names of the arrays among its arguments, ``layout`` the slots of all of them.
    """

    def __init__(self, accesses: Sequence[Access], leaves: Collection[str], layout: Sequence[Slot]) -> None:
        self._accesses = accesses
        depended_on = symbols(index for access in accesses for index in access.indices)
        self._scalars = sorted(name for kind, name in depended_on if kind == "scalar")
        plain = plain_scalars(leaves, layout)
        self._positions = [plain.index(name) for name in self._scalars]
        self._known: dict[Any, frozenset[Key]] = {}
        self._variants: set[frozenset[Key]] = set()
        self._lock = threading.Lock()

    def variant(self, arguments: Arguments, config: LaunchConfig) -> frozenset[Key]:
        """The facts that hold for this launch, as the key of a code variant."""
        scalars = self.scalars(arguments)
        lengths = [_index_lengths(leaf) for leaf in arguments.arrays if leaf.strategy is not None]
        key = (scalars, config.threads, tuple([leaf.array.shape for leaf in arguments.arrays]), tuple(lengths))
        known = self._known.get(key)
        if known is None:
            known = self._decide(arguments, config, dict(zip(self._scalars, scalars, strict=True)))
            with self._lock:
                if known not in self._variants:
                    if len(self._variants) >= MAX_VARIANTS:
                        known = frozenset()
                    self._variants.add(known)
                if len(self._known) > 4096:
                    self._known.clear()
                self._known[key] = known
        return known

    def scalars(self, arguments: Arguments) -> tuple[int, ...]:
        """The values of a call's scalars on which facts depend."""
        if not self._scalars:
            return ()
        scalars = [v for v in arguments.values if not isinstance(v, ArrayLeaf)]
        return tuple(scalars[k] for k in self._positions)

    def _decide(self, arguments: Arguments, config: LaunchConfig, scalars: dict[str, int]) -> frozenset[Key]:
        shapes = {leaf.name: tuple(leaf.array.shape) for leaf in arguments.arrays}
        facts = Facts(shapes, scalars)
        holds: set[Key] = {a.key for a in self._accesses if a.in_range(facts)}
        for leaf in arguments.arrays:
            if leaf.strategy is None:
                continue
            if _threads_fit(leaf.strategy, leaf.array, config):
                holds.add((THREADS_FIT, leaf.name))
            if leaf.strategy.coordinates == "linear":
                fitting = [a for a, length in _index_lengths(leaf) if math.prod(config.threads) <= length]
                holds.update((THREADS_FIT, f"{leaf.name}.strategy.{a}") for a in fitting)
        return frozenset(holds)


def _index_lengths(leaf: ArrayLeaf) -> tuple[tuple[str, int], ...]:
    """The lengths of the index arrays of a Region's strategy."""
    strategy: Any = leaf.strategy
    return tuple((name, len(getattr(strategy, name))) for name in strategy.index_arrays)


def _threads_fit(strategy: PartitioningStrategy, array: Array, config: LaunchConfig) -> bool:
    shape = tuple(array.shape)
    if strategy.coordinates == "linear":
        x, y, z = config.threads
        return len(shape) == 1 and x * y * z <= shape[0]
    if strategy.coordinates == "grid":
        return all(t <= n for t, n in zip(config.threads[: len(shape)][::-1], shape, strict=True))
    return False


def plain_scalars(leaves: Collection[str], layout: Sequence[Slot]) -> list[str]:
    """The slots of scalars, in the order of the values that a call is taken apart into (complex numbers have two)."""
    return [s.name for s in layout if not any(s.name.startswith((f"{n}.", f"{n}[")) for n in leaves)]


def decidable_facts(accesses: Sequence[Access], leaves: Mapping[str, ViewType]) -> frozenset[Key]:
    """All that a launch may settle. Code that assumes all of it is the fastest."""
    found: set[Key] = {access.key for access in accesses}
    for name, ty in leaves.items():
        if not isinstance(ty, RegionType):
            continue
        if ty.coordinates == "grid" or (ty.coordinates == "linear" and ty.ndim == 1):
            found.add((THREADS_FIT, name))
        if ty.coordinates == "linear":
            found.update((THREADS_FIT, f"{name}.strategy.{array}") for array in ty.strategy.index_arrays)
    return frozenset(found)
