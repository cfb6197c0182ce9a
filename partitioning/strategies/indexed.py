"""One axis, owners read from an index array. The array is copied and checked when the strategy is made."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from itertools import pairwise

from partitioning.errors import LaunchRefused
from partitioning.index_array import IndexArray, index_array, loaded_numpy
from partitioning.strategy import PartitioningStrategy


class Segments(PartitioningStrategy):
    """Thread s owns the elements [offsets[s], offsets[s+1]). Disjoint because offsets never decrease.

    offsets are integers, one more than there are segments, with offsets[0] >= 0; a launch needs offsets[-1]
    <= n. Segments may be empty. Elements before the first offset and from the last one on have no owner.
    """

    ndim = 1
    index_arrays = ("offsets",)
    # Depends on the array: see covers_shape.
    covers = False

    def __init__(self, offsets: Iterable[int]) -> None:
        self.offsets = index_array(offsets, "Segments' offsets")
        if not len(self.offsets):
            raise ValueError("Segments needs at least one offset: n segments have n + 1 offsets")
        if self.offsets[0] < 0:
            raise ValueError(f"Segments' offsets[0] is {self.offsets[0]}; offsets start at 0 or above")
        at = _first_descent(self.offsets)
        if at is not None:
            raise ValueError(
                f"Segments' offsets[{at}] is {self.offsets[at]}, below offsets[{at - 1}] ="
                f" {self.offsets[at - 1]}; offsets must not decrease"
            )

    def count(self, t: int, T: int, shape: tuple[int, ...]) -> int:
        return self.offsets[t + 1] - self.offsets[t] if t < len(self.offsets) - 1 else 0

    def index(self, t: int, k: int, T: int, shape: tuple[int, ...]) -> int:
        return self.offsets[t] + k

    def threads(self, shape: tuple[int, ...]) -> int:
        return len(self.offsets) - 1

    def origin(self, t: int, T: int, shape: tuple[int, ...]) -> int:
        return self.offsets[t] if t < len(self.offsets) - 1 else shape[0]

    def local_shape(self, t: int, T: int, shape: tuple[int, ...]) -> int:
        return self.count(t, T, shape)

    def covers_shape(self, shape: tuple[int, ...]) -> bool:
        return self.offsets[0] == 0 and self.offsets[-1] == shape[0]

    def check_shape(self, shape: tuple[int, ...]) -> None:
        last = len(self.offsets) - 1
        if self.offsets[last] > shape[0]:
            raise LaunchRefused(
                f"Segments' offsets[{last}] is {self.offsets[last]}, beyond the {shape[0]} elements of the"
                f" array"
            )


class Permuted(PartitioningStrategy):
    """Thread t owns element indices[t]. Disjoint because no number occurs twice.

    indices are distinct integers >= 0, for part of the array or all of it; a launch needs each below n.
    """

    ndim = 1
    index_arrays = ("indices",)
    # Depends on the array: see covers_shape.
    covers = False

    def __init__(self, indices: Iterable[int]) -> None:
        self.indices = index_array(indices, "Permuted's indices")
        if _smallest(self.indices) < 0:
            at, value = next((at, value) for at, value in enumerate(self.indices) if value < 0)
            raise ValueError(
                f"Permuted's indices[{at}] is {value}; an element's number is 0 or more, it does not wrap"
            )
        pair = _first_repeat(self.indices)
        if pair is not None:
            raise ValueError(
                f"Permuted's indices[{pair[0]}] and indices[{pair[1]}] are both {self.indices[pair[0]]}: two"
                f" threads would own one element; indices must be distinct"
            )

    def count(self, t: int, T: int, shape: tuple[int, ...]) -> int:
        return 1 if t < len(self.indices) else 0

    def index(self, t: int, k: int, T: int, shape: tuple[int, ...]) -> int:
        return self.indices[t + k]

    def threads(self, shape: tuple[int, ...]) -> int:
        return len(self.indices)

    def covers_shape(self, shape: tuple[int, ...]) -> bool:
        # Distinct and in range (check_shape), so as many as there are elements are all of them.
        return len(self.indices) == shape[0]

    def check_shape(self, shape: tuple[int, ...]) -> None:
        if self._largest >= shape[0]:
            at = self.indices.index(self._largest)
            raise LaunchRefused(
                f"Permuted's indices[{at}] is {self._largest}, outside the {shape[0]} elements of the array"
            )

    @cached_property
    def _largest(self) -> int:
        # Kept: every launch asks. Cached after sealing, it is no parameter.
        numpy = loaded_numpy()
        if numpy is not None and len(self.indices):
            return int(numpy.frombuffer(self.indices.memory(), dtype=numpy.int64).max())
        return max(self.indices, default=-1)


# A million numbers take NumPy milliseconds. Without NumPy nobody has a million of them at hand.


def _smallest(numbers: IndexArray) -> int:
    numpy = loaded_numpy()
    if numpy is not None and len(numbers):
        return int(numpy.frombuffer(numbers.memory(), dtype=numpy.int64).min())
    return min(numbers, default=0)


def _first_descent(numbers: IndexArray) -> int | None:
    """The first position whose number is below the one before it."""
    numpy = loaded_numpy()
    if numpy is None:
        return next((at for at, (a, b) in enumerate(pairwise(numbers), 1) if b < a), None)
    view = numpy.frombuffer(numbers.memory(), dtype=numpy.int64)
    descents = numpy.flatnonzero(view[1:] < view[:-1])
    return int(descents[0]) + 1 if descents.size else None


def _first_repeat(numbers: IndexArray) -> tuple[int, int] | None:
    """The first position whose number occurred before, after the position where it did."""
    numpy = loaded_numpy()
    if numpy is not None and len(numbers):
        ascending = numpy.sort(numpy.frombuffer(numbers.memory(), dtype=numpy.int64))
        if (ascending[1:] != ascending[:-1]).all():
            return None
    seen: dict[int, int] = {}
    for at, number in enumerate(numbers):
        if number in seen:
            return seen[number], at
        seen[number] = at
    return None
