"""What the environment says of memory and copies. Read where it is needed, so that a bad value is told at its first use."""

from __future__ import annotations

import os
import re
from functools import cache

from numba_offload.errors import TargetError

MOST_COPY_THREADS = 64
_USUAL_COPY_THREADS = 12
"""On a host with 16 cores more made no copy faster."""
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def cpu_memory() -> str:
    """The memory model of the CPU target: ``NUMBA_OFFLOAD_CPU_MEMORY``, "unified" where it is empty or not set."""
    return os.environ.get("NUMBA_OFFLOAD_CPU_MEMORY") or "unified"


def debugging_borrows() -> bool:
    """Whether ``NUMBA_OFFLOAD_DEBUG`` asks for the debug mode of preloads: "borrow", among words separated by commas.

    Raises TargetError where there are others alone: a check that is asked for and not made would pass for passed.
    """
    text = os.environ.get("NUMBA_OFFLOAD_DEBUG", "")
    words = [word.strip() for word in text.split(",") if word.strip()]
    if words and "borrow" not in words:
        raise TargetError(
            f"NUMBA_OFFLOAD_DEBUG={text!r}: expected 'borrow', which makes stale reads of preloaded arrays show, or nothing"
        )
    return bool(words)


def copy_threads() -> int:
    """How many threads copy large arrays: ``NUMBA_OFFLOAD_COPY_THREADS``, 0 to 64; else one for each core, 12 at most.

    The thread that asks for a copy is one of them, so 1 starts none. 0: arrays are not staged; the driver copies them in
    its own way. Raises TargetError for any other value.
    """
    text = os.environ.get("NUMBA_OFFLOAD_COPY_THREADS", "")
    if not text:
        return min(_USUAL_COPY_THREADS, _cores())
    if text.isascii() and text.isdigit() and int(text) <= MOST_COPY_THREADS:
        return int(text)
    raise TargetError(
        f"NUMBA_OFFLOAD_COPY_THREADS={text!r}: expected a number of threads from 0 (arrays are not staged) to {MOST_COPY_THREADS}"
    )


def memory_limit() -> int | None:
    """The most bytes that a device's buffers may hold: ``NUMBA_OFFLOAD_MEMORY_LIMIT``, as in "4G"; None where it is not set.

    A whole number of bytes, or of K, M or G (1024, 1024**2 and 1024**3 bytes). Raises TargetError for anything else.
    """
    text = os.environ.get("NUMBA_OFFLOAD_MEMORY_LIMIT", "")
    if not text:
        return None
    found = re.fullmatch(r"([0-9]+)([KMG]?)", text.strip().upper())
    if found is None:
        raise TargetError(
            f"NUMBA_OFFLOAD_MEMORY_LIMIT={text!r}: expected a whole number of bytes, or of K, M or G, such as 500M or 4G"
        )
    return int(found[1]) * _UNITS[found[2]]


@cache
def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
