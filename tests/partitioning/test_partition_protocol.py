"""Strategies as values: one's own in a few lines, equality, parameters, no later change."""

from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass
from typing import Any

import pytest

from partitioning import (
    BlockStriped1D,
    Chunked1D,
    ElementMap,
    GridStride1D,
    Linear1D,
    Linear2D,
    PartitioningStrategy,
    Permuted,
    RedBlack,
    Runtime,
    Segments,
    Strided1D,
    Tiles2D,
    Tiles3D,
    enumerate_launch,
    group,
    has_lattice,
    is_dense,
    ownership,
    reverse,
    roll,
    swizzle,
    transpose,
)


class EveryThird(PartitioningStrategy):
    ndim = 1
    covers = False

    def count(self, t, T, shape):
        return 1 if 3 * t < shape[0] else 0

    def index(self, t, k, T, shape):
        return 3 * t

    def threads(self, shape):
        return (shape[0] + 2) // 3


class Every(EveryThird):
    def __init__(self, k):
        self.k = k

    def count(self, t, T, shape):
        return 1 if self.k * t < shape[0] else 0

    def index(self, t, k, T, shape):
        return self.k * t


@dataclass
class EveryData(Every):
    k: int


@dataclass(frozen=True)
class EveryFrozen(Every):
    k: int


class ByTable(EveryThird):
    index_arrays = ("table",)

    def __init__(self, table):
        self.table = table

    def count(self, t, T, shape):
        return 1 if t < len(self.table) else 0

    def index(self, t, k, T, shape):
        return self.table[t]


OWN = [EveryThird, lambda: Every(3), lambda: EveryData(3), lambda: EveryFrozen(3), lambda: ByTable([0, 3, 6])]


@pytest.mark.parametrize("make", OWN)
def test_ones_own_strategy_takes_a_few_lines(make: Any) -> None:
    strategy = make()
    assert sorted(ownership(strategy, 8, 5)) == [0, 3, 6]
    assert enumerate_launch(strategy, 8, 5).slots == 3
    assert strategy == make()
    assert hash(strategy) == hash(make())
    assert not has_lattice(strategy)
    assert sorted(ownership(strategy.then(reverse()), 8, 5)) == [1, 4, 7]
    assert copy.deepcopy(strategy) == pickle.loads(pickle.dumps(strategy)) == strategy


@pytest.mark.parametrize("cls", [Every, EveryData, EveryFrozen, Chunked1D, BlockStriped1D])
def test_runtime_parameters_of_any_strategy(cls: Any) -> None:
    fixed, passed = cls(4), cls(Runtime(4))
    assert (fixed.parameters(), fixed.runtime_parameters, fixed.runtime_values()) == ({"k": 4}, (), ())
    assert (passed.parameters(), passed.runtime_parameters) == ({}, ("k",))
    assert passed.runtime_values() == (("k", 4),)
    assert type(passed.k) is int
    assert fixed != passed
    assert cls(Runtime(4)) == passed != cls(Runtime(5))
    assert passed.type_key() == cls(Runtime(5)).type_key() != fixed.type_key()
    assert fixed.type_key() != cls(5).type_key()
    assert repr(passed) == f"{cls.__name__}(k=Runtime(4))"
    shape, T = ((10,), (3, 2)) if cls is BlockStriped1D else ((10,), 3)
    assert ownership(fixed, shape, T) == ownership(passed, shape, T)


def test_runtime_parameters_may_be_declared() -> None:
    class Declared(Every):
        runtime_parameters = ("k",)

    assert Declared(3).parameters() == {}
    assert Declared(3).runtime_values() == (("k", 3),)
    assert repr(Declared(3)) == "Declared(k=3)"


def test_nested_values_are_named_by_path() -> None:
    strategy = Chunked1D(Runtime(4)).then(roll(Runtime(3))).then(reverse())
    assert strategy.runtime_values() == (("inner.inner.k", 4), ("inner.map.shift", 3))
    ((name, values),) = Segments([0, 2]).then(reverse()).index_values()
    assert (name, list(values)) == ("inner.offsets", [0, 2])


def test_equality_is_by_class_and_every_parameter() -> None:
    assert Tiles2D(2, 3) == Tiles2D(2, 3) != Tiles2D(3, 2)
    assert Linear1D() != GridStride1D()
    assert Permuted([1, 0]) == Permuted((1, 0)) != Permuted([0, 1])
    assert Linear1D().then(reverse()) == Linear1D().then(reverse(0)) != Linear1D()
    assert Every(1) != Every(True) != Every(1.0) != Every(1)
    assert len({Chunked1D(2), Chunked1D(2), Chunked1D(3), Permuted([0]), Permuted([0])}) == 3
    assert Chunked1D(2) != 2


def test_nothing_changes_after_construction() -> None:
    strategy = Chunked1D(8)
    with pytest.raises(AttributeError, match="cannot be changed"):
        strategy.k = 9
    with pytest.raises(AttributeError, match="cannot be changed"):
        del strategy.k
    with pytest.raises(TypeError, match="cannot be changed"):
        ByTable([1, 2]).table[0] = 3


def test_numpy_integers_are_integers() -> None:
    numpy = pytest.importorskip("numpy")
    assert Chunked1D(numpy.int32(8)) == Chunked1D(8)
    assert Every(numpy.uint8(3)) == Every(3)
    assert Permuted(numpy.array([2, 0, 1], dtype="u1")[::-1]) == Permuted([1, 0, 2])
    assert Permuted(numpy.array([])) == Permuted([])
    assert enumerate_launch(Chunked1D(3), numpy.int64(7), numpy.int64(3)).covered


@pytest.mark.parametrize(
    "cls, arguments",
    [(Chunked1D, 1), (BlockStriped1D, 1), (Strided1D, 2), (Tiles2D, 2), (Tiles3D, 3), (RedBlack, 1)],
)
@pytest.mark.parametrize("value", [True, 2.0, "2", None, [2], -1, 2**63])
def test_sizes_are_positive_integers(cls: Any, arguments: int, value: Any) -> None:
    for at in range(arguments):
        given = [1] * arguments
        given[at] = value
        with pytest.raises((TypeError, ValueError), match=cls.__name__):
            cls(*given)


def test_numpy_bools_and_arrays_are_no_sizes() -> None:
    numpy = pytest.importorskip("numpy")
    for value in (numpy.bool_(True), numpy.array(3), numpy.float64(3)):
        with pytest.raises(TypeError, match="must be an integer"):
            Chunked1D(value)


@pytest.mark.parametrize("values", [[0.5], [True], 3, None, ["1"], [None]])
def test_index_arrays_hold_integers(values: Any) -> None:
    with pytest.raises(TypeError, match="indices"):
        Permuted(values)


def test_numpy_index_arrays_of_the_wrong_kind() -> None:
    numpy = pytest.importorskip("numpy")
    with pytest.raises(TypeError, match="must hold integers, not float64"):
        Permuted(numpy.array([1.0]))
    with pytest.raises(TypeError, match="must hold integers, not bool"):
        Permuted(numpy.array([True]))
    with pytest.raises(ValueError, match="must have one axis, not 2"):
        Permuted(numpy.zeros((2, 2), dtype=int))
    with pytest.raises(ValueError, match=r"indices\[1\] is 18446744073709551615"):
        Permuted(numpy.array([0, 2**64 - 1], dtype="u8"))


def test_incomplete_strategies_are_explained() -> None:
    class NoAxes(PartitioningStrategy):
        pass

    class HalfLattice(EveryThird):
        def origin(self, t, T, shape):
            return t

    class Elsewhere(EveryThird):
        coordinates = "warp"

    with pytest.raises(TypeError, match=r"NoAxes\.ndim must say how many axes"):
        NoAxes()
    with pytest.raises(TypeError, match="both origin and local_shape"):
        HalfLattice()
    with pytest.raises(TypeError, match="coordinates must be one of"):
        Elsewhere()
    with pytest.raises(TypeError, match=r"Every.k is \[1\] \(list\); an attribute"):
        Every([1])


def test_numpy_meaning_of_the_maps() -> None:
    numpy = pytest.importorskip("numpy")
    a = numpy.arange(24).reshape(2, 3, 4)
    for element_map, view in [
        (reverse(), numpy.flip(a)),
        (reverse(1), numpy.flip(a, 1)),
        (transpose(), a.transpose()),
        (transpose(1, 2, 0), a.transpose(1, 2, 0)),
        (transpose((2, 0, 1)), a.transpose(2, 0, 1)),
    ]:
        bound = element_map.bind(3)
        assert bound.source_shape(a.shape) == view.shape
        for source in numpy.ndindex(view.shape):
            assert view[source] == a[bound.apply(source, a.shape)]
    for axis in range(3):
        rolled = numpy.roll(a, 2, axis)
        for source in numpy.ndindex(a.shape):
            assert rolled[roll(2, axis).bind(3).apply(source, a.shape)] == a[source]


def test_group_coalesces_chunks_and_leaves_the_tail() -> None:
    strategy = Chunked1D(3).then(group(3))
    owned = {
        t: [strategy.index(t, k, 5, (14,)) for k in range(strategy.count(t, 5, (14,)))] for t in range(5)
    }
    assert owned == {0: [0, 4, 8], 1: [1, 5, 9], 2: [2, 6, 10], 3: [3, 7, 11], 4: [12, 13]}


def test_swizzle_puts_a_column_on_a_diagonal() -> None:
    assert [swizzle().bind(2).apply((r, 0), (4, 3)) for r in range(4)] == [(0, 0), (1, 1), (2, 2), (3, 0)]


def test_blocks_stay_blocks() -> None:
    assert is_dense(Tiles2D(2, 3).then(transpose()).then(reverse()))
    assert Tiles2D(2, 3).then(transpose()).local_shape((0, 0), (2, 2), (6, 4)) == (3, 2)
    assert not is_dense(GridStride1D().then(reverse()))
    assert has_lattice(GridStride1D().then(reverse()))
    assert not has_lattice(Chunked1D(3).then(roll(1)))


class RowMajor(ElementMap):
    """A user's map: one axis onto two."""

    ndim = 2
    source_ndim = 1

    def source_shape(self, shape):
        return (shape[0] * shape[1],)

    def apply(self, index, shape):
        return (index // shape[1], index % shape[1])


class Collapse(ElementMap):
    ndim = 1

    def apply(self, index, shape):
        return index // 2


def test_ones_own_map_may_change_the_number_of_axes() -> None:
    strategy = GridStride1D().then(RowMajor())
    assert strategy.ndim == 2
    assert enumerate_launch(strategy, (3, 5), 4).covered
    assert enumerate_launch(strategy.then(transpose()), (3, 5), 4).covered


def test_incomplete_maps_are_explained() -> None:
    class NoAxes(ElementMap):
        pass

    class HalfLattice(Collapse):
        def map_shape(self, local):
            return local

    with pytest.raises(TypeError, match=r"NoAxes\.ndim must say"):
        NoAxes()
    with pytest.raises(TypeError, match="map_origin, map_shape and map_step"):
        HalfLattice()


def test_a_map_is_not_trusted_to_be_injective() -> None:
    with pytest.raises(ValueError, match="threads 0 and 1 both own element 0"):
        enumerate_launch(Linear1D().then(Collapse()), 4, 4)


@pytest.mark.parametrize(
    "strategy, element_map, message",
    [
        (Linear1D(), transpose(), "for arrays of 2 or 3 axes; it cannot follow a strategy over arrays of 1"),
        (Linear2D(), group(2), "arrays of 1 axes; it cannot follow"),
        (Linear1D(), swizzle(), "arrays of 2 axes; it cannot follow"),
        (Linear2D(), roll(1), "must name its axis"),
        (Linear2D(), reverse(2), "axes 0 to 1"),
        (Linear2D(), transpose(0, 0), "name each of the 2 axes"),
        (Linear2D(), RowMajor(), "cannot follow"),
    ],
)
def test_maps_over_other_axes_are_refused(strategy: Any, element_map: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        strategy.then(element_map)


@pytest.mark.parametrize(
    "make", [lambda: group(0), lambda: swizzle(-1), lambda: roll(1.5), lambda: reverse(True)]
)
def test_maps_check_their_arguments(make: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"(group|swizzle|roll|reverse)'s"):
        make()


def test_then_takes_a_map() -> None:
    with pytest.raises(TypeError, match="takes an element map"):
        Linear1D().then(Linear1D())
