"""``python -m numba_offload check``: its options, and what they mean."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console

from numba_offload.lint.check import check_paths
from numba_offload.lint.finding import RULES
from numba_offload.lint.report import FORMATS, report


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a Python file, or a folder with all those in it")
    parser.add_argument("--format", choices=FORMATS, default="text", help="how findings are printed (default: text)")
    parser.add_argument(
        "--select", type=_codes, default=frozenset(RULES), metavar="CODES",
        help="only these rules: codes separated by commas; NO1 stands for all that begin so",
    )
    parser.add_argument("--ignore", type=_codes, default=frozenset(), metavar="CODES", help="all but these rules")


def check_command(options: argparse.Namespace, out: Console) -> int:
    """Check, and print what was found. Returns 0 if that is nothing, 1 if it is something, 2 if a file cannot be read."""
    checked = check_paths(options.paths, options.select - options.ignore)
    report(checked, options.format, out)
    return checked.status


def _codes(text: str) -> frozenset[str]:
    found: set[str] = set()
    for word in text.upper().replace(",", " ").split():
        codes = {code for code in RULES if code.startswith(word)}
        if not codes:
            raise argparse.ArgumentTypeError(f"there is no rule {word!r}; the rules are {', '.join(RULES)}")
        found |= codes
    return frozenset(found)
