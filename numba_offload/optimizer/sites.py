"""Places in a host function at which it may use arrays."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Site:
    """An operation, a call or a statement of a host function."""

    line: int
    text: str
    """Its source, on one line."""
    loop: int
    """The number of the innermost loop around it; -1: none."""
    arguments: tuple[str, ...] = ()
    """Of a call: the sources of its positional arguments."""
    keywords: tuple[str, ...] = ()
    """Of a call: the names of its keyword arguments, whose sources follow those of the others."""


@dataclass(frozen=True, slots=True)
class Loop:
    """A ``for`` or ``while`` of a host function, or a ``for`` of a comprehension."""

    line: int
    text: str
    outer: int
