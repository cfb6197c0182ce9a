"""What the lint reports, and the rules that it knows."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

RULES = {
    "NO101": "an array goes to the device in every iteration of a loop that does not change it",
    "NO102": "a result comes back in every iteration of a loop that does not read it",
    "NO201": "a preload in a loop that does not change its array",
    "NO202": "a preload after host work that does not touch its array",
    "NO301": "an array is used inside its preload_mut block",
    "NO302": "an array is written inside its preload block",
    "NO303": "a mutable borrow of an array that is borrowed already",
    "NO401": "a kernel writes to what is not a Region",
    "NO402": "a kernel writes at an index that its thread does not own",
    "NO403": "components of an owned index are used apart",
    "NO404": "a kernel asks a Region for a block that its partition does not have",
}
"""Every rule, by its code: 1 transfers in loops, 2 preloads that start late, 3 borrows, 4 writes in kernels."""


@dataclass(frozen=True)
class Place:
    """A stretch of a file. Lines and columns count from 1, columns in characters; the end is exclusive."""

    path: Path
    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True)
class Finding:
    """One thing to mend. ``source`` is the line at which ``place`` starts."""

    code: str
    place: Place
    message: str
    fix: str
    source: str


@dataclass(frozen=True)
class Unreadable:
    """A file that could not be checked, and why. ``line`` is 0 where there is none to name."""

    path: Path
    line: int
    reason: str


@dataclass(frozen=True)
class Remark:
    """A finding of a rule before it is put into a file's terms."""

    code: str
    node: ast.AST
    message: str
    fix: str


def listed(names: list[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``; each name once."""
    *most, last = dict.fromkeys(names)
    return f"{', '.join(most)} and {last}" if most else last
