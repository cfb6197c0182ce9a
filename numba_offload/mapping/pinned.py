"""Arrays in page-locked memory, from which and to which a GPU copies directly, at the full speed of its bus."""

from __future__ import annotations

import math
import operator
import weakref
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from numba_offload.errors import TargetError, UnsupportedArrayError
from numba_offload.mapping.residency import MEMORY_OWNERS
from numba_offload.targets.base import DeviceMemory
from numba_offload.targets.registry import current_target

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

_ALIGNMENT = 64
"""Of plain memory, in bytes: a cache line, and what the widest vector instructions ask for."""


def pinned_empty(
    shape: int | Sequence[int], dtype: DTypeLike = np.float64, order: Literal["C", "F"] = "C"
) -> np.ndarray:
    """An array of undefined content, as ``np.empty``, that the current target's device copies from and to directly.

    It is an ``np.ndarray`` like any other. Its memory is page-locked as long as it or a view of it lives. Where the target
    has no use for that, on the CPU, the memory is plain, so that programs run everywhere. Raises TargetError where the
    system gives no such memory, UnsupportedArrayError for a dtype with Python objects, and ValueError for a shape or
    order that is none.
    """
    dtype, shape = np.dtype(dtype), _shape(shape)
    if dtype.hasobject:
        raise UnsupportedArrayError(
            f"a pinned array of dtype {dtype}: Python objects cannot be copied to a device. Use a numeric dtype"
        )
    if order not in ("C", "F"):
        raise ValueError(f"a pinned array of order {order!r}: expected 'C' or 'F'")
    if dtype.subdtype is not None:
        dtype, inner = dtype.subdtype
        shape = (*shape, *inner)
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes >= 2**63:
        raise ValueError(f"a pinned array of shape {shape}, dtype {dtype}: {nbytes} bytes are more than an array can have")
    if nbytes == 0:
        return np.empty(shape, dtype, order)
    return np.ndarray(shape, dtype, _memory(nbytes), order=order)


def pinned_zeros(
    shape: int | Sequence[int], dtype: DTypeLike = np.float64, order: Literal["C", "F"] = "C"
) -> np.ndarray:
    """An array of zeros, otherwise as ``pinned_empty``."""
    array = pinned_empty(shape, dtype, order)
    array.view(np.ndarray)[...] = np.zeros((), array.dtype)
    return array


def _shape(shape: int | Sequence[int]) -> tuple[int, ...]:
    try:
        found = (operator.index(shape),)  # type: ignore[arg-type]
    except TypeError:
        try:
            found = tuple(operator.index(size) for size in shape)  # type: ignore[union-attr, assignment]
        except TypeError:
            raise TypeError(f"a pinned array of shape {shape!r}: expected an integer, or a tuple of integers") from None
    if any(size < 0 for size in found):
        raise ValueError(f"a pinned array of shape {found}: negative dimensions are not allowed")
    return found


def _memory(nbytes: int) -> np.ndarray:
    """Memory as an array of bytes, which keeps it."""
    memory = current_target().device.memory
    try:
        address = memory.allocate_pinned(nbytes)
    except TargetError as error:
        raise TargetError(
            f"no page-locked memory for a pinned array of {nbytes} bytes: {error}. Use a plain NumPy array, or drop others"
        ) from error
    if address is None:
        plain = np.empty(nbytes + _ALIGNMENT, np.uint8)
        start = -plain.__array_interface__["data"][0] % _ALIGNMENT
        return plain[start : start + nbytes]
    return np.asarray(_PageLocked(memory, address, nbytes))


class _PageLocked:
    """Carries page-locked memory to NumPy, whose arrays keep it as their base. The memory goes with it."""

    __slots__ = ("__array_interface__", "__weakref__")

    def __init__(self, memory: DeviceMemory, address: int, nbytes: int) -> None:
        self.__array_interface__: dict[str, Any] = {
            "version": 3, "data": (address, False), "shape": (nbytes,), "typestr": "|u1",
        }  # fmt: skip
        # Not when the interpreter ends: the driver may be gone by then, and the system takes the memory back.
        weakref.finalize(self, _unlock, memory, address).atexit = False


MEMORY_OWNERS.add(_PageLocked)


def _unlock(memory: DeviceMemory, address: int) -> None:
    # Copies have ended by now: the calls that make them keep the array and wait. No lock is taken here, as a finalizer may
    # run with any of them held.
    with suppress(TargetError):  # a lost device, or a forked child
        memory.free_pinned(address)
