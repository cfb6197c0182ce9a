"""Numba compiles each strategy's own methods, and they agree with CPython.

A jitclass stands in for the package's compiler: it types `self` from the attributes and compiles calls of
methods of `self`, of a nested strategy and of an element map.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from typing import Any

import pytest

import partitioning as p
from partitioning.parametrised import Parametrised

numba = pytest.importorskip("numba")
numpy = pytest.importorskip("numpy")

HOST_ONLY = {
    "preferred_threads", "ordered_threads", "blocks", "covers_shape", "check_shape", "check_launch", "then", "bind",
}  # fmt: skip

CASES = [
    (p.Linear1D(), (11,), 13),
    (p.GridStride1D(), (11,), 3),
    (p.Chunked1D(3), (11,), 5),
    (p.BlockStriped1D(2), (11,), (2, 4)),
    (p.EvenSplit1D(), (11,), 4),
    (p.Strided1D(1, 2), (11,), 7),
    (p.Linear2D(), (3, 4), (4, 5)),
    (p.Linear3D(), (2, 3, 2), (3, 3, 3)),
    (p.Tiles2D(2, 3), (5, 4), (4, 3)),
    (p.Tiles3D(1, 2, 2), (2, 3, 4), (3, 3, 2)),
    (p.Rows(), (5, 3), 2),
    (p.Columns(), (3, 5), 2),
    (p.RedBlack(1), (5, 4), 3),
    (p.Segments([0, 2, 5]), (11,), 4),
    (p.Permuted([3, 1, 0]), (11,), 4),
    (p.PerBlock1D(), (3,), (4, 2)),
    (p.Chunked1D(3).then(p.group(3)).then(p.roll(2)), (11,), 5),
    (p.GridStride1D().then(p.reverse()), (11,), 3),
    (p.Tiles2D(2, 3).then(p.transpose()), (5, 4), (3, 3)),
    (p.Linear2D().then(p.swizzle()).then(p.roll(1, 0)), (3, 4), (3, 4)),
    (p.Tiles3D(1, 2, 3).then(p.transpose(1, 2, 0)), (3, 4, 5), (4, 4, 3)),
]


def device_methods(cls: type) -> dict[str, Callable[..., Any]]:
    found = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith("partitioning") and base is not Parametrised:
            found.update({n: f for n, f in vars(base).items() if callable(f) and n[0] != "_"})
    return {name: method for name, method in found.items() if name not in HOST_ONLY}


def compiled_twin(part: Any) -> Any:
    spec, values = [], []
    for name in (*part.parameters(), *part.runtime_parameters, *part.index_arrays):
        value = getattr(part, name)
        if name in part.index_arrays:
            value = numpy.array(value)
        elif isinstance(value, Parametrised):
            value = compiled_twin(value)
        spec.append((name, numba.typeof(value)))
        values.append(value)
    lines = [f"    self.{name} = {name}" for name, _ in spec] or ["    pass"]
    namespace: dict[str, Any] = {}
    exec("\n".join([f"def __init__({', '.join(['self', *(name for name, _ in spec)])}):", *lines]), namespace)
    members = {**device_methods(type(part)), "__init__": namespace["__init__"]}
    if sys.version_info >= (3, 13):
        # jitclass takes out what a class statement puts in.
        members |= {"__firstlineno__": 1, "__static_attributes__": ()}
    return numba.experimental.jitclass(spec)(type(type(part).__name__, (), members))(*values)


@numba.njit
def count(strategy: Any, t: Any, T: Any, shape: Any) -> Any:
    return strategy.count(t, T, shape)


@numba.njit
def index(strategy: Any, t: Any, k: Any, T: Any, shape: Any) -> Any:
    return strategy.index(t, k, T, shape)


@numba.njit
def lattice(strategy: Any, t: Any, T: Any, shape: Any) -> Any:
    return strategy.origin(t, T, shape), strategy.local_shape(t, T, shape), strategy.threads(shape)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("strategy, shape, T", CASES, ids=lambda value: repr(value)[:50])
def test_compiled_methods_agree_with_cpython(strategy: Any, shape: tuple[int, ...], T: Any) -> None:
    twin = compiled_twin(strategy)
    threads = range(T) if isinstance(T, int) else itertools.product(*map(range, T))
    for t in threads:
        assert count(twin, t, T, shape) == strategy.count(t, T, shape)
        for k in range(strategy.count(t, T, shape)):
            assert index(twin, t, k, T, shape) == strategy.index(t, k, T, shape)
        if p.has_lattice(strategy):
            assert lattice(twin, t, T, shape) == lattice.py_func(strategy, t, T, shape)
