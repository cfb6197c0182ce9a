"""How a kernel that must not compile is written down, and the arguments that many of them take."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from numba_offload import (
    Region,
)

ROW = np.dtype([("a", "f8"), ("v", "f8", (3,)), ("n", [("q", "f8")])])
Pair = namedtuple("Pair", "first second")
ALIGNED = np.dtype([("a", "f8"), ("b", "i4")], align=True)
CAPTURED = np.arange(4.0)
ARRAYS = (np.arange(3.0), np.arange(3.0))


def region(shape: Any = 6, strategy: Any = None, dtype: Any = float) -> Region:
    return Region(np.zeros(shape, dtype), strategy)


@dataclass(frozen=True)
class Refused:
    function: Callable[..., Any]
    arguments: Callable[[], tuple[Any, ...]]
    named: str
    marked_in: Callable[..., Any]
    says: str


TABLE: list[Refused] = []


def refused(*arguments: Any, named: str = "y", says: str = "", inside: Any = None) -> Any:
    """Register a kernel. ``arguments`` are made anew for the test; ``inside`` is the function with the marked line."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        made = lambda: tuple(a() if callable(a) else a for a in arguments)
        holder = getattr(inside, "__wrapped__", inside) or function
        TABLE.append(Refused(function, made, named, getattr(holder, "py_func", holder), says))
        return function

    return register


def x() -> np.ndarray:
    return np.zeros(6)


def square() -> np.ndarray:
    return np.zeros((6, 6))


def rows() -> np.ndarray:
    return np.zeros(6, ROW)


def plane() -> Region:
    return region((4, 4))
