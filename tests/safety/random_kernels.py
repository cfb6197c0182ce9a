"""Random small kernels as source text, and what Python says they do: thread by thread, every access watched."""

from __future__ import annotations

import itertools
import linecache
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from hypothesis import strategies as st

from numba_offload import offload_function

REGIONS = ("a", "b")
READ = ("x", "z")
INDICES = ("i", "j", "p")
HEADER = "def k(a, b, x, z, n, flag):\n"
_numbers = itertools.count()


# ------------------------------------------------------------------------------------------------------- the source


class _Writer:
    """Writes one kernel. ``axes`` of the Regions; ``blocks``: whether they have ``.local``."""

    def __init__(self, draw: Any, axes: int, blocks: bool) -> None:
        self.draw = draw
        self.axes = axes
        self.blocks = blocks
        self.lines: list[str] = []
        self.loops: list[tuple[str, str]] = []

    def pick(self, *choices: Any) -> Any:
        return self.draw(st.sampled_from(choices))

    def region(self) -> str:
        return self.pick(*REGIONS, *REGIONS, "r")

    def access(self) -> tuple[str, str]:
        """A Region and an index: mostly of a loop around, sometimes another Region's, seldom no index at all."""
        kind = self.draw(st.integers(0, 39))
        if self.loops and kind < 30:
            return self.loops[self.draw(st.integers(0, len(self.loops) - 1))]
        region = self.region()
        if self.loops and kind < 36:
            return region, self.loops[-1][1]
        return region, self.other_index(kind)

    def other_index(self, kind: int) -> str:
        if kind < 39:
            return self.pick(*INDICES)
        if self.axes == 2:
            return self.pick("(i[0], j[1])", "(p[0], p[1])", "(i[1], i[0])", "(0, n)")
        return self.pick("i + 0", "n", "int(j)", "(p,)", "(i if flag else j)")

    def number(self, depth: int = 0) -> str:
        kind = self.draw(st.integers(0, 9 if depth < 2 else 4))
        if kind < 2:
            return self.pick("1.0", "2.5", "-0.5")
        if kind == 2:
            return "s"
        if kind == 3:
            return f"{self.pick(*READ)}[{self.pick('0', '1', 'n', '-1')}]"
        if kind == 4:
            at = self.pick("0", "n") if self.axes == 2 or not self.loops else self.loops[-1][1]
            return f"x[({at}) % x.size]"
        if kind in (5, 6):
            region, index = self.access()
            return f"{region}[{index}]"
        if kind == 7:
            region, index = self.access()
            return f"get({region}, {index})"
        return f"({self.number(depth + 1)} {self.pick('+', '-', '*')} {self.number(depth + 1)})"

    def block(self, depth: int, indent: str) -> None:
        before = len(self.lines)
        for _ in range(self.draw(st.integers(1, 3 if depth < 3 else 1))):
            self.statement(depth, indent)
        if len(self.lines) == before:
            self.lines.append(f"{indent}pass")

    def statement(self, depth: int, indent: str) -> None:
        inner = indent + "    "
        kind = self.draw(st.integers(0, 15 if depth < 3 else 9))
        add = self.lines.append
        if kind < 4:
            region, index = self.access()
            add(f"{indent}{region}[{index}] {self.pick('=', '=', '=', '+=')} {self.number()}")
        elif kind == 4:
            add(f"{indent}s {self.pick('=', '+=')} {self.number()}")
        elif kind == 5:
            add(f"{indent}{self.pick('p', 'p', 'j')} = {self.alias()}")
        elif kind == 6:
            add(f"{indent}r = {self.pick('a', 'b', 'a if flag else b', '(a, b)[0]', '(b, a)[1]')}")
        elif kind == 7:
            region, index = self.access()
            call = self.pick(f"put({region}, {index}, {self.number()})",
                             f"put(*({region}, {index}, {self.number()}))",
                             f"put_all({region}, {self.number()})")  # fmt: skip
            add(f"{indent}{call}")
        elif kind == 8:
            if self.loops:
                add(f"{indent}if {self.condition()}:")
                add(f"{inner}{self.pick('break', 'continue', 'return')}")
            else:
                add(f"{indent}if {self.condition()}:")
                add(f"{inner}return")
        elif kind == 9:
            if self.blocks:
                add(f"{indent}w = {self.pick('a', 'b', 'r')}.local")
                place = ", ".join(["n % w.shape[0]"] + ["0"] * (self.axes - 1))
                add(f"{indent}if w.size > 0:")
                add(f"{inner}{self.pick(f'w[{place}] = {self.number()}', f's += w[{place}]', 'w[:] = 1.5')}")
            else:
                add(f"{indent}s = s * 0.5")
        elif kind in (10, 11, 12):
            region, variable = self.region(), self.pick("i", "i", "j")
            add(f"{indent}for {variable} in {region}.indices():")
            self.loops.append((region, variable))
            self.block(depth + 1, inner)
            self.loops.pop()
            if self.draw(st.integers(0, 6)) == 0:
                add(f"{indent}else:")
                self.block(depth + 1, inner)
        elif kind == 13:
            add(f"{indent}for q{depth} in range({self.pick('n', '1', '2')}):")
            self.block(depth + 1, inner)
        elif kind == 14:
            add(f"{indent}for p in {self.pick('(i, j)', '(i,)', '(j, j)')}:")
            self.block(depth + 1, inner)
        else:
            add(f"{indent}if {self.condition()}:")
            self.block(depth + 1, inner)
            if self.draw(st.booleans()):
                add(f"{indent}else:")
                self.block(depth + 1, inner)

    def alias(self) -> str:
        inner = self.loops[-1][1] if self.loops else "i"
        either = f"{inner} if flag else {self.pick(*INDICES)}"
        return self.pick(inner, inner, inner, f"same({inner})", either, "last(a)", "p")

    def condition(self) -> str:
        return self.pick("flag", "n > 0", "s > 1.0", "x[0] > z[1]", "a.size > 3")


@st.composite
def kernel_bodies(draw: Any, axes: int, blocks: bool) -> str:
    """The statements of a kernel of two Regions ``a`` and ``b``, two arrays ``x`` and ``z``, ``n`` and ``flag``."""
    writer = _Writer(draw, axes, blocks)
    for _ in range(draw(st.integers(1, 3))):
        region, variable = writer.region(), writer.pick("i", "i", "j")
        writer.lines.append(f"    for {variable} in {region}.indices():")
        writer.loops.append((region, variable))
        writer.block(1, "        ")
        writer.loops.pop()
        if draw(st.integers(0, 2)) == 0:
            writer.statement(2, "    ")
    return "\n".join(writer.lines) + "\n"


def compiled(body: str, names: dict[str, Any], prologue: str = "    s = 0.0\n    r = a\n") -> Callable[..., Any]:
    """The function, with its source known to linecache."""
    source = HEADER + prologue + body
    filename = f"/random_kernels/{next(_numbers)}.py"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    namespace = dict(names)
    exec(compile(source, filename, "exec"), namespace)
    return namespace["k"]


# -------------------------------------------------------------------------------------- device functions that it calls


def put(region, index, value):
    region[index] = value


def get(region, index):
    return region[index]


def same(index):
    return index


def put_all(region, value):
    for i in region.indices():
        region[i] = value


def last(region):
    for i in region.indices():
        k = i
    return k


DEVICE = {f.__name__: offload_function(f) for f in (put, get, same, put_all, last)}
PYTHON = {f.__name__: f for f in (put, get, same, put_all)}


# ------------------------------------------------------------------------------------------------- what Python says


class Unsound(Exception):
    """An accepted kernel reached an element that its thread does not own, or with what is no index."""


class Nothing:
    """A variable that no iteration has assigned. As a number it is 0, as in compiled code."""

    def __int__(self) -> int:
        return 0

    def __add__(self, other: Any) -> Any:
        return other

    def __mod__(self, other: Any) -> int:
        return 0

    def __getitem__(self, axis: int) -> Nothing:
        return self


class Index(int):
    """An index of one axis that a thread owns."""


class WatchedRegion:
    """A thread's view of an array: only its own elements, only at indices that came from an iteration."""

    def __init__(self, array: np.ndarray, strategy: Any, t: Any, threads: Any) -> None:
        self.array, self.strategy, self.t, self.threads = array, strategy, t, threads
        slots = range(strategy.count(t, threads, array.shape))
        self.owned = [strategy.index(t, k, threads, array.shape) for k in slots]
        self.shape, self.size = array.shape, array.size

    def indices(self) -> Iterator[Any]:
        for element in self.owned:
            yield tuple(map(Index, element)) if isinstance(element, tuple) else Index(element)

    def _check(self, index: Any) -> Any:
        if isinstance(index, tuple) and len(index) == 1:
            (index,) = index
        parts = index if isinstance(index, tuple) else (index,)
        if not all(isinstance(part, Index) for part in parts) or index not in self.owned:
            raise Unsound(f"access at {index!r}, owned {self.owned}")
        return index

    def __getitem__(self, index: Any) -> float:
        return float(self.array[self._check(index)])

    def __setitem__(self, index: Any, value: Any) -> None:
        self.array[self._check(index)] = value

    @property
    def local(self) -> Any:
        origin = self.strategy.origin(self.t, self.threads, self.shape)
        extent = self.strategy.local_shape(self.t, self.threads, self.shape)
        if self.array.ndim == 1:
            return self.array[origin : origin + extent]
        return self.array[tuple(slice(o, o + e) for o, e in zip(origin, extent, strict=True))]


def last_watched(region: WatchedRegion) -> Any:
    found: Any = Nothing()
    for found in region.indices():
        pass
    return found


def run_in_python(body: str, a: Any, b: Any, x: Any, z: Any, n: int, flag: bool, threads: Any) -> None:
    """Run every thread in turn. Raises Unsound at the first access that no thread may make."""
    names = {**PYTHON, "last": last_watched, "nothing": Nothing()}
    function = compiled(body, names, "    s = 0.0\n    r = a\n    i = j = p = nothing\n")
    extents = threads if isinstance(threads, tuple) else (threads,)
    assert math.prod(extents) < 1000
    for t in itertools.product(*(range(e) for e in extents)):
        where = t if isinstance(threads, tuple) else t[0]
        views = [WatchedRegion(r.array, r.strategy, where, threads) for r in (a, b)]
        function(*views, x, z, n, flag)
