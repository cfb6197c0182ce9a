"""A launch like an earlier one: the same arrays, unchanged; or the same handles of preloads.

Loops call a kernel over and over with the same arrays. Everything that a call works out then follows from the earlier one,
as long as each array is the same and has the memory, shape, strides and dtype that it had; only scalars may differ. That
is checked here, at a fraction of the cost of taking the arguments apart.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from numba_offload.arguments import Arguments, ArrayLeaf
from numba_offload.execution import Launched
from numba_offload.handle import Handle
from numba_offload.known_strategies import known_strategy
from numba_offload.mapping.borrow import BORROWS
from numba_offload.mapping.snapshot import Snapshot, snapshot
from numba_offload.region import Region
from numba_offload.targets.layout import Slot
from numba_offload.verify import is_ours
from partitioning import PartitioningStrategy

_FREE_SCALARS = (float, np.float64, np.float32)
_SETTLED_SCALARS = (int, bool, np.int64, np.int32)
"""The choice of code may depend on an integer, and Python's may need another width: only the same value repeats."""


@dataclass(frozen=True, slots=True)
class _SameHandle:
    """A preload's handle. It does not change, and its release shows in ``BORROWS.version``."""

    handle: weakref.ref[Handle]

    def matches(self, given: Any) -> bool:
        """Whether this is the same object."""
        return given is not None and given is self.handle()


@dataclass(frozen=True, slots=True)
class _Array:
    """An argument that is an ndarray or a handle, or a Region over one, as it was."""

    strategy: weakref.ref[PartitioningStrategy] | None
    array: Snapshot | _SameHandle
    preloaded: bool


@dataclass(frozen=True, slots=True)
class _Scalar:
    """An argument by value: of the same type, at this position among the flat arguments."""

    type: type
    position: int
    settled: Any
    """The value that it must have; None: any."""


@dataclass(frozen=True, slots=True)
class Relaunch:
    """What to repeat, and when it may be."""

    asked: Any
    captured: tuple[Any, ...]
    items: tuple[_Array | _Scalar, ...]
    launched: Launched
    borrows: int
    """``BORROWS.version``: no array was preloaded or released since."""

    def arrays(self, args: Sequence[Any]) -> list[Any]:
        """The ndarrays among arguments that are like that launch's."""
        given = (arg for arg, item in zip(args, self.items, strict=True) if type(item) is _Array)
        return [arg.array if type(arg) is Region else arg for arg in given]

    def arguments(self, args: Sequence[Any]) -> list[Any] | None:
        """The flat arguments for these, or None where anything but a free scalar differs from that launch."""
        if len(args) != len(self.items) or BORROWS.version != self.borrows:
            return None
        flat = self.launched.flat.copy()
        for arg, item in zip(args, self.items, strict=True):
            if type(item) is _Array:
                if item.strategy is None:
                    if not item.array.matches(arg):
                        return None
                    continue
                if type(arg) is not Region or not item.array.matches(arg.source if item.preloaded else arg.array):
                    return None
                wanted = item.strategy()
                if arg.strategy is not wanted and known_strategy(arg.strategy).strategy is not wanted:
                    return None
            else:
                if type(arg) is not item.type or (item.settled is not None and arg != item.settled):  # type: ignore[union-attr]
                    return None
                flat[item.position] = arg  # type: ignore[union-attr]
        return flat


def repeatable(
    args: Sequence[Any], names: Sequence[str], arguments: Arguments, layout: Sequence[Slot], arrays: bool
) -> tuple[_Array | _Scalar, ...] | None:
    """What another call must have in common with this one, or None where an argument is of a kind not looked at here.

    ``arrays``: whether the launch can be repeated with arrays of the host.
    """
    if len(arguments.values) != len(args):
        return None  # captured arrays, tuples, complex numbers
    positions = {slot.name: k for k, slot in enumerate(layout)}
    items: list[_Array | _Scalar] = []
    for arg, name, value in zip(args, names, arguments.values, strict=True):
        if isinstance(value, ArrayLeaf):
            array = value.array
            handle = value.handle
            if not isinstance(array, np.ndarray) or not (arg is array or arg is handle or type(arg) is Region):
                return None
            if handle is None and not arrays:
                return None
            if value.strategy is not None and not is_ours(known_strategy(value.strategy).type):
                return None  # its methods may refer to values that change
            seen = snapshot(array) if handle is None else _SameHandle(weakref.ref(handle))
            if seen is None:
                return None
            strategy = None if value.strategy is None else weakref.ref(value.strategy)
            items.append(_Array(strategy, seen, handle is not None))
        elif type(arg) in _FREE_SCALARS:
            items.append(_Scalar(type(arg), positions[name], None))
        elif type(arg) in _SETTLED_SCALARS:
            items.append(_Scalar(type(arg), positions[name], arg))
        else:
            return None
    return tuple(items)
