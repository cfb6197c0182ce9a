"""The world of random host programs: arrays under several names, kernels, and code that the optimiser cannot see.

A world is made anew for each run. ``kernels`` are this package's or plain NumPy's; everything else is the same.
"""

from __future__ import annotations

import collections
import dataclasses
import enum
import io
import itertools
import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from numba_offload import AliasError, Region, offload_kernel

SIZE = 12
captured = np.arange(SIZE, dtype="f8")


@offload_kernel
def add_to(x, y):
    for i in y.indices():
        y[i] = y[i] + x[i] % 7.0


@offload_kernel
def copy_to(x, y):
    for i in y.indices():
        y[i] = x[i] + 1.0


@offload_kernel
def fill_with(y, value):
    for i in y.indices():
        y[i] = value


@offload_kernel
def two_outputs(x, y, z):
    for i in y.indices():
        y[i] = x[i] - y[i]
    for j in z.indices():
        z[j] = z[j] + x[j]


@offload_kernel
def may_fail(x, y, limit):
    for i in y.indices():
        y[i] = y[i] + 1.0
        if x[i] > limit:
            raise ValueError("beyond the limit")


@offload_kernel
def add_captured(y):
    for i in y.indices():
        y[i] = y[i] + captured[i]


@offload_kernel
def add_one(y):
    for i in y.indices():
        y[i] = y[i] + 1


def count(array: Any) -> Any:
    """A small number, in an array."""
    return np.asarray(1 + array[3] % 4, dtype=int)


def strided(array: Any) -> Any:
    """The same elements, in an array whose base is an object that only refers to the first."""
    return np.lib.stride_tricks.as_strided(array, array.shape, array.strides)


def _apart(*arrays: Any) -> None:
    *read, written = arrays
    if any(np.shares_memory(a, written) for a in read):
        raise AliasError


def _numpy_add_to(x, y):
    _apart(x, y)
    y[...] = y + x % 7.0


def _numpy_copy_to(x, y):
    _apart(x, y)
    y[...] = x + 1.0


def _numpy_fill_with(y, value):
    y[...] = value


def _numpy_two_outputs(x, y, z):
    _apart(x, y)
    _apart(x, y, z)
    y[...] = x - y
    z[...] = z + x


def _numpy_may_fail(x, y, limit):
    _apart(x, y)
    if (x > limit).any():
        raise ValueError("beyond the limit")
    y[...] = y + 1.0


def _numpy_add_captured(y):
    y[...] = y + captured


def _numpy_add_one(y):
    y[...] = y + 1


KERNELS: dict[str, Callable[..., Any]] = {
    k.__name__: k for k in (add_to, copy_to, fill_with, two_outputs, may_fail, add_captured, add_one)
}
NUMPY_KERNELS: dict[str, Callable[..., Any]] = {
    "add_to": _numpy_add_to, "copy_to": _numpy_copy_to, "fill_with": _numpy_fill_with, "two_outputs": _numpy_two_outputs,
    "may_fail": _numpy_may_fail, "add_captured": _numpy_add_captured, "add_one": _numpy_add_one,
}  # fmt: skip


class Meddler:
    """An object whose every operation reads one array and writes another."""

    def __init__(self, world: Any) -> None:
        self.world = world
        self.field = world.a

    def _meddle(self) -> float:
        seen = float(self.world.a.sum())
        self.world.b[3] += 1.0 + seen % 3.0
        return seen

    @property
    def content(self) -> float:
        return self._meddle()

    @content.setter
    def content(self, value: float) -> None:
        self._meddle()

    def __getattr__(self, name: str) -> float:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._meddle()

    def __add__(self, other: Any) -> float:
        return self._meddle()

    __radd__ = __add__

    def __iadd__(self, other: Any) -> Meddler:
        self._meddle()
        return self

    def __neg__(self) -> float:
        return self._meddle()

    def __lt__(self, other: Any) -> bool:
        return self._meddle() > 3

    def __eq__(self, other: Any) -> bool:
        return self._meddle() > 3

    def __hash__(self) -> int:
        return int(self._meddle())

    def __bool__(self) -> bool:
        return self._meddle() > 3

    def __len__(self) -> int:
        return int(self._meddle()) % 3

    def __iter__(self) -> Any:
        for _ in range(2):
            yield self._meddle()

    def __contains__(self, item: Any) -> bool:
        return self._meddle() > 3

    def __getitem__(self, key: Any) -> float:
        return self._meddle()

    def __setitem__(self, key: Any, value: Any) -> None:
        self._meddle()

    def __delitem__(self, key: Any) -> None:
        self._meddle()

    def __format__(self, spec: str) -> str:
        return str(self._meddle())

    def __str__(self) -> str:
        return str(self._meddle())

    def __repr__(self) -> str:
        return "obj"  # what a program notes is compared by this

    def __float__(self) -> float:
        return self._meddle()

    def __index__(self) -> int:
        return int(self._meddle()) % 3

    def __call__(self, *args: Any) -> float:
        return self._meddle()

    def __enter__(self) -> float:
        return self._meddle()

    def __exit__(self, *exc: Any) -> bool:
        self._meddle()
        return False


Pair = collections.namedtuple("Pair", ["left", "right"])


@dataclasses.dataclass
class State:
    field: Any
    time: float = 0.0


class Mode(enum.Enum):
    FAST = 1
    SAFE = 2


quiet = logging.getLogger("numba_offload.tests.world")
quiet.setLevel(logging.ERROR)


def look_alikes(meddler: Meddler) -> Any:
    """Classes and objects that pass for a named tuple, a dataclass, a member and a logger, each of whose uses meddles."""

    class MeddlingPair(Pair):
        def __init__(self, *args: Any) -> None:
            meddler._meddle()

        def __iter__(self) -> Any:
            return iter(meddler)

        def __getitem__(self, key: Any) -> Any:
            return meddler[key]

    @dataclasses.dataclass
    class MeddlingState:
        field: Any
        time: float = 0.0

        def __post_init__(self) -> None:
            meddler._meddle()

    class MeddlingMode(enum.Enum):
        FAST = 1

        @property
        def value(self) -> float:
            return meddler._meddle()

        def __eq__(self, other: Any) -> bool:
            return meddler == other

        def __hash__(self) -> int:
            return hash(meddler)

        def __bool__(self) -> bool:
            return bool(meddler)

    class MeddlingLogger(logging.Logger):
        def isEnabledFor(self, level: int) -> bool:
            meddler._meddle()
            return False

    return MeddlingPair, MeddlingState, MeddlingMode.FAST, MeddlingLogger("meddling")


def world() -> Any:
    """Fresh arrays, under the names that programs use."""
    w = SimpleNamespace()
    w.a = np.arange(SIZE, dtype="f8")
    w.b = np.ones(SIZE)
    w.c = np.linspace(-1, 1, SIZE)
    w.big = np.arange(2.0 * SIZE)
    w.number = np.array(1)
    w.m = np.arange(float(2 * SIZE)).reshape(2, SIZE)
    captured[:] = np.arange(SIZE)
    w.sink = io.StringIO()
    w.out = []
    w.obj = Meddler(w)
    w.ns = SimpleNamespace(f=w.a, g=w.b)
    w.box = [w.a, w.c]
    w.table = {"x": w.b, "y": w.c}

    def peek(*args: Any) -> float:
        return float(w.a[1] + w.b.sum() + w.c[2] + w.big[5] + captured[1])

    def poke(*args: Any) -> None:
        w.a[2] += 1.0
        w.c[:3] = 2.0
        w.big[7] = -1.0
        captured[4] += 0.5

    w.peek, w.poke = peek, poke
    w.look_alikes = look_alikes(w.obj)
    return w


def named(kernels: dict[str, Callable[..., Any]], region: Any = Region) -> dict[str, Any]:
    """The global names of a program."""
    known = {"Pair": Pair, "State": State, "Mode": Mode, "quiet": quiet, "itertools": itertools}
    known |= {"count": count, "strided": strided}
    return {**kernels, **known, "Region": region, "np": np, "captured": captured}
