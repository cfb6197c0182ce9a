"""The command ``python -m benchmarks.rajaperf``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from .registry import select
from .runner import OFFLOAD_TARGETS, OTHER_TARGETS, Outcome, run


def _directions(text: str) -> tuple[int, ...]:
    numbers = tuple(int(part) for part in text.split(","))
    if not set(numbers) <= {6, 64}:
        raise argparse.ArgumentTypeError("there are references for 6 and 64 directions only")
    return numbers


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m benchmarks.rajaperf",
        description="Run seven RAJA Performance Suite benchmarks at their default sizes and compare their "
        "checksums with the suite's. The exit status is 1 if any differs by more than 1e-10.",
    )
    made.add_argument(
        "--target",
        choices=OFFLOAD_TARGETS + OTHER_TARGETS,
        default="cpu",
        help="a target for the safe kernels, NumPy, or hand-written kernels (default: cpu)",
    )
    made.add_argument("--check", action="store_true", help="compare the checksums (this is always done)")
    made.add_argument("--time", action="store_true", help="warm up, to keep compilation out of the times")
    made.add_argument("--only", metavar="NAME", default="", help="only benchmarks whose name begins so")
    made.add_argument("--reps-factor", type=float, default=1.0, help="multiply the repetitions (default: 1)")
    made.add_argument("--num-d", type=_directions, default=(6, 64), help="LTIMES directions (default: 6,64)")
    return made


def table(title: str) -> Table:
    made = Table(title=title)
    made.add_column("benchmark", no_wrap=True)
    for column in ("size", "reps", "checksum", "reference", "difference"):
        made.add_column(column, justify="right", no_wrap=True)
    made.add_column("verdict")
    for column in ("seconds", "ms/rep"):
        made.add_column(column, justify="right", no_wrap=True)
    return made


def row(outcome: Outcome) -> tuple[str, ...]:
    return (
        outcome.name,
        str(outcome.size),
        str(outcome.reps),
        str(outcome.checksum),
        str(outcome.expected),
        f"{outcome.difference:.1e}",
        "[green]PASS[/]" if outcome.passed else "[bold red]FAIL[/]",
        f"{outcome.seconds:.2f}",
        f"{outcome.seconds / outcome.reps * 1e3:.3f}",
    )


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    try:
        chosen = select(options.only, options.num_d)
    except ValueError as error:
        parser().error(str(error))
    console = Console()
    results = table(f"RAJAPerf on {options.target}")
    passed = True
    for benchmark in chosen:
        with console.status(f"{benchmark.name} ..."):
            outcome = run(
                benchmark,
                options.target,
                reps_factor=options.reps_factor,
                warm_up=options.time,
            )
        passed = passed and outcome.passed
        results.add_row(*row(outcome))
    # Piped output must not lose columns to an assumed width of 80.
    (console if console.is_terminal else Console(width=160)).print(results)
    return 0 if passed else 1
