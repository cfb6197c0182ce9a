"""What a launch shares with every other of the same kernel, shapes, partitions and configuration: decided once."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

from numba_offload.arguments import Arguments, ArrayLeaf
from numba_offload.errors import LaunchError
from numba_offload.known_strategies import known_strategy
from numba_offload.launching import check_regions, explicit, sized_from_regions
from numba_offload.specialisation import Specialisation
from numba_offload.targets.base import CompiledKernel, LaunchConfig
from numba_offload.targets.registry import TargetState
from numba_offload.verify import is_ours, verify_regions
from partitioning import PartitioningStrategy

_MOST_PLANS = 4096


@dataclass(frozen=True)
class KernelPlan:
    """A launch decided once, for any stream. No configuration: there is nothing to launch.

    ``strategies`` tells whether an id still means the strategy it meant. A plan does not keep one alive: its index arrays
    may be large, and the next launch may come with others. ``recheck``: a strategy is not one of the package's, so its
    methods may refer to values that have changed.
    """

    config: LaunchConfig | None
    code: CompiledKernel | None
    maps: tuple[str, ...]
    strategies: tuple[weakref.ref[PartitioningStrategy], ...]
    recheck: bool

    def is_for(self, leaves: list[ArrayLeaf]) -> bool:
        """Whether these are the strategies that the plan was made for."""
        own = iter(self.strategies)
        return all(next(own)() is leaf.strategy for leaf in leaves if leaf.strategy is not None)


def kernel_plan(
    kernel: str, asked: Any, arguments: Arguments, specialisation: Specialisation, state: TargetState
) -> KernelPlan:
    """The plan of a launch, found or made. ``asked``: blocks, threads of a block and stream, or None.

    Raises LaunchError where the configuration does not fit the Regions or the device, or a user's strategy is no partition.
    """
    leaves = arguments.arrays
    key = (
        None if asked is None else asked[:2],
        id(state),
        tuple([leaf.array.shape for leaf in leaves]),
        tuple([id(leaf.strategy) for leaf in leaves]),
        specialisation.facts.scalars(arguments),
    )
    plan: KernelPlan | None = specialisation.plans.get(key)
    if plan is None or not plan.is_for(leaves):
        plan = _make(kernel, asked, arguments, specialisation, state)
        if len(specialisation.plans) >= _MOST_PLANS:
            specialisation.plans.clear()
        specialisation.plans[key] = plan
    elif plan.recheck and plan.config is not None:
        verify_regions(leaves, plan.config, kernel, specialisation.checks)
    return plan


def _make(
    kernel: str, asked: Any, arguments: Arguments, specialisation: Specialisation, state: TargetState
) -> KernelPlan:
    leaves = arguments.arrays
    _check_shared(kernel, specialisation, leaves)
    maps = tuple(leaf_map(specialisation, leaf) for leaf in leaves)
    config = _shape(kernel, asked, leaves, state)
    if _nothing_to_do(leaves, maps):
        config = None
    code = None
    if config is not None:
        check_regions(leaves, config, kernel)
        verify_regions(leaves, config, kernel, specialisation.checks)
        code = specialisation.compiled(state.target, specialisation.facts.variant(arguments, config))
    partitions = [leaf.strategy for leaf in leaves if leaf.strategy is not None]
    strategies = tuple(weakref.ref(strategy) for strategy in partitions)
    recheck = not all(is_ours(known_strategy(strategy).type) for strategy in partitions)
    return KernelPlan(config, code, maps, strategies, recheck)


def _shape(kernel: str, asked: Any, leaves: list[ArrayLeaf], state: TargetState) -> LaunchConfig | None:
    if asked is None:
        return sized_from_regions(leaves, state.target, kernel)
    return explicit(asked[0], asked[1], state.target)


def leaf_map(specialisation: Specialisation, leaf: ArrayLeaf) -> str:
    """How a launch maps an array: the kernel's intent, and whether the Region's partition covers the array."""
    intent = specialisation.record.leaves[leaf.name]
    if intent.map != "from":
        return intent.map
    # Every owned element is assigned; whether the owned elements are all of them is the strategy's to say.
    strategy = leaf.strategy
    covered = strategy is not None and strategy.covers_shape(tuple(leaf.array.shape))
    return "from" if covered else "tofrom"


def _nothing_to_do(leaves: list[ArrayLeaf], maps: tuple[str, ...]) -> bool:
    """Whether the Regions are empty, and whatever else is written is too."""
    owned = [leaf for leaf in leaves if leaf.strategy is not None]
    written = [leaf for leaf, how in zip(leaves, maps, strict=True) if how in ("from", "tofrom")]
    return bool(owned) and all(leaf.array.size == 0 for leaf in owned + written)


def _check_shared(kernel: str, specialisation: Specialisation, leaves: list[ArrayLeaf]) -> None:
    """Regions that one owned index serves must be partitioned alike: shape and run-time parameters too."""
    if not specialisation.record.shared_indices:
        return
    by_name = {leaf.name: leaf for leaf in leaves}
    for shared in specialisation.record.shared_indices:
        group = [by_name[name] for name in sorted(shared.source | shared.target)]
        first = group[0]
        for other in group[1:]:
            if first.array.shape != other.array.shape:
                raise LaunchError(
                    f"kernel {kernel!r}, line {shared.line}: an index of one Region serves another, but {first.name!r} has "
                    f"shape {tuple(first.array.shape)} and {other.name!r} has {tuple(other.array.shape)}; give them equal "
                    "shapes, or loop over each one's own .indices()"
                )
            if first.strategy != other.strategy:
                raise LaunchError(
                    f"kernel {kernel!r}, line {shared.line}: an index of one Region serves another, but {first.name!r} is "
                    f"partitioned by {first.strategy!r} and {other.name!r} by {other.strategy!r}; partition them alike"
                )
