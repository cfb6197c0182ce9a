"""Runs the demo's cases and mistakes on a target, and prints what came out."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from numba_offload import available_targets, profile, use_target
from numba_offload.demo.cases import Case, cases
from numba_offload.demo.mistakes import Mistake, mistakes
from partitioning import PartitioningStrategy

TOLERANCE = 1e-12
"""Largest difference allowed, relative to the largest element: compilers may contract and vectorise sums."""

_MEMORY_MODEL = "NUMBA_OFFLOAD_CPU_MEMORY"


@dataclass(frozen=True)
class Outcome:
    """One launch: seconds, bytes moved, difference from NumPy."""

    seconds: float
    to_device: int
    to_host: int
    difference: float
    passed: bool


@contextmanager
def _cpu_memory(model: str) -> Iterator[None]:
    before = os.environ.get(_MEMORY_MODEL)
    os.environ[_MEMORY_MODEL] = model
    try:
        yield
    finally:
        if before is None:
            del os.environ[_MEMORY_MODEL]
        else:
            os.environ[_MEMORY_MODEL] = before


def launch(case: Case, strategy: PartitioningStrategy) -> Outcome:
    """Launch once on fresh output and compare with NumPy."""
    out = case.output()
    arguments = case.arguments(out, strategy)
    with profile() as counted:
        started = time.perf_counter()
        case.kernel(*arguments)
        seconds = time.perf_counter() - started
    difference = float(np.abs(out - case.expected).max() / np.abs(case.expected).max())
    passed = difference == 0.0 if case.exact else difference <= TOLERANCE
    return Outcome(seconds, counted.h2d_bytes, counted.d2h_bytes, difference, passed)


def _row(case: Case, strategy: PartitioningStrategy, target: str) -> tuple[float, Outcome, bool]:
    """First call's seconds, the outcome to show, and whether every launch agreed with NumPy."""
    first, *again = (launch(case, strategy) for _ in range(4))
    shown = min(again, key=lambda outcome: outcome.seconds)
    outcomes = [first, *again]
    if target == "cpu":
        # In the CPU's own memory nothing moves; the discrete model shows what would.
        with _cpu_memory("discrete"):
            apart = launch(case, strategy)
        outcomes.append(apart)
        shown = replace(shown, to_device=apart.to_device, to_host=apart.to_host)
    shown = replace(shown, difference=max(outcome.difference for outcome in outcomes))
    return first.seconds, shown, all(outcome.passed for outcome in outcomes)


def _mappings(case: Case, strategy: PartitioningStrategy) -> str:
    maps = case.kernel.mappings(*case.arguments(case.output(), strategy))
    return ", ".join(f"{name} {how}" for name, how in maps.items() if how != "literal")


def _verdict(passed: bool) -> str:
    return "[green]pass[/]" if passed else "[bold red]FAIL[/]"


def _case_table(target: str) -> Table:
    table = Table(title=f"Kernels on {target}, each checked against NumPy")
    for heading in ("kernel", "elements", "partition", "mappings"):
        table.add_column(heading, no_wrap=True, justify="right" if heading == "elements" else "left")
    for heading in ("MB over", "MB back", "first, ms", "call, ms", "difference"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("check")
    caption = (
        "first: compiles, and checks a partition that does not come with the package; call: best of 3.\n"
        "difference: the largest, relative to the largest element of NumPy's result."
    )
    if target == "cpu":
        caption += (
            "\nTimes are those of unified memory, where nothing is copied; bytes of the discrete model."
        )
    table.caption = caption
    return table


def run_cases(out: Console, target: str) -> bool:
    """Run and print every case under every partition. True if all agree with NumPy."""
    table = _case_table(target)
    everything = True
    with out.status("preparing data ...") as status:
        for case in cases():
            for name, strategy in case.partitions:
                status.update(f"{case.name} under {name} ...")
                compile_seconds, shown, passed = _row(case, strategy, target)
                everything = everything and passed
                table.add_row(
                    case.name,
                    f"{case.expected.size:,}",
                    name,
                    _mappings(case, strategy),
                    f"{shown.to_device / 1e6:.1f}",
                    f"{shown.to_host / 1e6:.1f}",
                    f"{compile_seconds * 1e3:.0f}",
                    f"{shown.seconds * 1e3:.2f}",
                    f"{shown.difference:.1e}",
                    _verdict(passed),
                )
            table.add_section()
    out.print(table)
    return everything


def told(mistake: Mistake) -> tuple[str, bool]:
    """The error that a mistake ends in, in one paragraph, and whether it is the right one."""
    try:
        mistake.launch()
    except Exception as error:
        text = str(error)
        right = isinstance(error, mistake.error) and all(part in text for part in mistake.says)
        return f"{type(error).__name__}: {text}", right
    return "no error", False


def run_mistakes(out: Console) -> bool:
    """Make and print every mistake. True if each was caught and told as it should be."""
    table = Table(title="Mistakes, each refused or caught", show_lines=True)
    table.add_column("mistake")
    table.add_column("what is raised", overflow="fold")
    table.add_column("check")
    everything = True
    for mistake in mistakes():
        text, right = told(mistake)
        everything = everything and right
        table.add_row(mistake.what, escape(text), _verdict(right))
    out.print(table)
    return everything


def run_demo(out: Console, target: str | None) -> bool:
    """The whole demo on a target, by default the first that works. Raises TargetError if it does not."""
    started = time.perf_counter()
    # Times are of the unified model, whatever the environment says.
    with _cpu_memory("unified"):
        name = target or available_targets()[0]
        with use_target(name):
            agreed = run_cases(out, name)
            caught = run_mistakes(out)
    passed = agreed and caught
    verdict = "All checks passed" if passed else "[bold red]Some checks FAILED[/]"
    out.print(f"{verdict} in {time.perf_counter() - started:.1f} s.", highlight=False)
    return passed
