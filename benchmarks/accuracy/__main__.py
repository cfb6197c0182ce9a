"""The largest errors of kernels' mathematics, as a table: ``python -m benchmarks.accuracy --target cpu``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from numba_offload import OffloadError, use_target
from numba_offload.targets.registry import known_targets, why_unavailable

from .complex_functions import COMPLEX_FUNCTIONS
from .exact_functions import EXACT_FUNCTIONS
from .formats import FORMATS, Format
from .functions import FUNCTIONS
from .measure import Result, mismatches, worst_complex_results, worst_results


def _cell(worst: Result, bar: float) -> str:
    colour = "green" if worst.error <= bar else "red"
    return f"[{colour}]{worst.error:.3g}[/] (<= {bar:.3g})"


def _rows(functions: Sequence[Any], measure: Any, target: str) -> Iterator[tuple[str, list[str], list[Result]]]:
    """Name, cells, and the results that are over their bars."""
    for function in functions:
        cells, over = [], []
        for fmt in FORMATS.values():
            try:
                worst = max(measure(function, fmt, target), key=lambda r: r.error)
            except OffloadError as error:
                cells.append(f"[red]{type(error).__name__}[/]")
                continue
            bar = function.bar(fmt, target)
            cells.append(_cell(worst, bar))
            if not worst.error <= bar:
                over.append(worst)
        yield function.name, cells, over


def _exact_rows(functions: Sequence[Any], target: str) -> Iterator[Result]:
    for function in functions:
        for fmt in FORMATS.values():
            yield from mismatches(function, fmt, target)


def _table(title: str, columns: Sequence[Format], kind: str) -> Table:
    made = Table(title=title)
    made.add_column("function", no_wrap=True)
    for fmt in columns:
        made.add_column(fmt.dtype if kind == "real" else fmt.complex_dtype, justify="right")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    parser.add_argument("--target", choices=known_targets(), default="cpu")
    parser.add_argument("--only", metavar="NAME", default="", help="only functions whose name begins with NAME")
    parser.add_argument("--strict", action="store_true", help="exit status 1 if an error is over its bar")
    options = parser.parse_args(arguments)

    def chosen(functions: Sequence[Any]) -> list[Any]:
        return [f for f in functions if f.name.startswith(options.only)]

    console = Console()
    reason = why_unavailable(options.target)
    if reason is not None:
        console.print(f"target {options.target}: {reason}", markup=False)
        return 2
    over: list[Result] = []
    tables = []
    with use_target(options.target), console.status("measuring ..."):
        for title, kind, functions, measure in (
            ("Largest errors, units in the last place", "real", FUNCTIONS, worst_results),
            ("Of complex numbers, units in the last place of the modulus", "complex", COMPLEX_FUNCTIONS, worst_complex_results),
        ):
            made = _table(title, list(FORMATS.values()), kind)
            for name, cells, missed in _rows(chosen(functions), measure, options.target):
                made.add_row(name, *cells)
                over += missed
            tables.append(made)
        over += _exact_rows(chosen(EXACT_FUNCTIONS), options.target)
    for made in tables:
        if made.row_count:
            console.print(made)
    for result in over:
        console.print(str(result), markup=False, highlight=False)
    return 1 if options.strict and over else 0


if __name__ == "__main__":
    sys.exit(main())
