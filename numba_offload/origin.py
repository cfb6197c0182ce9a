"""Where in the user's program something was asked for, and what its arguments are called there: for messages."""

from __future__ import annotations

import ast
import concurrent.futures.thread
import contextlib
import itertools
import linecache
import os
import sys
import threading
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FrameType

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_BETWEEN = frozenset({contextlib.__file__, threading.__file__, concurrent.futures.thread.__file__})
"""What Python itself puts between a user's line and this package, or below a worker thread's first function."""


@dataclass(frozen=True, slots=True)
class Origin:
    """A line of the user's program."""

    filename: str
    line: int

    def __str__(self) -> str:
        return f"{self.filename}:{self.line}"


def user_frame() -> FrameType | None:
    """The innermost frame outside this package; None where there is none, as at the interpreter's exit or in a worker thread."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_PACKAGE) and file not in _BETWEEN:
            break
        frame = frame.f_back
    return frame


def user_line() -> str:
    """``file:line`` of that frame; empty where there is none."""
    frame = user_frame()
    return "" if frame is None else str(origin_of(frame))


def origin_of(frame: FrameType | None) -> Origin:
    """The line that a frame is at."""
    return Origin("<unknown>", 0) if frame is None else Origin(frame.f_code.co_filename, frame.f_lineno)


def inside_package(frame: FrameType | None) -> bool:
    """Whether this package is at work in a frame or in one that called it."""
    while frame is not None:
        if frame.f_code.co_filename.startswith(_PACKAGE):
            return True
        frame = frame.f_back
    return False


def argument_names(frame: FrameType | None, count: int) -> tuple[str, ...]:
    """The arguments of the call that a frame is at, as they are written; numbers where its source is not to be had."""
    found = None if frame is None else _written(frame.f_code, frame.f_lasti)
    if found is None or len(found) != count:
        return tuple(f"array {position}" for position in range(count)) if count > 1 else ("array",)
    return found


@lru_cache(maxsize=256)
def _written(code: CodeType, instruction: int) -> tuple[str, ...] | None:
    first, last, start, stop = next(itertools.islice(code.co_positions(), instruction // 2, None), (None,) * 4)
    if first is None or last is None or start is None or stop is None:
        return None
    lines = [linecache.getline(code.co_filename, line).encode() for line in range(first, last + 1)]
    # Columns count bytes; the end's first, as both may be on one line.
    lines[-1] = lines[-1][:stop]
    lines[0] = lines[0][start:]
    try:
        call = ast.parse(b"".join(lines).decode().strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return None
    if not isinstance(call, ast.Call) or any(isinstance(arg, ast.Starred) for arg in call.args):
        return None
    return tuple(ast.unparse(arg) for arg in call.args)
