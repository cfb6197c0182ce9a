"""The exhaustive check sees each kind of fault and says it in one sentence."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from partitioning import (
    Chunked1D,
    Counterexample,
    Fault,
    GridStride1D,
    LatticeMismatch,
    Linear2D,
    Missing,
    NegativeCount,
    OutOfRange,
    PartitioningStrategy,
    PartitionRefused,
    Runtime,
    enumerate_launch,
    find_counterexample,
    ownership,
)


class OneEach(PartitioningStrategy):
    """A base to break: thread t owns element t."""

    ndim = 1
    index_arrays: tuple[str, ...] = ()

    def count(self, t: Any, T: Any, shape: Any) -> Any:
        return 1 if t < shape[0] else 0

    def index(self, t: Any, k: Any, T: Any, shape: Any) -> Any:
        return t

    def threads(self, shape: Any) -> Any:
        return shape[0]


def broken(**members: Any) -> PartitioningStrategy:
    return type("Broken", (OneEach,), members)()


def test_a_sound_launch_is_reported() -> None:
    report = enumerate_launch(GridStride1D(), 10, 3)
    assert (report.shape, report.launched, report.threads, report.slots) == ((10,), 3, 3, 10)
    assert report.covered


def test_two_owners() -> None:
    strategy = broken(index=lambda self, t, k, T, shape: t % 4)
    with pytest.raises(PartitionRefused) as caught:
        enumerate_launch(strategy, 10, 8)
    assert caught.value.counterexample == Counterexample(0, 0, 4, 0, 0)
    assert str(caught.value) == (
        "Broken() on shape (10,) with 8 threads: threads 0 and 4 both own element 0 (slots 0 and 0)"
    )


def test_one_thread_twice() -> None:
    found = find_counterexample(broken(count=lambda *_: 3), 10, 8)
    assert str(found) == "thread 0 owns element 0 twice (slots 0 and 1)"


@pytest.mark.parametrize("element", [10, -1])
def test_out_of_range_and_negative_elements_do_not_wrap(element: int) -> None:
    found = find_counterexample(broken(index=lambda *_: element), 10, 1)
    assert found == OutOfRange(0, 0, element, (10,))
    assert str(found) == f"thread 0 owns element {element} (slot 0), outside shape (10,)"


def test_negative_count() -> None:
    found = find_counterexample(broken(count=lambda self, t, T, shape: 3 - t), 10, 5)
    assert isinstance(found, Counterexample)
    found = find_counterexample(broken(count=lambda self, t, T, shape: -t), 10, 5)
    assert found == NegativeCount(1, -1)


def test_a_missing_element_where_coverage_is_claimed() -> None:
    skip = {"count": lambda self, t, T, shape: 1 if t < shape[0] and t != 2 else 0}
    assert find_counterexample(broken(**skip), 5, 5) == Missing(2, 5, 5)
    assert find_counterexample(broken(**skip), 5, 4) is None
    assert find_counterexample(broken(**skip, covers=False), 5, 5) is None


def test_a_count_beyond_the_array_ends_the_search_early() -> None:
    found = find_counterexample(broken(count=lambda *_: 2**60, index=lambda s, t, k, T, shape: k), 10, 1)
    assert found == OutOfRange(0, 10, 10, (10,))


@pytest.mark.parametrize(
    "members, reason",
    [
        ({"index": lambda s, t, k, T, shape: t * 2**62 * 4 // 2**64}, "the product of"),
        ({"index": lambda s, t, k, T, shape: 2**63 + t - 2**63}, "the sum of"),
        ({"index": lambda s, t, k, T, shape: (t + 2) ** 63 % 8}, "the power of"),
        ({"index": lambda s, t, k, T, shape: (t > 0) * 2**70}, "returned 1180591620717411303424"),
        ({"index": lambda s, t, k, T, shape: t / 1}, "not an integer"),
        ({"index": lambda s, t, k, T, shape: t // (t - t)}, "zero"),
        ({"index": lambda s, t, k, T, shape: (t,)}, "not an integer"),
        ({"count": lambda s, t, T, shape: None}, "not an integer"),
        ({"threads": lambda s, shape: shape, "count": lambda *_: 0}, "not an integer"),
    ],
)
def test_arithmetic_is_int64(members: dict[str, Any], reason: str) -> None:
    found = find_counterexample(broken(**members), 10, 8)
    assert isinstance(found, Fault)
    assert reason in str(found)


def test_parameters_are_int64_too() -> None:
    class Scaled(OneEach):
        def __init__(self, scale: int) -> None:
            self.scale = scale

        def index(self, t: Any, k: Any, T: Any, shape: Any) -> Any:
            return self.scale * 4 // 2**62 + t

    for scale in (2**62, Runtime(2**62)):
        found = find_counterexample(Scaled(scale), 10, 8)
        assert isinstance(found, Fault)
        assert (
            str(found) == "thread 0, slot 0, index: the product of 4611686018427387904 and 4 overflows int64"
        )


def test_index_arrays_are_not_read_from_the_end() -> None:
    class Table(OneEach):
        index_arrays = ("table",)

        def __init__(self) -> None:
            self.table = [4, 2, 0]

        def index(self, t: Any, k: Any, T: Any, shape: Any) -> Any:
            return self.table[t - 1]

    found = find_counterexample(Table(), 10, 8)
    assert str(found) == "thread 0, slot 0, index: reads table[-1], outside its 3 numbers"


def test_a_lattice_must_agree_with_count_and_index() -> None:
    class Wrong(Chunked1D):
        def local_shape(self, t: Any, T: Any, shape: Any) -> Any:
            return self.k

    found = find_counterexample(Wrong(4), 10, 3)
    assert found == LatticeMismatch(2, "count", 2, 4)

    class Shifted(Chunked1D):
        def origin(self, t: Any, T: Any, shape: Any) -> Any:
            return t * self.k + 1

    found = find_counterexample(Shifted(4), 10, 3)
    assert found == LatticeMismatch(0, "index", 0, 1, slot=0)
    assert "slot 0: index is 0, but origin, local_shape and step give 1" in str(found)


def test_launches_of_the_wrong_form_are_explained() -> None:
    with pytest.raises(ValueError, match=r"arrays of 2 axes, not of shape \(3,\)"):
        enumerate_launch(Linear2D(), 3, (1, 1))
    with pytest.raises(ValueError, match="2 extents in axis order, not 4"):
        enumerate_launch(Linear2D(), (3, 3), 4)
    with pytest.raises(TypeError, match="number of threads must be an integer"):
        enumerate_launch(GridStride1D(), 3, 2.0)


def test_ownership_lists_every_owner() -> None:
    strategy = broken(index=lambda self, t, k, T, shape: t % 2)
    assert ownership(strategy, 10, 3) == {0: [(0, 0), (2, 0)], 1: [(1, 0)]}


def test_refusals_survive_pickling() -> None:
    with pytest.raises(PartitionRefused) as caught:
        enumerate_launch(broken(index=lambda *_: 0), 4, 4)
    twin = pickle.loads(pickle.dumps(caught.value))
    assert (str(twin), twin.counterexample) == (str(caught.value), caught.value.counterexample)
