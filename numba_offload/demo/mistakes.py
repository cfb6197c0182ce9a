"""What the demo shows to be refused or caught, each with the error that must tell it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from numba_offload import AliasError, LaunchError, Region, SafetyError
from numba_offload.demo import kernels


@dataclass(frozen=True)
class Mistake:
    """A launch that must fail with ``error``, whose message must contain each of ``says``."""

    what: str
    launch: Callable[[], None]
    error: type[BaseException]
    says: tuple[str, ...]


def _line_of(kernel: Any, text: str) -> int:
    lines, first = inspect.getsourcelines(kernel.py_func)
    return next(first + number for number, line in enumerate(lines) if text in line)


def mistakes(n: int = 1_000_000) -> list[Mistake]:
    """All mistakes of the demo."""
    x, y = np.ones(n), np.zeros(n)
    return [
        Mistake(
            "an index out of range",
            lambda: kernels.shifted(x, Region(y)),
            IndexError,
            (f"index {n} is out of bounds", f"line {_line_of(kernels.shifted, 'x[i + 1]')}", "thread ("),
        ),
        Mistake(
            "a data race",
            lambda: kernels.racing(x, Region(y)),
            SafetyError,
            (f":{_line_of(kernels.racing, 'y[i // 2]')}", "'y'", "Fix:"),
        ),
        Mistake(
            "a strategy that is no partition",
            lambda: kernels.saxpy(2.0, x, Region(y, kernels.Overlapping())),
            LaunchError,
            ("'y'", "own"),
        ),
        Mistake(
            "a written array that overlaps another",
            lambda: kernels.saxpy(2.0, y[1:], Region(y[:-1])),
            AliasError,
            ("'x'", "'y'"),
        ),
    ]
