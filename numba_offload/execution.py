"""A launch: plan, aliasing, mapping, the target's launch, and what became of it. Needs a kernel's record, not its source."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from numba_offload.arguments import Arguments, ArrayLeaf, slot_values
from numba_offload.diagnostics import events, launch_log
from numba_offload.diagnostics.events import LaunchDetail, record_launch
from numba_offload.errors import TargetError
from numba_offload.failures import failure
from numba_offload.handle_targets import target_of_handles
from numba_offload.launch_facts import plain_scalars
from numba_offload.launch_plan import kernel_plan
from numba_offload.mapping.alias import check_uses
from numba_offload.mapping.arrays import DeviceArray, check_writable
from numba_offload.mapping.borrow import BORROWS, Held, check_borrows, held_by
from numba_offload.mapping.launch import ArrayUse, LaunchMapping, Planned
from numba_offload.mapping.residency import Residency
from numba_offload.specialisation import Specialisation
from numba_offload.targets.base import CompiledKernel, LaunchConfig, Target
from numba_offload.targets.registry import TargetState, current_target, target_of_device

_LONG = 5e-3
"""Seconds from which on a launch is a long one."""


@dataclass(frozen=True, slots=True)
class Launched:
    """What a target was given."""

    kernel: str
    state: TargetState
    code: CompiledKernel
    flat: list[Any]
    config: LaunchConfig
    work: int
    held: Held
    """The preloads whose handles it was given, and which of them it writes."""
    moved: Moved | None = None
    """All its arrays were moved over, as they will be by another launch with them."""


@dataclass(frozen=True, slots=True)
class Moved:
    """The arrays of a launch that all were moved over: their names, maps and addresses, and how they were placed.

    ``pointers``: the positions of their addresses among the flat arguments.
    """

    arrays: tuple[tuple[str, str, int | None], ...]
    planned: Planned
    pointers: tuple[int, ...]
    nbytes: int
    """Copied over."""
    seconds: list[float]
    """That the last launch took, from its start to the end of the kernel."""


class Residencies(Protocol):
    """What a host function keeps on devices between its launches."""

    def for_launch(self, state: TargetState, uses: Sequence[ArrayUse]) -> Residency | None:
        """The residents on the device of a launch that uses these arrays; None where it shares the host's memory."""

    def ended(self, mapping: LaunchMapping, again: Callable[[], Any]) -> None:
        """A launch has ended without error. ``again`` repeats it."""

    def remember(self, kernel: Any, args: tuple[Any, ...], relaunch: Any) -> None:
        """The launch that has ended is one that can be repeated."""


def execute(
    asked: Any, arguments: Arguments, specialisation: Specialisation, residencies: Residencies | None = None
) -> Launched | None:
    """Run a kernel. ``asked``: blocks, threads of a block and stream, or None to size the launch from its Regions.

    ``residencies``: of the host function whose launch it is, if that function's transfers are optimised.
    Returns None where there was nothing to do. Raises LaunchError, AliasError, BorrowError or TargetError where the launch
    is refused, and what a thread raised where one failed.
    """
    name = specialisation.record.name
    state = choose_target(name, arguments)
    leaves = arguments.arrays
    if residencies is None and not state.device.memory.unified:  # else they may be there
        state.device.memory.expect(sum(leaf.array.nbytes for leaf in leaves if leaf.address is not None and leaf.handle is None))
    plan = kernel_plan(name, asked, arguments, specialisation, state)
    uses = [
        ArrayUse(leaf.name, leaf.array, how, leaf.address, *(() if leaf.handle is None else leaf.handle.hold))
        for leaf, how in zip(leaves, plan.maps, strict=True)
    ]
    check_borrows(name, uses)
    for use in uses:
        if use.map in ("from", "tofrom") and use.borrow is None and not BORROWS.host_writable(use.array):
            check_writable(use.array, use.name)
    check_uses(uses, name)
    config = plan.config
    if config is None or plan.code is None:
        return None
    if asked is not None and asked[2] is not None:
        config = replace(config, stream=asked[2])
    if launch_log.mask:
        plain = [value for value in arguments.values if not isinstance(value, ArrayLeaf)]
        names = plain_scalars(specialisation.record.leaves, specialisation.record.layout)
        launch_log.log_arguments(name, state.target.name, uses, zip(names, plain, strict=True))
    residency = None if residencies is None else residencies.for_launch(state, uses)
    mapping = LaunchMapping(state.device, uses, config.stream, name, residency, plan.code.image.may_fail)
    ok = False
    try:
        started = time.perf_counter() if events.listeners else 0.0
        target = state.target
        flat, keep, work = _flatten(arguments, mapping, target)
        foreign = [leaf.array for leaf in leaves if isinstance(leaf.array, DeviceArray)]
        if foreign:
            target.acquire(foreign, config.stream)
        # Host arrays are to be complete when the call returns; arrays that stay on the device can follow.
        wait = len(foreign) < len(leaves) or not foreign
        report = target.launch(plan.code, flat, config, work, wait)
        if foreign and not wait:
            target.release(foreign, config.stream)
        del keep
        if started:
            _record(name, target, plan.code, config, started, wait)
        if report is not None:
            raise failure(name, report, plan.code.image.sites)
        ok = True
    finally:
        mapping.finish(ok)
        if launch_log.mask:
            launch_log.log_table(state.device, name, ok)
    moved = None
    if mapping.planned is not None:
        pointers = tuple(k for k, slot in enumerate(specialisation.record.layout) if slot.data)
        nbytes = sum(buffer.nbytes for buffer in mapping.planned.plan.buffers if buffer.upload)
        moved = Moved(tuple((use.name, use.map, use.address) for use in uses), mapping.planned, pointers, nbytes, [_LONG])
    launched = Launched(name, state, plan.code, flat, config, work, held_by(uses), moved)
    if residencies is not None:
        # Index arrays of strategies live as long as the arguments.
        residencies.ended(mapping, partial(run_again, launched, flat, arguments))
    return launched


def execute_again(launched: Launched, flat: list[Any]) -> None:
    """Repeat a launch with other scalars. Raises what a thread raised.

    Launches on handles, of code that cannot fail, are not waited for: their results are fetched by the release, which waits.
    """
    held = launched.held
    if held:
        BORROWS.begin(held, launched.kernel)
    ok = False
    try:
        failed = launch_again(launched, flat, wait=not held)
        if failed is not None:
            raise failed
        ok = True
    finally:
        if held:
            BORROWS.end(held, ok)


def move_again(launched: Launched, moved: Moved, arrays: Sequence[Any], flat: list[Any]) -> None:
    """Repeat a launch with the arrays that it moved over, unchanged, and other scalars. Raises as ``execute`` does."""
    state, name = launched.state, launched.kernel
    state.device.memory.expect(moved.nbytes)
    uses = [ArrayUse(name, array, how, where) for (name, how, where), array in zip(moved.arrays, arrays, strict=True)]
    started = time.perf_counter()
    mapping = LaunchMapping(state.device, uses, launched.config.stream, name, planned=moved.planned)
    ok = False
    try:
        for position, view in zip(moved.pointers, mapping.views, strict=True):
            flat[position] = view.pointer
        # Others have to do without what a memory makes copies with, so it is not taken for the time of a long kernel.
        failed = launch_again(launched, flat, wait=True, behind=mapping.ask if moved.seconds[0] < _LONG else None)
        moved.seconds[0] = time.perf_counter() - started
        if failed is not None:
            raise failed
        ok = True
    finally:
        mapping.finish(ok)


def launch_again(
    launched: Launched, flat: list[Any], wait: bool = False, behind: Callable[[], None] | None = None
) -> BaseException | None:
    """Repeat what a launch gave its target, with other scalars; returns what it failed with.

    Code that can fail is waited for in any case, as is a launch on a stream of the caller's.
    """
    started = time.perf_counter() if events.listeners else 0.0
    target, code = launched.state.target, launched.code
    wait = wait or events.timed or code.image.may_fail or launched.config.stream is not None
    report = target.launch(code, flat, launched.config, launched.work, wait, behind)
    if started:
        _record(launched.kernel, target, code, launched.config, started, wait)
    return None if report is None else failure(launched.kernel, report, code.image.sites)


def run_again(launched: Launched, flat: list[Any], keep: Any) -> None:
    """Repeat a launch that has succeeded before, untold. ``keep``: what its arguments refer to."""
    launched.state.target.launch(launched.code, flat, launched.config, launched.work)


def _record(
    kernel: str, target: Target, code: CompiledKernel, config: LaunchConfig, started: float, waited: bool
) -> None:
    seconds = time.perf_counter() - started
    settled = len(code.image.assumed)
    detail = LaunchDetail(config.grid, config.block, config.threads, target.arch.partition(",")[0], settled, waited)
    record_launch(kernel, target.name, seconds, started, config.stream, detail)


def choose_target(kernel: str, arguments: Arguments) -> TargetState:
    """Where a kernel with these arguments runs. Raises TargetError where its arrays live on devices of another target."""
    homes: dict[str, str] = {}
    preloaded = [leaf for leaf in arguments.arrays if leaf.handle is not None]
    for leaf in arguments.arrays:
        if isinstance(leaf.array, DeviceArray):
            homes.setdefault(target_of_device(leaf.array.device_type), leaf.name)
    if len(homes) > 1:
        places = " and ".join(f"{name!r} on a {home} device" for home, name in homes.items())
        raise TargetError(
            f"kernel {kernel!r}: its arguments live on devices of several targets: {places}, and a launch runs "
            "on one; copy arrays to the host, or to the device of the others"
        )
    lives_on = next(iter(homes), None)
    if preloaded:
        return target_of_handles(kernel, preloaded, homes)
    state = current_target(lives_on)
    if lives_on is not None and state.target.name != lives_on:
        raise TargetError(
            f"kernel {kernel!r}: argument {homes[lives_on]!r} lives on a {lives_on} device, but the target is "
            f"{state.target.name!r}; use use_target({lives_on!r}), or copy the array to the host"
        )
    return state


def _flatten(arguments: Arguments, mapping: LaunchMapping, target: Target) -> tuple[list[Any], list[Any], int]:
    flat: list[Any] = []
    keep: list[Any] = []
    work = 0
    views = iter(mapping.views)
    for value in arguments.values:
        if isinstance(value, ArrayLeaf):
            flat += slot_values(value, next(views), keep, target.resident)
            if value.strategy is not None:
                work = max(work, value.array.size)
        else:
            flat.append(value)
    return flat, keep, work
