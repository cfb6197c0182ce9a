"""The shape of a launch: asked for by the caller, or sized from the Regions."""

from __future__ import annotations

import inspect
import math
import operator
import os
import traceback
from collections.abc import Sequence
from typing import Any

from numba_offload.arguments import ArrayLeaf
from numba_offload.errors import LaunchError
from numba_offload.targets.base import Extent, LaunchConfig, Target
from partitioning import LaunchRefused, PartitioningStrategy

_AXES = "xyz"
_PARTITIONING = os.path.dirname(inspect.getfile(PartitioningStrategy)) + os.sep
BLOCKS_BY_AXES = {1: (256, 1, 1), 2: (32, 8, 1), 3: (32, 4, 2)}


def as_extent(value: Any, what: str) -> Extent:
    """Blocks or threads as three positive ints, x first. Raises LaunchError (a ValueError) naming the fault."""
    parts = tuple(value) if isinstance(value, tuple | list) else (value,)
    if not 1 <= len(parts) <= 3:
        raise LaunchError(f"{what} = {value!r}: give one to three extents (x, y, z)")
    out = []
    for part in parts:
        try:
            if isinstance(part, bool):
                raise TypeError
            number = operator.index(part)
        except TypeError:
            raise LaunchError(f"{what} = {value!r}: extents are integers, not {type(part).__name__}") from None
        if number <= 0:
            raise LaunchError(f"{what} = {value!r}: extents are positive, at least 1")
        out.append(number)
    x, y, z = (*out, 1, 1)[:3]
    return x, y, z


def explicit(grid: Extent, block: Extent, target: Target) -> LaunchConfig:
    """A launch as the caller asked for it, checked against the device's limits."""
    limits = target.limits
    per_block = math.prod(block)
    if per_block > limits.threads_per_block:
        raise LaunchError(
            f"threads per block = {block} is {per_block} threads; target {target.name} allows {limits.threads_per_block}"
        )
    for axis, name in enumerate(_AXES):
        if block[axis] > limits.block[axis]:
            raise LaunchError(
                f"threads per block: {block[axis]} along {name}; target {target.name} allows {limits.block[axis]}"
            )
        if grid[axis] > limits.grid[axis]:
            raise LaunchError(f"blocks: {grid[axis]} along {name}; target {target.name} allows {limits.grid[axis]}")
    x, y, z = (g * b for g, b in zip(grid, block, strict=True))
    if x * y * z > limits.total_threads:
        raise LaunchError(
            f"the launch has {x * y * z} threads; target {target.name} allows {limits.total_threads} in one launch"
        )
    return LaunchConfig(grid, block, (x, y, z))


def sized_from_regions(leaves: Sequence[ArrayLeaf], target: Target, kernel: str) -> LaunchConfig | None:
    """A launch of exactly the threads that the Regions ask for; None if they ask for none."""
    cores = target.ordered_cores()
    linear, blocks = 0, 0
    extents = [0, 0, 0]
    axes = 1
    seen = False
    for leaf in leaves:
        if leaf.strategy is None:
            continue
        seen = True
        shape = tuple(leaf.array.shape)
        wanted = _wanted(leaf.strategy, shape, cores, leaf.name, kernel)
        if leaf.strategy.coordinates == "grid":
            axes = max(axes, len(shape))
            for axis, extent in enumerate(reversed(wanted)):
                extents[axis] = max(extents[axis], extent)
        elif leaf.strategy.coordinates == "block":
            blocks = max(blocks, leaf.strategy.blocks(shape))
            linear = max(linear, wanted)
        else:
            linear = max(linear, wanted)
    if not seen:
        raise LaunchError(
            f"kernel {kernel!r} was called without a Region, so there is nothing to size the launch from; pass a Region, or "
            f"give a configuration: {kernel}[blocks, threads](...)"
        )
    if axes > 1:
        extents = [max(e, 1) if any(extents) else 0 for e in extents]
        whole = math.prod(extents)
        if linear > whole:
            # Linear strategies count all threads: make the slowest axis longer.
            plane = math.prod(extents[: axes - 1]) or 1
            extents[axes - 1] = -(-linear // plane)
    else:
        extents = [linear, 1, 1]
    block = BLOCKS_BY_AXES[axes]
    by_block = any(leaf.strategy is not None and leaf.strategy.coordinates == "block" for leaf in leaves)
    if by_block:
        if cores:
            # Lanes that run one after the other only need to be told apart: blocks of one leave nothing idle.
            block = (1, 1, 1)
        if axes > 1:
            raise LaunchError(
                f"kernel {kernel!r} mixes a strategy over blocks with one over a {axes}-D grid; give a configuration: "
                f"{kernel}[blocks, threads](...)"
            )
        count = max(-(-linear // block[0]), blocks)
        extents = [count * block[0], 1, 1]
    if math.prod(extents) == 0:
        return None
    threads: Extent = (extents[0], extents[1], extents[2])
    gx, gy, gz = (-(-t // b) for t, b in zip(threads, block, strict=True))
    return LaunchConfig((gx, gy, gz), block, threads)


def _wanted(strategy: PartitioningStrategy, shape: tuple[int, ...], cores: int, name: str, kernel: str) -> Any:
    """The threads that a strategy asks for, in its coordinates."""
    try:
        wanted = strategy.ordered_threads(shape, cores) if cores else strategy.preferred_threads(shape)
        if strategy.coordinates == "grid":
            return tuple(operator.index(extent) for extent in wanted)
        return operator.index(wanted)
    except LaunchRefused as refused:
        raise LaunchError(f"kernel {kernel!r}: Region {name!r}: {refused}") from None
    except Exception as error:
        grid = strategy.coordinates == "grid"
        form = f"a tuple of {len(shape)} integers" if grid else "an integer"
        raise failed_method(
            strategy, name, kernel, error, f"; threads() must return {form} for its {strategy.coordinates!r} coordinates"
        ) from error


def failed_method(
    strategy: PartitioningStrategy, name: str, kernel: str, error: Exception, more: str = ""
) -> LaunchError:
    """A strategy's method that raised: which, and at which line."""
    frames = traceback.extract_tb(error.__traceback__)
    folder = os.path.dirname(__file__) + os.sep
    theirs = [f for f in frames if not f.filename.startswith((folder, _PARTITIONING))]
    where = f" in {theirs[-1].name}(), {theirs[-1].filename}:{theirs[-1].lineno} ({theirs[-1].line})" if theirs else ""
    return LaunchError(
        f"kernel {kernel!r}: Region {name!r}: {type(strategy).__name__} failed{where}: {type(error).__name__}: {error}{more}. "
        "Fix: a strategy's methods compute integers from integers, for every thread, and raise nothing"
    )


def check_regions(leaves: Sequence[ArrayLeaf], config: LaunchConfig, kernel: str) -> None:
    """Every Region gets the threads it needs. Raises LaunchError naming argument, need and remedy."""
    for leaf in leaves:
        if leaf.strategy is not None:
            _check_region(leaf, leaf.strategy, config, kernel)


def _check_region(leaf: ArrayLeaf, strategy: PartitioningStrategy, config: LaunchConfig, kernel: str) -> None:
    shape = tuple(leaf.array.shape)
    needed = strategy.threads(shape)
    given = math.prod(config.threads)
    if strategy.coordinates == "grid":
        offered = config.threads[: len(shape)][::-1]
        short = any(o < n for o, n in zip(offered, needed, strict=True))
        if short and math.prod(shape):
            raise LaunchError(
                f"kernel {kernel!r}: Region {leaf.name!r} of shape {shape} under {type(strategy).__name__} needs "
                f"{needed} threads along its axes, but the launch has {offered}; launch at least that many, or call "
                f"{kernel}(...) without a configuration"
            )
        surplus = config.threads[len(shape) :]
        if math.prod(surplus) > 1:
            # Threads that differ only along an axis that the strategy does not look at would own the same elements.
            raise LaunchError(
                f"kernel {kernel!r}: Region {leaf.name!r} of {len(shape)} axes under {type(strategy).__name__} gives each "
                f"element to one thread of a {len(shape)}-D launch, but the launch is {config.threads}: {math.prod(surplus)} "
                f"threads would own each element; launch one thread along {_AXES[len(shape):]}, or use a strategy "
                "over linear threads (Rows, Columns)"
            )
    elif given < needed:
        raise LaunchError(
            f"kernel {kernel!r}: Region {leaf.name!r} of shape {shape} under {type(strategy).__name__} needs {needed} "
            f"threads, but the launch has {given}; launch at least that many, or call {kernel}(...) without a configuration"
        )
    if strategy.coordinates == "block":
        have, need = math.prod(config.grid), strategy.blocks(shape)
        if have < need:
            raise LaunchError(
                f"kernel {kernel!r}: Region {leaf.name!r} under {type(strategy).__name__} needs {need} blocks, but the launch "
                f"has {have}"
            )
    try:
        # Again: the array may have been given another shape since its Region was made.
        strategy.check_shape(shape)
        strategy.check_launch(config.grid, config.block, shape)
    except LaunchRefused as refused:
        raise LaunchError(f"kernel {kernel!r}: Region {leaf.name!r}: {refused}") from None


def strategy_threads(strategy: PartitioningStrategy, config: LaunchConfig, ndim: int) -> Any:
    """``T`` as the strategy sees it in this launch."""
    if strategy.coordinates == "linear":
        return math.prod(config.threads)
    if strategy.coordinates == "block":
        return math.prod(config.grid), math.prod(config.block)
    return config.threads[:ndim][::-1]
