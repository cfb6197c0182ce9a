"""``python -m numba_offload explain`` and ``verify``: what a kernel's arguments are mapped as, and whether a partition is one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.console import Console

from numba_offload.arguments import ArrayLeaf
from numba_offload.bundle.signatures import example_arguments
from numba_offload.by_name import find_kernel, find_strategy
from numba_offload.errors import LaunchError, OffloadError
from numba_offload.launching import BLOCKS_BY_AXES, sized_from_regions, strategy_threads
from numba_offload.targets.base import LaunchConfig
from numba_offload.targets.registry import current_target
from numba_offload.verify import verify_partition
from partitioning import PartitioningStrategy

_SMALL: dict[int, list[tuple[int, ...]]] = {
    1: [*((n,) for n in range(41)), (100,), (1000,), (4099,)],
    2: [*itertools.product(range(9), repeat=2), (33, 65), (100, 3)],
    3: [*itertools.product(range(5), repeat=3), (9, 17, 5)],
}
"""Shapes that are checked where none is asked for, by axes: traps lie at ragged ends."""


def explain_command(where: str, signatures: Sequence[str], out: Console) -> int:
    """Print what ``kernel.explain`` says for each signature. Raises OffloadError."""
    kernel = find_kernel(where)
    for position, signature in enumerate(signatures):
        try:
            args = example_arguments(signature, kernel.py_func.__globals__)
            text = kernel.explain(*args)
        except TypeError as error:
            if isinstance(error, OffloadError):
                raise
            raise OffloadError(f"signature {signature!r}: {error}") from None
        head = [f"{kernel.__name__}({signature})"] if len(signatures) > 1 else []
        _show(out, "\n".join([*([""] if position else []), *head, text]))
    return 0


def verify_command(where: str, shapes: Sequence[str], threads: str | None, out: Console) -> int:
    """Print for each shape whether a strategy is a partition of it. Returns 1 if it is not, of any. Raises OffloadError."""
    strategy = find_strategy(where)
    if strategy.ndim > len(_SMALL):
        raise OffloadError(f"{where}: {strategy!r} partitions arrays of {strategy.ndim} axes; Regions have one to {len(_SMALL)}")
    given = None if threads is None else _extents(threads, "--threads")
    if not shapes:
        return _verify_small(strategy, given, out)
    status = 0
    for text in shapes:
        shape = _extents(text, "--shape")
        if len(shape) != strategy.ndim:
            raise OffloadError(f"--shape {text}: {strategy!r} partitions arrays of {strategy.ndim} axes, not {len(shape)}")
        try:
            _show(out, _checked(strategy, shape, given))
        except LaunchError as error:
            out.print(str(error), style="bold red", markup=False, highlight=False, soft_wrap=True)
            status = 1
    return status


def _verify_small(strategy: PartitioningStrategy, threads: tuple[int, ...] | None, out: Console) -> int:
    shapes = _SMALL[strategy.ndim]
    seen: list[tuple[int, ...]] = []
    for shape in shapes:
        try:
            _checked(strategy, shape, threads)
        except LaunchError as error:
            out.print(str(error), style="bold red", markup=False, highlight=False, soft_wrap=True)
            return 1
        seen.append(shape)
    _show(out, f"{strategy!r}, {len(seen)} shapes from {seen[0]} to {seen[-1]}: {_verdict(strategy)}. Others: --shape")
    return 0


def _checked(strategy: PartitioningStrategy, shape: tuple[int, ...], threads: tuple[int, ...] | None) -> str:
    """What is found out about a launch. Raises LaunchError where it is refused."""
    config = _sized(strategy, shape) if threads is None else _as_asked(strategy, shape, threads)
    if config is None:
        return f"{strategy!r} on shape {shape}: nothing to launch"
    verify_partition(strategy, shape, config)
    launch = strategy_threads(strategy, config, len(shape))
    return f"{strategy!r} on shape {shape} with {launch} threads: {_verdict(strategy, shape)}"


def _verdict(strategy: PartitioningStrategy, shape: tuple[int, ...] | None = None) -> str:
    covers = strategy.covers if shape is None else strategy.covers_shape(shape)
    return "every element has one owner" if covers else "no element has two owners"


def _sized(strategy: PartitioningStrategy, shape: tuple[int, ...]) -> LaunchConfig | None:
    """The launch that a kernel without a configuration would have here."""
    leaf = ArrayLeaf("array", np.broadcast_to(np.int8(0), shape), "A", strategy)
    try:
        strategy.check_shape(shape)
        return sized_from_regions([leaf], current_target().target, "verify")
    except LaunchError as error:
        raise LaunchError(str(error).removeprefix("kernel 'verify': Region 'array': ")) from error.__cause__


def _as_asked(strategy: PartitioningStrategy, shape: tuple[int, ...], threads: tuple[int, ...]) -> LaunchConfig:
    if strategy.coordinates == "block":
        if len(threads) != 2:
            raise OffloadError(f"--threads: {strategy!r} is over blocks; write BLOCKSxTHREADS, such as 16x256")
        blocks, block = threads
        needed: Any = strategy.blocks(shape)
        given: Any = blocks
        config = LaunchConfig((blocks, 1, 1), (block, 1, 1), (blocks * block, 1, 1))
        what = "blocks"
    else:
        grid = strategy.coordinates == "grid"
        if grid and len(threads) != len(shape):
            raise OffloadError(f"--threads: {strategy!r} is over a grid; write an extent for each axis of the array")
        needed = strategy.threads(shape)
        given = threads if grid else math.prod(threads)
        x, y, z = (*threads[::-1], 1, 1)[:3] if grid else (math.prod(threads), 1, 1)
        block_of = BLOCKS_BY_AXES[len(shape) if grid else 1]
        gx, gy, gz = (-(-t // b) for t, b in zip((x, y, z), block_of, strict=True))
        config = LaunchConfig((gx, gy, gz), block_of, (x, y, z))
        what = "threads"
    short = any(g < n for g, n in zip(given, needed, strict=True)) if isinstance(given, tuple) else given < needed
    if short and math.prod(shape):
        raise LaunchError(f"{strategy!r} on shape {shape} needs {needed} {what}, but --threads gives {given}")
    return config


def _extents(text: str, option: str) -> tuple[int, ...]:
    try:
        extents = tuple(int(part) for part in text.lower().replace(",", "x").split("x"))
    except ValueError:
        extents = ()
    if not extents or min(extents) < (0 if option == "--shape" else 1):
        raise OffloadError(f"{option} {text}: expected extents with x between them, such as 1000x1000")
    return extents


def _show(out: Console, text: str) -> None:
    out.print(text, markup=False, highlight=False, soft_wrap=True)
