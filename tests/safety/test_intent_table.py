"""How each argument of small kernels is mapped, and that `explain` says why with line numbers."""



from __future__ import annotations

import inspect
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numba import njit

from numba_offload import (
    Accumulator,
    Chunked1D,
    GridStride1D,
    Permuted,
    RedBlack,
    Region,
    Strided1D,
    Tiles2D,
    offload_function,
    offload_kernel,
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


@pytest.mark.parametrize("case", TABLE, ids=lambda case: case.function.__name__)
def test_maps(case: Expected) -> None:
    assert case.maps == offload_kernel(case.function).mappings(*case.arguments()), case.why


@pytest.mark.parametrize("case", TABLE, ids=lambda case: case.function.__name__)
def test_explanation_names_lines_of_this_file(case: Expected) -> None:
    kernel = offload_kernel(case.function)
    text = kernel.explain(*case.arguments())
    lines, first = inspect.getsourcelines(case.function)
    for name, how in case.maps.items():
        assert f"  {name}: {how}" in text
    accessed = [how for how in case.maps.values() if how not in ("none", "literal")]
    assert text.count("line ") >= len(accessed)
    if not CALLS_OTHERS & set(case.function.__code__.co_names):
        mentioned = [int(part.split(":")[0].split(" ")[0]) for part in text.split("line ")[1:]]
        assert all(first <= line < first + len(lines) for line in mentioned), text


@pytest.mark.parametrize("case", TABLE, ids=lambda case: case.function.__name__)
def test_separate_memory_gives_what_shared_memory_gives(case: Expected, monkeypatch: pytest.MonkeyPatch) -> None:
    """Device buffers start out poisoned, so a `from` or `none` that should have been more shows in the result."""
    kernel = offload_kernel(case.function)
    results = []
    for model in ("unified", "discrete"):
        monkeypatch.setenv("NUMBA_OFFLOAD_CPU_MEMORY", model)
        arguments = case.arguments()
        kernel(*arguments)
        results.append([a.tobytes() for a in arrays_in(arguments)])
    assert results[0] == results[1]


def arrays_in(values: Any) -> list[np.ndarray]:
    if isinstance(values, np.ndarray):
        return [values]
    if isinstance(values, Region | Accumulator):
        return [np.asarray(values.array)]
    return [a for v in values for a in arrays_in(v)] if isinstance(values, tuple) else []


# ---------------------------------------------------------------------------------------------- nothing and reading


@expect("the shape is not the content", x, region, x="none", y="from")
def shape_only(x, y):
    for i in y.indices():
        y[i] = x.size + x.shape[0] + len(x) + x.ndim


@expect("indices are not content either", x, region, x="none", y="none")
def indices_only(x, y):
    for _ in y.indices():
        pass


@expect("never mentioned", x, region, x="none", y="from")
def unused(x, y):
    for i in y.indices():
        y[i] = 1.0


@expect("a transpose that is not read", lambda: x((2, 3)), region, x="none", y="from")
def shape_of_a_transpose(x, y):
    for i in y.indices():
        y[i] = x.T.shape[0]


@expect("read", x, region, x="to", y="from")
def reads(x, y):
    for i in y.indices():
        y[i] = x[i]


@expect("read through a slice", x, region, x="to", y="from")
def reads_a_slice(x, y):
    part = x[1:]
    for i in y.indices():
        y[i] = part[0]


@expect("a slice alone moves nothing", x, region, x="none", y="from")
def makes_a_slice(x, y):
    part = x[1:]
    for i in y.indices():
        y[i] = part.size


@expect("read by iteration", x, region, x="to", y="from")
def iterates(x, y):
    for i in y.indices():
        total = 0.0
        for value in x:
            total += value
        y[i] = total


@expect("read by a reduction", x, region, x="to", y="from")
def reduces(x, y):
    for i in y.indices():
        y[i] = x.sum() + np.max(x)


@expect("the Region is only read", region, region, x="to", y="from")
def reads_a_region(x, y):
    for i in y.indices():
        y[i] = x[i]


@expect("read on one branch only", x, region, True, x="to", y="from", flag="literal")
def reads_on_a_branch(x, y, flag):
    for i in y.indices():
        if flag:
            y[i] = x[0]
        else:
            y[i] = 0.0


@expect("one of the two is read", x, x, region, True, a="to", b="to", y="from", flag="literal")
def reads_an_alias(a, b, y, flag):
    chosen = a if flag else b
    for i in y.indices():
        y[i] = chosen[0]


@expect("leaves of a tuple", lambda: (x(), x()), region, y="from", leaves={"t[0]": "none", "t[1]": "to"})
def reads_a_tuple(t, y):
    for i in y.indices():
        y[i] = t[1][0]


@expect("leaves of a named tuple", lambda: Pair(x(), region()), leaves={"p.pos": "to", "p.vel": "from"})
def named_tuple(p):
    for i in p.vel.indices():
        p.vel[i] = p.pos[i]


@expect("a nested tuple", lambda: (x(), (x(), region())), leaves={"t[0]": "none", "t[1][0]": "to", "t[1][1]": "from"})
def nested_tuple(t):
    for i in t[1][1].indices():
        t[1][1][i] = t[1][0][i]


@expect("any item of a tuple by a number", lambda: (x(), x()), region, 1, y="from", n="literal",
        leaves={"t[0]": "to", "t[1]": "to"})
def tuple_by_number(t, y, n):
    for i in y.indices():
        y[i] = t[n][0]


@expect("by value", region, 2.0, 1j, y="from", s="literal", c="literal")
def scalars(y, s, c):
    for i in y.indices():
        y[i] = s + c.real


# -------------------------------------------------------------------------------------------------- from or tofrom


@expect("assigned whole", region, y="from")
def assigns(y):
    for i in y.indices():
        y[i] = 1.0


@expect("read first", region, y="tofrom")
def updates(y):
    for i in y.indices():
        y[i] += 1.0


@expect("read after it was assigned", region, y="from")
def reads_back(y):
    for i in y.indices():
        y[i] = 1.0
        y[i] = y[i] * 2.0


@expect("read before, in the same statement", region, y="tofrom")
def reads_then_writes(y):
    for i in y.indices():
        old = y[i]
        y[i] = 1.0 + old


@expect("written on one branch", x, region, x="to", y="tofrom")
def writes_on_a_branch(x, y):
    for i in y.indices():
        if x[i] > 0.0:
            y[i] = 1.0


@expect("written on both branches", x, region, x="to", y="from")
def writes_on_both_branches(x, y):
    for i in y.indices():
        if x[i] > 0.0:
            y[i] = 1.0
        else:
            y[i] = 2.0


@expect("one branch reads", x, region, x="to", y="tofrom")
def reads_on_one_branch(x, y):
    for i in y.indices():
        if x[i] > 2.0:
            y[i] = y[i] * 2.0
        else:
            y[i] = 2.0


@expect("only even indices", region, y="tofrom")
def writes_even(y):
    for i in y.indices():
        if i % 2 == 0:
            y[i] = 1.0


@expect("continue skips the write", region, y="tofrom")
def skips(y):
    for i in y.indices():
        if i == 2:
            continue
        y[i] = 1.0


@expect("continue after the write", region, y="from")
def continues_after(y):
    for i in y.indices():
        y[i] = 1.0
        if i == 2:
            continue


@expect("break leaves elements out", chunks, y="tofrom")
def breaks(y):
    for i in y.indices():
        y[i] = 1.0
        break


@expect("returns before the loop", region, True, y="tofrom", flag="literal")
def returns_early(y, flag):
    if flag:
        return
    for i in y.indices():
        y[i] = 1.0


@expect("returns inside the loop", chunks, y="tofrom")
def returns_inside(y):
    for i in y.indices():
        y[i] = 1.0
        if i == 3:
            return


@expect("an error is not a return", region, y="from")
def raises(y):
    for i in y.indices():
        if y.size > 100:
            raise ValueError("too large")
        y[i] = 1.0


@expect("a loop that may not run", region, 0, y="tofrom", n="literal")
def inner_loop(y, n):
    for i in y.indices():
        for _ in range(n):
            y[i] = 1.0


@expect("the whole loop may not run", region, 0, y="tofrom", n="literal")
def outer_loop(y, n):
    for _ in range(n):
        for i in y.indices():
            y[i] = 1.0


@expect("a while loop may not run", region, 0, y="tofrom", n="literal")
def while_loop(y, n):
    for i in y.indices():
        k = 0
        while k < n:
            y[i] = 1.0
            k += 1


@expect("the else of a while that always ends so", region, 3, y="from", n="literal")
def while_else(y, n):
    for i in y.indices():
        while n > 0:
            n -= 1
        else:
            y[i] = 1.0


@expect("the else of a loop with break may be skipped", region, 3, y="tofrom", n="literal")
def for_else(y, n):
    for i in y.indices():
        for k in range(n):
            if k == 1:
                break
        else:
            y[i] = 1.0


@expect("assigned, then accumulated in an inner loop", x, region, x="to", y="from")
def accumulates(x, y):
    for i in y.indices():
        y[i] = 0.0
        for k in range(x.size):
            y[i] += x[k]


@expect("two loops, the first assigns", region, y="from")
def two_loops(y):
    for i in y.indices():
        y[i] = 1.0
    for i in y.indices():
        y[i] += 1.0


@expect("two loops, the first reads", region, x, y="tofrom", x="to")
def two_loops_reading_first(y, x):
    total = 0.0
    for i in y.indices():
        total += y[i]
    for i in y.indices():
        y[i] = total + x[i]


@expect("each has its own loop", region, region, a="from", b="tofrom")
def two_regions(a, b):
    for i in a.indices():
        a[i] = 1.0
    for i in b.indices():
        b[i] += 1.0


@expect("one index serves two Regions that the launch checks to be alike", region, region, a="from", b="from")
def index_of_another(a, b):
    for i in a.indices():
        a[i] = 1.0
        b[i] = 1.0


@expect("one of the two is written", region, region, True, a="tofrom", b="tofrom", flag="literal")
def writes_an_alias(a, b, flag):
    chosen = a if flag else b
    for i in chosen.indices():
        chosen[i] = 1.0


@expect("another name for the same index", region, y="from")
def renamed_index(y):
    for i in y.indices():
        k = i
        y[k] = 1.0


@expect("another name for the same Region", region, y="from")
def renamed_region(y):
    z = y
    for i in z.indices():
        z[i] = 1.0


@expect("an element of another iteration is read", lambda: chunks(), chunks, a="tofrom", b="tofrom")
def reads_another_element(a, b):
    for i in a.indices():
        for j in b.indices():
            a[i] = 1.0
            b[j] = a[j]


@expect("assigned at another of its elements", chunks, chunks, a="tofrom", b="none")
def assigns_another_element(a, b):
    for _ in a.indices():
        for j in b.indices():
            a[j] = 1.0


# ------------------------------------------------------------------------------------------------------ strategies


@expect("every chunk", chunks, y="from")
def chunked(y):
    for i in y.indices():
        y[i] = 1.0


@expect("whatever the thread count", lambda: region(8, GridStride1D()), y="from")
def grid_stride(y):
    for i in y.indices():
        y[i] = 1.0


@expect("elements between have no owner", lambda: region(8, Strided1D(0, 2)), y="tofrom")
def strided(y):
    for i in y.indices():
        y[i] = 1.0


@expect("a permutation of all", lambda: region(4, Permuted([3, 1, 0, 2])), y="from")
def permuted(y):
    for i in y.indices():
        y[i] = 1.0


@expect("some indices only", lambda: region(4, Permuted([3, 1])), y="tofrom")
def partly_permuted(y):
    for i in y.indices():
        y[i] = 1.0


@expect("one colour only", lambda: region((4, 4), RedBlack(0)), y="tofrom")
def one_colour(y):
    for i, j in y.indices():
        y[i, j] = 1.0


@expect("two axes", plane, y="from")
def two_axes(y):
    for i, j in y.indices():
        y[i, j] = i + j


@expect("two axes, whole index", plane, y="from")
def two_axes_whole(y):
    for p in y.indices():
        y[p] = 1.0


@expect("tiles", lambda: region((5, 5), Tiles2D(2, 2)), lambda: x((5, 5)), y="from", x="to")
def tiles(y, x):
    for i, j in y.indices():
        y[i, j] = x[j, i]


@expect("written by blocks, not proved whole", chunks, y="tofrom")
def local_writes(y):
    block = y.local
    for k in range(block.size):
        block[k] = 1.0


@expect("read by blocks", chunks, chunks, y="to", z="from")
def local_reads(y, z):
    for i in z.indices():
        z[i] = y.local[0]


@expect("the block shows elements that are still to be assigned", chunks, y="tofrom")
def local_beside_the_loop(y):
    for i in y.indices():
        y[i] = 1.0
        block = y.local
        y[i] = block[block.size - 1]


@expect("the block's shape is not its content", chunks, y="from")
def local_shape(y):
    n = y.shape[0] + y.origin
    for i in y.indices():
        y[i] = n


# ------------------------------------------------------------------------------------------------ device functions


@offload_function
def store(y, i, value):
    y[i] = value


@offload_function
def load(y, i):
    return y[i]


@offload_function
def load_nested(t, i):
    return t[0][0][i]


@offload_function
def length(y):
    return y.size


@njit
def first(a):
    return a[0]


@offload_function
def through(a):
    return first(a)


CALLS_OTHERS = {"store", "load", "load_nested", "length", "first", "through", "bump"}


@expect("the callee assigns the element on every path", region, y="from")
def writes_in_a_callee(y):
    for i in y.indices():
        store(y, i, 1.0)


@expect("read in a callee of a callee", x, region, x="to", y="from")
def reads_in_a_callee(x, y):
    for i in y.indices():
        y[i] = through(x)


@expect("a slice read in a callee", x, region, x="to", y="from")
def reads_a_slice_in_a_callee(x, y):
    for i in y.indices():
        y[i] = first(x[2:])


@expect("a callee that asks for the size", x, region, x="none", y="from")
def asks_in_a_callee(x, y):
    for i in y.indices():
        y[i] = length(x)


@expect("a callee reads the Region", region, y="tofrom")
def callee_reads_first(y):
    for i in y.indices():
        y[i] = load(y, i) + 1.0


@expect("the same through *args", region, y="tofrom")
def callee_reads_first_by_star(y):
    for i in y.indices():
        y[i] = load(*(y, i)) + 1.0


@expect("the same in a nested tuple", region, y="tofrom")
def callee_reads_first_nested(y):
    for i in y.indices():
        y[i] = load_nested(((y,),), i) + 1.0


@expect("a closure is the kernel's own source", region, y="from")
def closure(y):
    def put(i):
        y[i] = 1.0

    for i in y.indices():
        put(i)


# ----------------------------------------------------------------------------------------------------------- rows


@expect("one field", rows, y="tofrom")
def one_field(y):
    for i in y.indices():
        y[i].a = 1.0


@expect("every field, but not the padding", rows, y="tofrom")
def field_by_field(y):
    for i in y.indices():
        y[i].a = 1.0
        y[i].b = 2


@expect("whole rows", lambda: np.ones(6, ROW), rows, x="to", y="from")
def whole_rows(x, y):
    for i in y.indices():
        y[i] = x[i]


@expect("a row taken before it is assigned", lambda: np.ones(6, ROW), rows, x="to", y="tofrom")
def row_before(x, y):
    for i in y.indices():
        old = y[i]
        y[i] = x[i]
        y[i].a += old.a


@expect("a field read", lambda: np.ones(6, ROW), region, x="to", y="from")
def reads_a_field(x, y):
    for i in y.indices():
        y[i] = x[i].a + x[i]["b"]


@expect("a column read", lambda: np.zeros(6, ALIGNED), region, x="to", y="from")
def reads_a_column(x, y):
    for i in y.indices():
        y[i] = x.b[i]


@expect("a column alone moves nothing", lambda: np.zeros(6, ALIGNED), region, x="none", y="from")
def makes_a_column(x, y):
    for i in y.indices():
        y[i] = x.b.size


@expect("an array in a row is written", rows, y="tofrom")
def array_in_a_row(y):
    for i in y.indices():
        y[i].v[1] = 1.0


@offload_function
def bump(row):
    row.a += 1.0


@expect("a row written in a callee", rows, y="tofrom")
def row_in_a_callee(y):
    for i in y.indices():
        bump(y[i])


@expect("updated atomically", lambda: Accumulator(np.zeros(3), "+"), region, total="tofrom", y="none")
def accumulator(total, y):
    for i in y.indices():
        total.update(i % 3, 1.0)


@offload_function
def store_if(y, i, value):
    if value > 0.0:
        y[i] = value


@offload_function
def load_then_store(y, i):
    y[i] = y[i] + 1.0


@offload_function
def fill_all(y, value):
    for i in y.indices():
        y[i] = value


CALLS_OTHERS |= {"store_if", "load_then_store", "fill_all"}


@expect("the callee assigns on one branch only", region, 1.0, y="tofrom", value="literal")
def a_callee_may_not_write(y, value):
    for i in y.indices():
        store_if(y, i, value)


@expect("the callee reads first", region, y="tofrom")
def a_callee_reads_first(y):
    for i in y.indices():
        load_then_store(y, i)


@expect("assigned before the callee reads", region, y="from")
def assigned_before_a_callee_reads(y):
    for i in y.indices():
        y[i] = 1.0
        load_then_store(y, i)


@expect("the callee's own loop covers", region, y="from")
def a_callee_covers(y):
    fill_all(y, 2.0)


@expect("the covering call may not run", region, True, y="tofrom", flag="literal")
def a_callee_may_not_run(y, flag):
    if flag:
        fill_all(y, 2.0)
