"""Warnings about the cache: each once in a process, at the line of the user's that led to it."""

from __future__ import annotations

import os
import sys
import warnings

from numba_offload.errors import CacheWarning

_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep
_told: set[str] = set()


def tell_once(message: str) -> None:
    """Warn with a CacheWarning, unless the same was said before."""
    if message in _told:
        return
    _told.add(message)
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, CacheWarning, stacklevel=level)
