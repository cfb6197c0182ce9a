"""What the benchmarks move between host and device, and how long their loops take, in three ways of writing them.

* managed: each launch by itself (interface A), as in the paper's naive version
* optimised: the same launches in a host function under ``@optimize_transfers``
* staged: the arrays preloaded by hand (interface C), the best that a user can do

``python -m benchmarks.rajaperf.transfers`` prints them side by side.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from numba_offload import Region, optimize_transfers, preload, preload_mut, profile, synchronize, use_target

from .benchmark import Benchmark
from .checksum import TOLERANCE, relative_difference
from .registry import select

Calls = list[tuple[Callable[..., Any], tuple[Any, ...]]]

PAPER = {"over": (53, 423e6), "back": (9, 69e6)}
"""Copies and bytes of the paper's Rust version: these benchmarks once through, LTIMES with 64 directions, and a DAXPY."""


def managed(calls: Calls, reps: int, times: list[float]) -> None:
    """Each launch moves what it uses."""
    for kernel, arguments in calls:
        kernel(*arguments)
    times.append(time.perf_counter())
    for _ in range(reps - 1):
        for kernel, arguments in calls:
            kernel(*arguments)
    synchronize()
    times.append(time.perf_counter())


@optimize_transfers
def optimised(calls: Calls, reps: int, times: list[float]) -> None:
    """The same, with one more line."""
    for kernel, arguments in calls:
        kernel(*arguments)
    synchronize()
    times.append(time.perf_counter())
    for _ in range(reps - 1):
        for kernel, arguments in calls:
            kernel(*arguments)
    synchronize()
    times.append(time.perf_counter())


def staged(calls: Calls, reps: int, times: list[float]) -> None:
    """Preloaded by hand: each array once, for writing where a kernel writes it."""
    with ExitStack() as stack:
        handles: dict[int, Any] = {}
        for _, arguments in calls:
            for argument in arguments:
                if isinstance(argument, Region) and id(argument.array) not in handles:
                    handles[id(argument.array)] = stack.enter_context(preload_mut(argument.array))
        owners: dict[int, Any] = {}
        for _, arguments in calls:
            for argument in arguments:
                if isinstance(argument, np.ndarray) and id(argument) not in handles:
                    # Views of one array are preloaded together, and handed over as slices of its handle.
                    owner = argument if argument.base is None else argument.base
                    if id(owner) not in owners:
                        owners[id(owner)] = stack.enter_context(preload(owner))
                    handles[id(argument)] = _part(owners[id(owner)], owner, argument)

        def on_handles(argument: Any) -> Any:
            if isinstance(argument, Region):
                return Region(handles[id(argument.array)], argument.strategy)
            return handles[id(argument)] if isinstance(argument, np.ndarray) else argument

        ready = [(kernel, tuple(map(on_handles, arguments))) for kernel, arguments in calls]
        for kernel, arguments in ready:
            kernel(*arguments)
        synchronize()
        times.append(time.perf_counter())
        for _ in range(reps - 1):
            for kernel, arguments in ready:
                kernel(*arguments)
        synchronize()
        times.append(time.perf_counter())


def _part(handle: Any, owner: np.ndarray, view: np.ndarray) -> Any:
    """The part of an array's handle that is one of its contiguous views."""
    if view is owner:
        return handle
    start = (view.ctypes.data - owner.ctypes.data) // view.itemsize
    return handle[start : start + view.size]


WAYS: dict[str, Callable[[Calls, int, list[float]], None]] = {"managed": managed, "optimised": optimised, "staged": staged}


@dataclass(frozen=True)
class Traffic:
    """What one benchmark moved in one way. Seconds: of all, and of the repetitions after the first."""

    over: tuple[int, int]
    back: tuple[int, int]
    seconds: float
    loop: float
    right: bool


def measure(benchmark: Benchmark, way: str, reps: int, rounds: int = 1, size: int | None = None) -> Traffic:
    """Run a benchmark; the best loop of ``rounds``. Counts are of one round with a profile, which takes part in no time."""
    data = benchmark.set_up() if size is None else benchmark.set_up(size)
    calls = [(launch.kernel, launch.arguments) for launch in benchmark.launches(data)]
    run = WAYS[way]
    with profile() as counted:
        run(calls, reps, [])
    right = size is not None or _is_right(benchmark, data, reps)
    best_total, best_loop = float("inf"), float("inf")
    for _ in range(rounds):
        times: list[float] = []
        start = time.perf_counter()
        run(calls, reps, times)
        best_total = min(best_total, time.perf_counter() - start)
        best_loop = min(best_loop, times[1] - times[0])
    over, back = (counted.h2d_count, counted.h2d_bytes), (counted.d2h_count, counted.d2h_bytes)
    return Traffic(over, back, best_total, best_loop, right)


def _is_right(benchmark: Benchmark, data: Any, reps: int) -> bool:
    return bool(relative_difference(benchmark.result(data), benchmark.expected(reps)) <= TOLERANCE)


def unavoidable(benchmark: Benchmark, size: int | None = None) -> tuple[int, int]:
    """Bytes that a benchmark's launches use, and that they write; what several arrays share counts once."""
    data = benchmark.set_up() if size is None else benchmark.set_up(size)
    used: list[tuple[int, int]] = []
    written: list[tuple[int, int]] = []
    for launch in benchmark.launches(data):
        for argument in launch.arguments:
            array = argument.array if isinstance(argument, Region) else argument
            if isinstance(array, np.ndarray):
                used.append((array.ctypes.data, array.ctypes.data + array.nbytes))
                if isinstance(argument, Region):
                    written.append(used[-1])
    return _covered(used), _covered(written)


def _covered(ranges: list[tuple[int, int]]) -> int:
    total, reach = 0, 0
    for begin, end in sorted(ranges):
        total += max(0, end - max(begin, reach))
        reach = max(reach, end)
    return total


def _megabytes(traffic: tuple[int, int]) -> str:
    return f"{traffic[0]} / {traffic[1] / 1e6:.1f}"


def traffic_table(chosen: Sequence[Benchmark], reps_factor: float, rounds: int, size: int | None) -> tuple[Table, bool]:
    """All ways side by side, and whether optimised moves no more than staged and takes no longer than 1.05 of it."""
    table = Table(title="Copies / MB over and back, milliseconds of the loop after the first repetition")
    for column in ("benchmark", "reps"):
        table.add_column(column, no_wrap=True)
    for way in WAYS:
        for column in (f"{way} over", "back", "loop"):
            table.add_column(column, justify="right", no_wrap=True)
    table.add_column("optimised / staged", justify="right")
    table.add_column("")
    holds = True
    for benchmark in chosen:
        reps = max(2, round(benchmark.reps * reps_factor))
        found = {way: measure(benchmark, way, reps, 1 if way == "managed" else rounds, size) for way in WAYS}
        o, s = found["optimised"], found["staged"]
        ratio = o.loop / s.loop
        less = o.over[0] <= s.over[0] and o.over[1] <= s.over[1] and o.back[0] <= s.back[0] and o.back[1] <= s.back[1]
        right = all(t.right for t in found.values())
        holds = holds and less and right
        cells = [text for t in found.values() for text in (_megabytes(t.over), _megabytes(t.back), f"{t.loop * 1e3:.2f}")]
        verdict = ("no more than staged" if less else "[bold red]more than staged[/]") + ("" if right else " [bold red]WRONG[/]")
        table.add_row(benchmark.name, str(reps), *cells, f"{ratio:.3f}", verdict)
    return table, holds


def once_table(chosen: Sequence[Benchmark], size: int | None) -> tuple[Table, bool]:
    """One repetition of each benchmark, optimised, next to what cannot be avoided."""
    table = Table(title="Once through, optimised: copies / MB, and MB of the arrays that are used and written")
    for column in ("benchmark", "over", "back", "used", "written"):
        table.add_column(column, justify="right", no_wrap=True)
    totals = np.zeros(6)
    holds = True
    for benchmark in chosen:
        t = measure(benchmark, "optimised", 1, 0, size)
        used, written = unavoidable(benchmark, size)
        holds = holds and t.over[1] <= used and t.back[1] <= written
        totals += (*t.over, *t.back, used, written)
        table.add_row(benchmark.name, _megabytes(t.over), _megabytes(t.back), f"{used / 1e6:.1f}", f"{written / 1e6:.1f}")
    over, back = (int(totals[0]), int(totals[1])), (int(totals[2]), int(totals[3]))
    table.add_section()
    table.add_row("all", _megabytes(over), _megabytes(back), f"{totals[4] / 1e6:.1f}", f"{totals[5] / 1e6:.1f}")
    table.add_row("the paper", *(f"{count} / {nbytes / 1e6:.1f}" for count, nbytes in PAPER.values()), "", "")
    return table, holds


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables; the exit status is 1 where optimised moves more than staged, or more than is used."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.rajaperf.transfers", description=__doc__)
    made.add_argument("--target", default="cpu", help="cpu (NUMBA_OFFLOAD_CPU_MEMORY=discrete), cuda or amdgpu")
    made.add_argument("--only", metavar="NAME", default="", help="only benchmarks whose name begins so")
    made.add_argument("--reps-factor", type=float, default=1.0, help="multiply the repetitions (default: 1)")
    made.add_argument("--rounds", type=int, default=5, help="loops timed, of which the best counts (default: 5)")
    made.add_argument("--size", type=int, default=None, help="elements (default: the suite's size; the checksum is for that)")
    options = made.parse_args(arguments)
    console = Console(width=200)
    with use_target(options.target):
        table, holds = traffic_table(select(options.only), options.reps_factor, options.rounds, options.size)
        console.print(table)
        once, small = once_table(select(options.only, (64,)), options.size)
        console.print(once)
    return 0 if holds and small else 1


if __name__ == "__main__":
    raise SystemExit(main())
