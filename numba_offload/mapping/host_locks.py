"""Host arrays that may not be written for a while: NumPy's own flag, set on an array and on what it is a view of.

NumPy gives no way to lock views that exist already; they keep their own flags.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from numba_offload.mapping.snapshot import flags_address

_WRITEABLE = 0x0400
"""NumPy's ``NPY_ARRAY_WRITEABLE``."""


@dataclass(slots=True)
class _Locked:
    """A locked array, kept alive: its id is what it is found by."""

    array: np.ndarray
    count: int
    was_writable: bool


class HostLocks:
    """Arrays locked against writes, and what each was before. Not thread-safe: its owner has a lock."""

    def __init__(self) -> None:
        self._locked: dict[int, _Locked] = {}

    def lock(self, array: np.ndarray) -> list[np.ndarray]:
        """Lock an array and the arrays whose memory it is; returns what to unlock, in this order."""
        chain = list(_chain(array))
        for one in chain:
            known = self._locked.get(id(one))
            if known is None:
                self._locked[id(one)] = _Locked(one, 1, one.flags.writeable)
                one.flags.writeable = False
            else:
                known.count += 1
        return chain

    def unlock(self, chain: list[np.ndarray]) -> None:
        """Give up one lock of each; the last one restores what was before."""
        # The owner of the memory first: NumPy makes no view of a read-only array writable.
        for one in reversed(chain):
            known = self._locked[id(one)]
            known.count -= 1
            if not known.count:
                del self._locked[id(one)]
                if known.was_writable:
                    _make_writable(one)

    def writable(self, array: np.ndarray) -> bool:
        """Whether an array could be written if nothing were locked.

        A view that is made while its array is locked is read-only, and counts as writable if the array was.
        """
        if array.flags.writeable:
            return True
        known = [self._locked.get(id(one)) for one in _chain(array)]
        return any(one is not None and one.was_writable for one in known)


def _chain(array: np.ndarray) -> Iterator[np.ndarray]:
    """An array, and the arrays that it is a view of, through memoryviews and ``as_strided`` too."""
    owner: Any = array
    while owner is not None:
        if isinstance(owner, np.ndarray):
            yield owner
            owner = owner.base
        elif isinstance(owner, memoryview):
            owner = owner.obj
        else:
            owner = owner.base if isinstance(getattr(owner, "base", None), np.ndarray) else None


def _make_writable(array: np.ndarray) -> None:
    try:
        array.flags.writeable = True
    except ValueError:
        # NumPy does not know that the memory may be written (it came by DLPack, or the array that owns it is still locked
        # for the sake of other elements). It could be before, so the bit is put back where it was.
        where = flags_address(array)
        if where is not None:
            flags = ctypes.c_int.from_address(where)
            flags.value |= _WRITEABLE
