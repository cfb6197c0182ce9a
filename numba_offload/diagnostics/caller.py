"""Where in the user's code something was asked for: the nearest line outside this package."""

from __future__ import annotations

import concurrent.futures.thread
import contextlib
import os
import sys
import threading

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
# What Python itself puts between a user's line and ours, or below a worker thread's first function.
_BETWEEN = frozenset({contextlib.__file__, threading.__file__, concurrent.futures.thread.__file__})


def user_line() -> str:
    """``file:line`` of the innermost caller outside this package; empty where there is none, as in a worker thread."""
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_PACKAGE) and file not in _BETWEEN:
            return f"{file}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return ""
