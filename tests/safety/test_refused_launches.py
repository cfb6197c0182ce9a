"""Launches that must not happen: each with its error class, the argument, and words of the remedy."""


from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import types

from numba_offload import (
    Accumulator,
    AliasError,
    Chunked1D,
    GridStride1D,
    LaunchError,
    Linear1D,
    Linear2D,
    PartitioningStrategy,
    Region,
    SafetyError,
    Segments,
    TargetError,
    UnsupportedArrayError,
    available_targets,
    offload_function,
    offload_kernel,
)
from numba_offload.targets import registry
from partitioning import Runtime


@offload_kernel
def add(x, y):
    for i in y.indices():
        y[i] = y[i] + x[0]


@offload_kernel
def ones(y):
    for i in y.indices():
        y[i] = 1.0


@offload_kernel
def ones_2d(y):
    for i, j in y.indices():
        y[i, j] = 1.0


@offload_kernel
def both(a, b):
    for i in a.indices():
        a[i] = 1.0
        b[i] = 2.0


@offload_kernel
def only_reads(x):
    x[0]


@offload_kernel
def scaled(y, s):
    for i in y.indices():
        y[i] = s


class TwoOwners(PartitioningStrategy):
    ndim = 1

    def count(self, t, T, shape):
        return 2 if t + 1 < shape[0] else 1

    def index(self, t, k, T, shape):
        return t + k

    def threads(self, shape):
        return shape[0]


class Misses(PartitioningStrategy):
    ndim = 1

    def count(self, t, T, shape):
        return 1 if 2 * t < shape[0] else 0

    def index(self, t, k, T, shape):
        return 2 * t

    def threads(self, shape):
        return shape[0]


class Outside(PartitioningStrategy):
    ndim = 1

    def count(self, t, T, shape):
        return 1

    def index(self, t, k, T, shape):
        return t + 1

    def threads(self, shape):
        return shape[0]


class TupleThreads(Outside):
    def threads(self, shape):
        return shape


class Raises(Outside):
    def count(self, t, T, shape):
        raise ValueError("no thread")


class LargerLattice(PartitioningStrategy):
    """Its lattice, over which loops run, has more slots than `count` says."""

    ndim = 1

    def count(self, t, T, shape):
        return 1 if t < shape[0] else 0

    def index(self, t, k, T, shape):
        return t

    def threads(self, shape):
        return shape[0]

    def origin(self, t, T, shape):
        return t

    def local_shape(self, t, T, shape):
        return 2 if t + 1 < shape[0] else 1


class ReadsEverything(PartitioningStrategy):
    """Says that nobody writes the elements that its threads own."""

    ndim = 1

    def count(self, t, T, shape):
        return 1 if t < shape[0] else 0

    def index(self, t, k, T, shape):
        return t

    def threads(self, shape):
        return shape[0]

    def readable(self, index, shape):
        return True


class Fails(PartitioningStrategy):
    ndim = 1
    covers = False

    def count(self, t, T, shape):
        return 1 // (5 - t) if t <= 5 else 1

    def index(self, t, k, T, shape):
        return 0

    def threads(self, shape):
        return shape[0]


def full(n: Any = 8) -> np.ndarray:
    return np.zeros(n)


def locked() -> np.ndarray:
    array = np.zeros(8)
    array.flags.writeable = False
    return array


SHARED = np.zeros(16)
SMALL, LARGE = 64, 20_000  # enumerated by the interpreter, and by compiled code

USERS = [
    (strategy, n, words)
    for strategy, words in [
        (TwoOwners(), ["threads 0 and 1", "element 1"]),
        (Misses(), ["element 1", "covers = False"]),
        (Outside(), ["outside shape"]),
        (LargerLattice(), ["count is 1", "give 2"]),
        (ReadsEverything(), ["readable", "element 0"]),
        (Fails(), ["zero"]),
    ]
    for n in (SMALL, LARGE)
]


@pytest.mark.parametrize(("strategy", "n", "words"), USERS, ids=lambda value: str(value)[:30])
def test_a_users_strategy_that_is_not_a_partition(strategy: Any, n: int, words: list[str]) -> None:
    array = np.zeros(n)
    with pytest.raises(LaunchError) as caught:
        ones(Region(array, strategy))
    assert "'y'" in str(caught.value)
    for word in words:
        assert word in str(caught.value)
    assert not array.any(), "something ran"


@offload_kernel
def looped(y, n):
    for i in y.indices():
        for _ in range(n):
            y[i] += 1.0


class FourAxes(PartitioningStrategy):
    ndim = 4

    def count(self, t, T, shape):
        return 1

    def index(self, t, k, T, shape):
        return (t, 0, 0, 0)

    def threads(self, shape):
        return shape[0]


async def coroutine(y):
    for i in y.indices():
        y[i] = 1.0


TABLE: list[tuple[str, type[Exception], Callable[[], Any], list[str]]] = [
    ("shapes", LaunchError, lambda: both(Region(full(8)), Region(full(9))), ["'a'", "'b'", "equal shapes"]),
    (
        "run-time parameter",
        LaunchError,
        lambda: both(Region(full(), Chunked1D(Runtime(2))), Region(full(), Chunked1D(Runtime(4)))),
        ["'a'", "'b'", "alike"],
    ),
    ("too few threads", LaunchError, lambda: ones[1, 4](Region(full())), ["'y'", "8", "4", "without a configuration"]),
    ("too few threads along an axis", LaunchError, lambda: ones_2d[1, (8, 2)](Region(full((4, 4)))), ["'y'"]),
    ("strategy of other axes", LaunchError, lambda: Region(full(), Linear2D()), ["Linear2D", "2 axes"]),
    ("strategy class", LaunchError, lambda: Region(full(), GridStride1D), ["GridStride1D(...)"]),
    ("not a strategy", LaunchError, lambda: Region(full(), 3), ["PartitioningStrategy"]),
    ("no default for four axes", LaunchError, lambda: Region(full((2, 2, 2, 2))), ["name a strategy"]),
    ("a strategy of four axes", LaunchError, lambda: Region(full((2, 2, 2, 2)), FourAxes()), ["FourAxes", "reshape"]),
    ("no Region", LaunchError, lambda: only_reads(full()), ["without a Region", "[blocks, threads]"]),
    ("zero blocks", LaunchError, lambda: ones[0, 8], ["blocks", "positive"]),
    ("negative threads", LaunchError, lambda: ones[1, -8], ["threads", "positive"]),
    ("float grid", LaunchError, lambda: ones[1.5, 8], ["blocks", "integers"]),
    ("bool grid", LaunchError, lambda: ones[True, 8], ["blocks", "integers"]),
    ("four extents", LaunchError, lambda: ones[(1, 1, 1, 1), 8], ["one to three"]),
    ("configuration of one", LaunchError, lambda: ones[8], ["[blocks, threads]"]),
    ("alias of a written one", AliasError, lambda: add(SHARED, Region(SHARED)), ["'x'", "'y'", "copy()"]),
    ("overlap", AliasError, lambda: add(SHARED[1:], Region(SHARED[:-1])), ["'x'", "'y'"]),
    ("alias by reinterpretation", AliasError, lambda: add(SHARED.view("i8"), Region(SHARED)), ["'x'", "'y'"]),
    ("in place", AliasError, lambda: add(SHARED, Region(SHARED)), ["copy()", "pass 'y' alone, and read it there"]),
    ("a loop over 0 axes", SafetyError, lambda: looped(Region(full()), np.array(3)), ["range()", "write n[()] for the value"]),
    ("same Region twice", AliasError, lambda: both(Region(SHARED), Region(SHARED)), ["'a'", "'b'"]),
    ("read-only output", (ValueError, TypeError), lambda: ones(Region(locked())), ["y", "read-only"]),
    ("broadcast output", (ValueError, TypeError), lambda: ones(Region(np.broadcast_to(1.0, 8))), ["y"]),
    ("float16", UnsupportedArrayError, lambda: add(np.zeros(8, "f2"), Region(full())), ["'x'", "float16"]),
    ("objects", UnsupportedArrayError, lambda: add(np.zeros(8, object), Region(full())), ["'x'", "object"]),
    ("byte order", UnsupportedArrayError, lambda: add(np.zeros(8, ">f8"), Region(full())), ["'x'"]),
    ("long double", UnsupportedArrayError, lambda: add(np.zeros(8, np.longdouble), Region(full())), ["'x'"]),
    ("masked", UnsupportedArrayError, lambda: add(np.ma.zeros(8), Region(full())), ["'x'", "mask"]),
    ("list", UnsupportedArrayError, lambda: add([1.0], Region(full())), ["'x'", "numpy.asarray"]),
    ("string", UnsupportedArrayError, lambda: scaled(Region(full()), "a"), ["'s'"]),
    ("dictionary", UnsupportedArrayError, lambda: scaled(Region(full()), {}), ["'s'", "named tuple"]),
    ("huge integer", UnsupportedArrayError, lambda: scaled(Region(full()), 2**70), ["'s'", "64 bits"]),
    ("integer that nobody reads", UnsupportedArrayError, lambda: scaled(Region(full()), 1 << 99999), ["'s'", "100000 bits"]),
    ("long double by value", UnsupportedArrayError, lambda: scaled(Region(full()), np.longdouble(1)), ["'s'", "float(...)"]),
    ("half by value", UnsupportedArrayError, lambda: scaled(Region(full()), np.float16(1)), ["'s'", "float(...)"]),
    ("text by value", UnsupportedArrayError, lambda: scaled(Region(full()), np.str_("a")), ["'s'", "pass a number"]),
    ("list in an Accumulator", UnsupportedArrayError, lambda: Accumulator([1.0]), ["numpy.asarray"]),
    ("sum of bools", UnsupportedArrayError, lambda: Accumulator(np.zeros(3, bool)), ["bool", "which has &, |, ^"]),
    ("sum of dates", UnsupportedArrayError, lambda: Accumulator(np.zeros(3, "M8[s]")), ["datetime64", "no atomic operation"]),
    ("coroutine function", TypeError, lambda: offload_kernel(coroutine), ["coroutine function", "define it with def"]),
    ("coroutine function, options", TypeError, lambda: offload_kernel(cache=True)(coroutine), ["coroutine function"]),
    ("coroutine function for kernels", TypeError, lambda: offload_function(coroutine), ["coroutine function"]),
    ("unsafe by a word", TypeError, lambda: offload_kernel(unsafe="no"), ["unsafe='no'", "True or False"]),
    ("contract by a word", TypeError, lambda: offload_kernel(contract="off"), ["contract='off'", "True or False"]),
    ("cache by a folder", TypeError, lambda: offload_kernel(cache="folder"), ["cache='folder'", "True or False"]),
    ("bounds by None", TypeError, lambda: offload_kernel(boundscheck=None), ["boundscheck=None", "True or False"]),
    ("bare strategy", UnsupportedArrayError, lambda: scaled(Region(full()), Linear1D()), ["'s'", "Region(array"]),
    ("list in a Region", UnsupportedArrayError, lambda: Region([1.0]), ["numpy.asarray"]),
    ("too few arguments", TypeError, lambda: add(full()), ["add()", "y"]),
    ("unknown keyword", TypeError, lambda: ones(Region(full()), z=1), ["ones()", "z"]),
    ("operation of an accumulator", (ValueError, TypeError), lambda: Accumulator(full(), "-"), ["'-'"]),
    ("swapped Region arguments", LaunchError, lambda: Region(Chunked1D(2), full()), ["array comes first"]),
    ("Region of an Accumulator", UnsupportedArrayError, lambda: Region(Accumulator(full())), ["an Accumulator"]),
    ("kernel of an int", TypeError, lambda: offload_kernel(3), ["Python function", "int"]),
    ("kernel of a class", TypeError, lambda: offload_kernel(int), ["the class int"]),
    ("kernel of a kernel", TypeError, lambda: offload_kernel(ones), ["a kernel already"]),
    ("threads as a tuple", LaunchError, lambda: ones(Region(full(), TupleThreads())), ["TupleThreads", "threads()"]),
    ("count that raises", LaunchError, lambda: ones(Region(full(), Raises())), ["Raises", "count()", "no thread"]),
    (
        "chunks of nothing",
        ValueError,
        lambda: Region(full(), Chunked1D(0)),
        ["Chunked1D"],
    ),
]


@pytest.mark.parametrize(("what", "error", "launch", "words"), TABLE, ids=[row[0] for row in TABLE])
def test_is_refused_before_anything_runs(what: str, error: Any, launch: Callable[[], Any], words: list[str]) -> None:
    SHARED[:] = 0
    with pytest.raises(error) as caught:
        launch()
    for word in words:
        assert word in str(caught.value)
    assert not SHARED.any()


def test_arguments_by_star_are_refused_at_decoration() -> None:
    with pytest.raises(TypeError, match="name the arguments"):

        @offload_kernel
        def k(*y):
            pass


def test_an_explicit_signature_of_another_dtype() -> None:
    @offload_kernel("void(float64[:], float64)")
    def declared(y, s):
        for i in y.indices():
            y[i] = s

    with pytest.raises(TypeError, match="'y' is declared as"):
        declared(Region(np.zeros(4, np.float32)), 1.0)
    with pytest.raises(TypeError, match="an array of float32 and 2 axes was passed; convert the argument, or leave"):
        declared(Region(np.zeros((4, 4), np.float32)), 1.0)


@pytest.mark.parametrize("signature", ["bogus", "f8[::1], Region(f8[::1])", "void(f8[:]", "", types.float64[::1]])
def test_a_signature_that_is_none(signature: Any) -> None:
    def body(y):
        for i in y.indices():
            y[i] = 1.0

    with pytest.raises(TypeError, match=r"offload_kernel\(.*\): expected a signature of Numba's types, such as 'void\("):
        offload_kernel(signature)(body)


def test_the_error_of_a_missing_argument_shows_the_parameters() -> None:
    with pytest.raises(TypeError, match=r"missing a required argument: 'y'; it is defined as add\(x, y\)$"):
        add(np.ones(3))


def test_an_array_that_was_given_another_shape_since():
    y = np.zeros(100)
    segments, plain = Region(y, Segments([0, 50, 100])), Region(y)
    y.resize(10, refcheck=False)
    with pytest.raises(LaunchError, match="beyond the 10 elements"):
        ones(segments)
    y.shape = (5, 2)
    with pytest.raises(LaunchError, match="make a new Region"):
        ones(plain)
    assert not y.any()


def test_no_target_works(monkeypatch):
    with monkeypatch.context() as wrong:
        wrong.setenv("NUMBA_OFFLOAD_CPU_MEMORY", "both")
        wrong.delenv("NUMBA_OFFLOAD_TARGET", raising=False)
        wrong.setattr(registry, "_MAKERS", {"cpu": registry._cpu})
        with pytest.raises(TargetError, match="NUMBA_OFFLOAD_CPU_MEMORY='both'"):
            ones(Region(np.zeros(3)))
    assert "cpu" in available_targets()


class OnDevice:
    """An array that another library says to have on a device; its memory is never touched."""

    def __init__(self, device_type):
        self.device_type = device_type
        self.__cuda_array_interface__ = {"shape": (4,), "typestr": "<f8", "data": (0x1000, False), "version": 3}

    def __dlpack_device__(self):
        return self.device_type, 0


@pytest.mark.parametrize("order", [(2, 10), (10, 2)])
def test_arrays_of_two_vendors_do_not_meet_in_a_launch(order):
    x, y = map(OnDevice, order)
    with pytest.raises(TargetError, match=r"'add'.*'x' on a (cuda|amdgpu) device and 'y' on a (cuda|amdgpu) device.*copy"):
        add(x, Region(y))


def test_a_device_array_needs_its_own_target():
    with registry.use_target("cpu"), pytest.raises(TargetError, match=r"'y' lives on a cuda device.*use_target\('cuda'\)"):
        add(np.ones(1), Region(OnDevice(2)))
