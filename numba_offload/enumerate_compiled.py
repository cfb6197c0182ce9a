"""Check one launch of a user's strategy exhaustively in compiled code: every thread, every slot, in the machine's integers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba.core import types

from numba_offload.device.strategies import runtime_values
from numba_offload.device.types import MutableArrayType, StrategyType
from numba_offload.failures import failure
from numba_offload.known_strategies import known_strategy
from numba_offload.specialisation import Checks
from numba_offload.targets.base import LaunchConfig
from numba_offload.targets.entry import flat_slots
from numba_offload.targets.options import CompileOptions
from numba_offload.targets.source import KernelSource
from partitioning import (
    Counterexample,
    Fault,
    Finding,
    LatticeMismatch,
    LaunchRefused,
    Missing,
    NegativeCount,
    OutOfRange,
    PartitioningStrategy,
    has_lattice,
)

_DUPLICATE, _OUTSIDE, _NEGATIVE, _LATTICE, _EXTENTS, _READABLE = 1, 2, 3, 4, 5, 6
_OUT = 12


def _flat1(index, shape):  # type: ignore[no-untyped-def]
    return index if 0 <= index < shape[0] else -1


def _flat2(index, shape):  # type: ignore[no-untyped-def]
    i, j = index
    return i * shape[1] + j if 0 <= i < shape[0] and 0 <= j < shape[1] else -1


def _flat3(index, shape):  # type: ignore[no-untyped-def]
    i, j, k = index
    inside = 0 <= i < shape[0] and 0 <= j < shape[1] and 0 <= k < shape[2]
    return (i * shape[1] + j) * shape[2] + k if inside else -1


def _lattice1(origin, step, extent, k):  # type: ignore[no-untyped-def]
    return origin + k * step


def _lattice2(origin, step, extent, k):  # type: ignore[no-untyped-def]
    return (origin[0] + k // extent[1] * step[0], origin[1] + k % extent[1] * step[1])


def _lattice3(origin, step, extent, k):  # type: ignore[no-untyped-def]
    plane = extent[1] * extent[2]
    return (
        origin[0] + k // plane * step[0],
        origin[1] + k % plane // extent[2] * step[1],
        origin[2] + k % extent[2] * step[2],
    )


class _DeviceFunction:
    """A function of this module as kernel code sees it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.__offload_function__ = function


# The elements of a lattice, or -1 where an extent is negative or beyond the array's: the product could wrap around.


def _slots1(extent, shape):  # type: ignore[no-untyped-def]
    return extent if 0 <= extent <= shape[0] else -1


def _slots2(extent, shape):  # type: ignore[no-untyped-def]
    if min(extent[0], extent[1]) == 0:
        return 0
    inside = 0 < extent[0] <= shape[0] and 0 < extent[1] <= shape[1]
    return extent[0] * extent[1] if inside else -1


def _slots3(extent, shape):  # type: ignore[no-untyped-def]
    if min(extent[0], extent[1], extent[2]) == 0:
        return 0
    inside = 0 < extent[0] <= shape[0] and 0 < extent[1] <= shape[1] and 0 < extent[2] <= shape[2]
    return extent[0] * extent[1] * extent[2] if inside else -1


_SLOTS = {1: _DeviceFunction(_slots1), 2: _DeviceFunction(_slots2), 3: _DeviceFunction(_slots3)}
_FLAT = {1: _DeviceFunction(_flat1), 2: _DeviceFunction(_flat2), 3: _DeviceFunction(_flat3)}
_AT = {1: _DeviceFunction(_lattice1), 2: _DeviceFunction(_lattice2), 3: _DeviceFunction(_lattice3)}
_ONES: dict[int, Any] = {1: 1, 2: (1, 1), 3: (1, 1, 1)}


def _make_thread_check(ndim: int, lattice: bool, stepped: bool, readable: bool) -> Callable[..., Any]:
    """One thread's slots: returns whether a fault was found, and describes it in ``out``."""
    flat, at, ones, slots = _FLAT[ndim], _AT[ndim], _ONES[ndim], _SLOTS[ndim]

    def check_thread(strategy, number, t, T, shape, owner, out):  # type: ignore[no-untyped-def]
        out[1] = number
        count = strategy.count(t, T, shape)
        if count < 0:
            out[0], out[2] = 3, count
            return True
        if lattice:
            # A loop over indices() runs over the lattice: its size is what the thread really writes.
            product = slots(strategy.local_shape(t, T, shape), shape)
            if product != count:
                out[0], out[2], out[3] = 5, count, product
                return True
        for k in range(count):
            index = strategy.index(t, k, T, shape)
            element = flat(index, shape)
            out[2], out[3] = k, element
            if element < 0:
                out[0] = 2
                return True
            if owner[element] >= 0:
                out[0], out[4] = 1, owner[element]
                return True
            owner[element] = number
            if readable:  # a constant in compiled code: without the method there is nothing to call
                if strategy.readable(index, shape):
                    out[0] = 6
                    return True
            if lattice:
                origin = strategy.origin(t, T, shape)
                extent = strategy.local_shape(t, T, shape)
                if stepped:
                    same = flat(at(origin, strategy.step(t, T, shape), extent, k), shape)
                else:
                    same = flat(at(origin, ones, extent, k), shape)
                if same != element:
                    out[0] = 4
                    return True
        return False

    return check_thread


def _make_launch_check(check_thread: Any, axes: int) -> Callable[..., Any]:
    """All threads, for linear (0 axes) or tuple coordinates."""
    if axes == 0:

        def check_linear(strategy, T, shape, owner, out):  # type: ignore[no-untyped-def]
            for t in range(T):
                if check_thread(strategy, t, t, T, shape, owner, out):
                    return

        return check_linear
    if axes == 1:

        def check_one(strategy, T, shape, owner, out):  # type: ignore[no-untyped-def]
            for i in range(T[0]):
                if check_thread(strategy, i, (i,), T, shape, owner, out):
                    return

        return check_one
    if axes == 2:

        def check_plane(strategy, T, shape, owner, out):  # type: ignore[no-untyped-def]
            for i in range(T[0]):
                for j in range(T[1]):
                    if check_thread(strategy, i * T[1] + j, (i, j), T, shape, owner, out):
                        return

        return check_plane

    def check_volume(strategy, T, shape, owner, out):  # type: ignore[no-untyped-def]
        for i in range(T[0]):
            for j in range(T[1]):
                for k in range(T[2]):
                    if check_thread(strategy, (i * T[1] + j) * T[2] + k, (i, j, k), T, shape, owner, out):
                        return

    return check_volume


@dataclass
class _Checker:
    code: Any
    target: Any


_checkers: dict[StrategyType, _Checker] = {}


def _checker(strategy: PartitioningStrategy, axes: int, checks: Checks | None) -> _Checker:
    ty = known_strategy(strategy).type
    known = _checkers.get(ty)
    if known is None:
        from numba_offload.targets.cpu.target import CPUTarget

        lattice = has_lattice(strategy)
        stepped = lattice and hasattr(strategy, "step")
        thread_check = _make_thread_check(strategy.ndim, lattice, stepped, hasattr(strategy, "readable"))
        function = _make_launch_check(_DeviceFunction(thread_check), axes)
        raw = MutableArrayType(types.int64, 1, "C", frozenset())
        where = types.int64 if axes == 0 else types.UniTuple(types.int64, axes)
        argtypes = (ty, where, types.UniTuple(types.int64, strategy.ndim), raw, raw)
        names = ("strategy", "T", "shape", "owner", "out")
        options = CompileOptions(boundscheck=False, unsafe=True)
        source = KernelSource("partition_check", function, argtypes, options, tuple(flat_slots(names, argtypes)))
        target = CPUTarget()
        images = None if checks is None else checks(ty, function)
        image = None if images is None else images.find(target, frozenset())
        if image is None:
            image = target.build(source)
            if images is not None:
                images.keep(target, image)
        image.check_layout(source.name, source.layout)
        known = _checkers[ty] = _Checker(target.load(image, source.name), target)
    return known


def _nobody(strategy: PartitioningStrategy, shape: tuple[int, ...]) -> np.ndarray:
    """No owner for any element yet."""
    try:
        return np.full(math.prod(shape), -1, np.int64)
    except MemoryError:
        raise LaunchRefused(
            f"{strategy!r} cannot be checked on shape {shape}: it takes eight bytes for each element, and there is not so much "
            "memory; use one of the package's partitions, which need no check, or launch on parts of the array"
        ) from None


def find_fault(
    strategy: PartitioningStrategy, shape: tuple[int, ...], T: Any, checks: Checks | None = None
) -> Finding | None:
    """The first fault in a launch of ``T`` threads (in the strategy's coordinates), or None.

    ``checks`` has compiled code of checks that was made before.

    Takes about a hundredth of a microsecond a slot, and eight bytes an element while it runs.
    """
    axes = 0 if strategy.coordinates == "linear" else len(T)
    checker = _checker(strategy, axes, checks)
    owner = _nobody(strategy, shape)
    out = np.zeros(_OUT, np.int64)
    extents = [T] if axes == 0 else list(T)
    flat: list[Any] = []
    for value in runtime_values(strategy):
        flat += [value] if isinstance(value, int) else value.buffer_info()
    flat += [*extents, *shape, owner.ctypes.data, owner.size, out.ctypes.data, out.size]
    report = checker.target.launch(checker.code, flat, LaunchConfig((1, 1, 1), (1, 1, 1), (1, 1, 1)))
    if report is not None:
        linear = strategy.coordinates == "linear"
        raised = failure("the check", report, checker.code.image.sites)
        return Fault(_thread(int(out[1]), extents, linear), "a method", f"raised {raised!r}")
    if out[0]:
        return _finding(strategy, shape, T, extents, [int(v) for v in out])
    if strategy.covers_shape(shape) and (owner < 0).any():
        return Missing(_element(int(np.argmax(owner < 0)), shape), T, strategy.threads(shape))
    return None


def _thread(number: int, extents: Sequence[int], linear: bool) -> Any:
    return number if linear else tuple(int(v) for v in np.unravel_index(number, extents))


def _element(flat: int, shape: tuple[int, ...]) -> Any:
    return flat if len(shape) == 1 else tuple(int(v) for v in np.unravel_index(flat, shape))


def _finding(
    strategy: PartitioningStrategy, shape: tuple[int, ...], T: Any, extents: Sequence[int], out: list[int]
) -> Finding:
    kind, number, slot, element, other = out[:5]
    linear = strategy.coordinates == "linear"
    thread = _thread(number, extents, linear)
    if kind == _NEGATIVE:
        return NegativeCount(thread, slot)
    if kind == _EXTENTS:
        return LatticeMismatch(thread, "count", slot, element if element >= 0 else "no block of the array")
    index = strategy.index(thread, slot, T, shape)
    if kind == _OUTSIDE:
        return OutOfRange(thread, slot, index, shape)
    if kind == _LATTICE:
        return LatticeMismatch(thread, "index", index, "another element", slot)
    if kind == _READABLE:
        return Fault(thread, "readable", f"says that no thread writes element {index}, but this one does", slot=slot)
    first = _thread(other, extents, linear)
    wanted = _element(element, shape)
    slots = range(min(strategy.count(first, T, shape), math.prod(shape)))
    slot_a = next((k for k in slots if strategy.index(first, k, T, shape) == wanted), None)
    if slot_a is None:
        reason = f"gives element {wanted} in the machine's integers only: its arithmetic overflows int64"
        return Fault(first, "index", reason)
    return Counterexample(first, slot_a, thread, slot, wanted)
