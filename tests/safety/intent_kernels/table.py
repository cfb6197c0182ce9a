"""How a kernel is written down with the maps that its arguments must have, and arguments that many of them take."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from numba_offload import (
    Chunked1D,
    Region,
)

ROW = np.dtype([("a", "f8"), ("b", "i4"), ("v", "f8", (3,))])
ALIGNED = np.dtype([("a", "f8"), ("b", "i4")], align=True)
Pair = namedtuple("Pair", "pos vel")


def x(n: Any = 6) -> np.ndarray:
    return np.ones(n)


def region(n: Any = 6, strategy: Any = None, dtype: Any = float) -> Region:
    return Region(np.zeros(n, dtype), strategy)


def chunks() -> Region:
    return region(8, Chunked1D(2))


def plane() -> Region:
    return region((4, 4))


def rows() -> Region:
    return region(6, dtype=ROW)


@dataclass(frozen=True)
class Expected:
    function: Callable[..., Any]
    arguments: Callable[[], tuple[Any, ...]]
    maps: dict[str, str]
    why: str


TABLE: list[Expected] = []


def expect(why: str, *arguments: Any, **maps: str) -> Any:
    """``arguments`` made anew by calling them; ``maps`` of the arguments, those of leaves in ``leaves``."""
    leaves = maps.pop("leaves", {})

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        made = lambda: tuple(a() if callable(a) else a for a in arguments)
        TABLE.append(Expected(function, made, {**maps, **leaves}, why))
        return function

    return register
