"""How a refusal of kernel code reads: where, which argument, the line itself, what is wrong, and the way out."""

from __future__ import annotations

import linecache

from numba_offload.errors import SafetyError


def refusal(function: str, filename: str, line: int, argument: str, problem: str, fix: str) -> SafetyError:
    """A SafetyError in the house's form. ``argument`` may be empty where no argument is at fault."""
    text = linecache.getline(filename, line).strip()
    shown = f"\n    {text}\n" if text else "\n"
    about = f", argument {argument!r}" if argument else ""
    return SafetyError(f"kernel code {function!r}, {filename}:{line}{about}:{shown}{problem}.\nFix: {fix}")
