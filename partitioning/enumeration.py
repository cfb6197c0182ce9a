"""Check one real launch exhaustively, in plain Python: every thread, every slot, in int64 arithmetic."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from partitioning.checks import at_least
from partitioning.errors import PartitionRefused
from partitioning.findings import (
    Coordinates,
    Counterexample,
    Fault,
    Finding,
    LatticeMismatch,
    Missing,
    NegativeCount,
    OutOfRange,
)
from partitioning.int64 import Int64, checked_copy
from partitioning.strategy import PartitioningStrategy, has_lattice


@dataclass(frozen=True)
class Report:
    """A launch that passed: no element has two owners, and none lies outside the array."""

    strategy: PartitioningStrategy
    shape: tuple[int, ...]
    launched: Coordinates
    threads: int
    slots: int
    #: Whether every element has an owner, claimed or not.
    covered: bool


class _Found(Exception):
    def __init__(self, finding: Finding) -> None:
        self.finding = finding


def enumerate_launch(strategy: PartitioningStrategy, shape: Any, T: Any) -> Report:
    """Run `strategy` over every thread of a launch of `T` threads on an array of `shape`.

    `T` is in the strategy's coordinates: an int for "linear", a tuple with one extent per axis for "grid",
    (blocks, block size) for "block". `shape` is a tuple, or an int for one axis.

    Raises PartitionRefused, with a record from `partitioning.findings` as its `counterexample`, where an
    element has two owners, lies outside the array or is missed against the strategy's claim, where a count is
    negative, where the lattice form disagrees with `count` and `index`, or where arithmetic leaves int64.
    Raises LaunchRefused where the strategy does not fit the shape. Stops at the first fault. Takes time in
    proportion to threads and slots, and memory to slots: for launches of up to some million slots.
    """
    shape = as_shape(strategy, shape)
    T = as_launch(strategy, T)
    strategy.check_shape(shape)
    finding, report = _examine(strategy, shape, T)
    if finding is not None:
        raise PartitionRefused(f"{strategy!r} on shape {shape} with {T} threads: {finding}", finding)
    assert report is not None
    return report


def find_counterexample(strategy: PartitioningStrategy, shape: Any, T: Any) -> Finding | None:
    """The first fault that `enumerate_launch` would raise, or None."""
    try:
        enumerate_launch(strategy, shape, T)
    except PartitionRefused as refused:
        return refused.counterexample
    return None


def ownership(
    strategy: PartitioningStrategy, shape: Any, T: Any
) -> dict[Coordinates, list[tuple[Coordinates, int]]]:
    """Every owned element with all its owners as (thread, slot), nothing refused: to look at a partition."""
    shape = as_shape(strategy, shape)
    T = as_launch(strategy, T)
    owners: dict[Coordinates, list[tuple[Coordinates, int]]] = {}
    for t in thread_ids(strategy, T):
        for k in range(strategy.count(t, T, shape)):
            owners.setdefault(strategy.index(t, k, T, shape), []).append((t, k))
    return owners


def as_shape(strategy: PartitioningStrategy, shape: Any) -> tuple[int, ...]:
    """`shape` as a tuple of `strategy.ndim` ints, or an error that says what it should be."""
    extents = tuple(shape) if hasattr(shape, "__iter__") else (shape,)
    if len(extents) != strategy.ndim:
        raise ValueError(f"{strategy!r} partitions arrays of {strategy.ndim} axes, not of shape {extents}")
    return tuple(int(at_least(n, 0, f"shape[{axis}]")) for axis, n in enumerate(extents))


def as_launch(strategy: PartitioningStrategy, T: Any) -> Any:
    """`T` in the strategy's coordinates, or an error that says what it should be."""
    if strategy.coordinates == "linear":
        return int(at_least(T, 0, "the number of threads"))
    wanted = 2 if strategy.coordinates == "block" else strategy.ndim
    form = "(blocks, block size)" if strategy.coordinates == "block" else f"{wanted} extents in axis order"
    if not hasattr(T, "__iter__") or len(tuple(T)) != wanted:
        raise ValueError(f"{strategy!r} takes its threads as {form}, not {T!r}")
    return tuple(int(at_least(extent, 0, f"threads[{at}]")) for at, extent in enumerate(T))


def thread_ids(strategy: PartitioningStrategy, T: Any) -> Iterator[Any]:
    """Every thread of a launch, in the strategy's coordinates."""
    if strategy.coordinates == "linear":
        return iter(range(T))
    return itertools.product(*(range(extent) for extent in T))


def launch_suffices(strategy: PartitioningStrategy, shape: tuple[int, ...], T: Any) -> bool:
    """Whether a launch of `T` threads is as large as the strategy asks for."""
    needed = strategy.threads(shape)
    if strategy.coordinates == "linear":
        return bool(needed <= T)
    if strategy.coordinates == "block":
        return T[0] * T[1] >= needed and T[0] >= strategy.blocks(shape)
    return all(have >= need for have, need in zip(T, needed, strict=True))


def _examine(
    strategy: PartitioningStrategy, shape: tuple[int, ...], T: Any
) -> tuple[Finding | None, Report | None]:
    try:
        return None, _walk(strategy, shape, T)
    except _Found as found:
        return found.finding, None


def _walk(strategy: PartitioningStrategy, shape: tuple[int, ...], T: Any) -> Report:
    checked = _Methods(strategy, shape, T)
    # A dict rather than an array of the array's size: an array of 2**62 elements can be asked about too.
    owners: dict[Coordinates, tuple[Coordinates, int]] = {}
    size = math.prod(shape)
    threads = 0
    for t in thread_ids(strategy, T):
        threads += 1
        count = checked.count(t)
        if count < 0:
            raise _Found(NegativeCount(t, count))
        lattice = checked.lattice(t, count) if has_lattice(strategy) else None
        # Ends early whatever the count: after `size` slots the next is a duplicate or out of range.
        for k in range(count):
            element = checked.index(t, k)
            _check_range(t, k, element, shape)
            if lattice is not None and element != lattice.element(k):
                raise _Found(LatticeMismatch(t, "index", element, lattice.element(k), slot=k))
            if element in owners:
                first, slot = owners[element]
                raise _Found(Counterexample(first, slot, t, k, element))
            owners[element] = (t, k)
    needed = checked.threads()
    covered = len(owners) == size
    if not covered and strategy.covers_shape(shape) and launch_suffices(strategy, shape, T):
        raise _Found(Missing(_first_missing(owners, shape), T, needed))
    return Report(strategy, shape, T, threads, len(owners), covered)


def _check_range(t: Coordinates, k: int, element: Coordinates, shape: tuple[int, ...]) -> None:
    parts = element if isinstance(element, tuple) else (element,)
    if not all(0 <= i < n for i, n in zip(parts, shape, strict=True)):
        raise _Found(OutOfRange(t, k, element, shape))


def _first_missing(owners: dict[Coordinates, Any], shape: tuple[int, ...]) -> Coordinates:
    every: Iterator[Any] = itertools.product(*map(range, shape)) if len(shape) > 1 else iter(range(shape[0]))
    return next(element for element in every if element not in owners)


@dataclass(frozen=True)
class _Lattice:
    origin: tuple[int, ...]
    local_shape: tuple[int, ...]
    step: tuple[int, ...]

    def element(self, k: int) -> Coordinates:
        """The element of slot `k` in row-major order."""
        parts = []
        for origin, extent, step in zip(
            reversed(self.origin), reversed(self.local_shape), reversed(self.step), strict=True
        ):
            parts.append(origin + k % extent * step)
            k //= extent
        return parts[0] if len(parts) == 1 else tuple(reversed(parts))


class _Methods:
    """A strategy's methods run in checked int64 arithmetic; whatever goes wrong in one becomes a finding."""

    def __init__(self, strategy: PartitioningStrategy, shape: tuple[int, ...], T: Any) -> None:
        self._strategy = checked_copy(strategy)
        self._ndim = strategy.ndim
        self._needed_ndim = strategy.ndim if strategy.coordinates == "grid" else 1
        self._shape = tuple(map(Int64, shape))
        self._T = _as_int64(T)

    def count(self, t: Any) -> int:
        value = self._call("count", t, None, _as_int64(t), self._T, self._shape)
        return self._integer(value, "count", t, None)

    def index(self, t: Any, k: int) -> Coordinates:
        value = self._call("index", t, k, _as_int64(t), Int64(k), self._T, self._shape)
        return self._coordinates(value, "index", t, k, self._ndim)

    def threads(self) -> Coordinates:
        value = self._call("threads", None, None, self._shape)
        return self._coordinates(value, "threads", None, None, self._needed_ndim)

    def lattice(self, t: Any, count: int) -> _Lattice:
        """The lattice of thread `t`, after checking that its size is `count`."""
        origin = self._lattice_part("origin", t)
        local = self._lattice_part("local_shape", t)
        step = self._lattice_part("step", t) if hasattr(self._strategy, "step") else (1,) * self._ndim
        if min(local) < 0:
            raise _Found(Fault(t, "local_shape", f"returned {local}; each extent must be 0 or more"))
        if math.prod(local) != count:
            raise _Found(LatticeMismatch(t, "count", count, math.prod(local)))
        return _Lattice(origin, local, step)

    def _lattice_part(self, method: str, t: Any) -> tuple[int, ...]:
        value = self._call(method, t, None, _as_int64(t), self._T, self._shape)
        parts = self._coordinates(value, method, t, None, self._ndim)
        return parts if isinstance(parts, tuple) else (parts,)

    def _call(self, method: str, t: Any, k: int | None, *args: Any) -> Any:
        try:
            return getattr(self._strategy, method)(*args)
        except NotImplementedError:
            raise
        except (ArithmeticError, IndexError) as error:
            raise _Found(Fault(t, method, str(error), slot=k)) from error

    def _coordinates(self, value: Any, method: str, t: Any, k: int | None, ndim: int) -> Coordinates:
        if ndim == 1:
            return self._integer(value, method, t, k)
        if not isinstance(value, tuple) or len(value) != ndim:
            raise _Found(Fault(t, method, f"returned {value!r}, not a tuple of {ndim} integers", slot=k))
        return tuple(self._integer(part, method, t, k) for part in value)

    def _integer(self, value: Any, method: str, t: Any, k: int | None) -> int:
        try:
            number = operator.index(value)
        except TypeError:
            reason = f"returned {value!r} ({type(value).__name__}), not an integer"
            raise _Found(Fault(t, method, reason, slot=k)) from None
        if not -(2**63) <= number < 2**63:
            raise _Found(Fault(t, method, f"returned {number}, which overflows int64", slot=k))
        return number


def _as_int64(value: Any) -> Any:
    return tuple(map(Int64, value)) if isinstance(value, tuple) else Int64(value)
