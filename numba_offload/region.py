"""Region: an array and who owns what of it, on the host."""

from __future__ import annotations

import dataclasses
from typing import Any

from numba_offload.accumulator import Accumulator
from numba_offload.errors import LaunchError, UnsupportedArrayError
from numba_offload.handle import written_array
from numba_offload.mapping.arrays import Array, DeviceArray
from partitioning import LaunchRefused, Linear1D, Linear2D, Linear3D, PartitioningStrategy

_DEFAULTS: dict[int, PartitioningStrategy] = {1: Linear1D(), 2: Linear2D(), 3: Linear3D()}


class Region:
    """An array to be written by a kernel, partitioned among its threads.

    Parameters
    ----------
    array
        A NumPy array, anything with ``__cuda_array_interface__`` or DLPack, or the handle of a ``preload_mut``. It is
        referred to, not copied.
        A 0-d array is partitioned as an array of one element.
    strategy
        Who owns what. Default: one element a thread (``Linear1D``, ``Linear2D`` or ``Linear3D`` by the number of
        axes).

    Raises
    ------
    UnsupportedArrayError
        ``array`` is not an array.
    BorrowError
        ``array`` is a handle for reading, or ``preload_mut`` holds it and its handle is to be passed.
    LaunchError
        The strategy is for another number of axes, or cannot partition an array of this shape.
    """

    __slots__ = ("array", "source", "strategy")

    def __init__(self, array: Any, strategy: PartitioningStrategy | None = None) -> None:
        if isinstance(array, PartitioningStrategy):
            raise LaunchError(
                f"Region({array!r}, ...): the array comes first, then the strategy; write "
                f"Region(array, {type(array).__name__}(...))"
            )
        if isinstance(array, Region | Accumulator):
            kind = "a Region" if isinstance(array, Region) else "an Accumulator"
            raise UnsupportedArrayError(
                f"Region(...) takes an array, not {kind}: one argument of a kernel is "
                "either a Region (each thread writes its own elements) or an Accumulator (all threads update any); pass the "
                "array itself"
            )
        found = written_array(array, "Region")
        if found is None:
            raise UnsupportedArrayError(
                f"Region(...) takes an array, not {type(array).__name__}; convert it with numpy.asarray first"
            )
        if found.ndim == 0:
            found = _as_one_element(found)
        if found.ndim > len(_DEFAULTS):
            given = "" if strategy is None else f", {strategy!r}"
            raise LaunchError(
                f"Region(array{given}) of {found.ndim} axes has no default partition. To name a strategy, pass a view of one to "
                f"{len(_DEFAULTS)} axes, which strategies are for: array.reshape(len(array), -1) is one, of a contiguous array"
            )
        if strategy is None:
            strategy = _DEFAULTS[found.ndim]
        if isinstance(strategy, type) and issubclass(strategy, PartitioningStrategy):
            raise LaunchError(
                f"Region(array, {strategy.__name__}) was given a class; give an instance: {strategy.__name__}(...)"
            )
        if not isinstance(strategy, PartitioningStrategy):
            raise LaunchError(
                f"Region(array, {strategy!r}): the second argument must be a PartitioningStrategy, such as Linear1D()"
            )
        if strategy.ndim != found.ndim:
            raise LaunchError(
                f"Region: {type(strategy).__name__} partitions arrays of {strategy.ndim} axes, but the array has "
                f"{found.ndim} (shape {tuple(found.shape)})"
            )
        try:
            strategy.check_shape(tuple(found.shape))
        except LaunchRefused as refused:
            raise LaunchError(f"Region over an array of shape {tuple(found.shape)}: {refused}") from None
        self.source = array
        self.array: Array = found
        self.strategy = strategy

    @property
    def shape(self) -> tuple[int, ...]:
        """The array's shape."""
        return tuple(self.array.shape)

    @property
    def dtype(self) -> Any:
        """The array's dtype."""
        return self.array.dtype

    def __repr__(self) -> str:
        return f"Region(<{self.dtype} array of shape {self.shape}>, {self.strategy!r})"


def _as_one_element(array: Array) -> Array:
    """A 0-d array as one of shape (1,), in the same memory."""
    if isinstance(array, DeviceArray):
        return dataclasses.replace(array, shape=(1,), strides=(array.dtype.itemsize,))
    return array.reshape(1)
