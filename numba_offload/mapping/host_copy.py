"""The host's side of a copy: where its bytes are, and how parts of them reach memory that a device copies from.

``read`` and ``write`` take any part of the bytes that begins and ends at a multiple of ``step``. They release the
interpreter's lock while they copy.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from numba_offload.errors import TargetError
from numba_offload.mapping.arrays import c_strides
from numba_offload.mapping.layout import Layout, address, distinct_shape, raw_view

_LARGE_ITEM = 4096
"""Bytes of a record that is cut like an axis of its array."""

Move = Callable[[int, int, int], None]
"""A copy between host and device: destination, source, bytes."""


class HostBytes(NamedTuple):
    """Bytes one behind the other."""

    address: int
    step: int = 1

    def read(self, offset: int, nbytes: int, destination: int) -> None:
        """Copy a part to ``destination``."""
        ctypes.memmove(destination, self.address + offset, nbytes)

    def write(self, offset: int, nbytes: int, source: int) -> None:
        """Fill a part from ``source``."""
        ctypes.memmove(self.address + offset, source, nbytes)


class HostElements:
    """The distinct elements of a strided array, in C order. They are written even while a preload locks the array."""

    address = None

    def __init__(self, layout: Layout) -> None:
        shape, strides, itemsize = distinct_shape(layout), layout.strides, layout.itemsize
        if itemsize > _LARGE_ITEM or not shape:
            shape, strides, itemsize = (*shape, itemsize), (*strides, 1), 1
        self._elements = raw_view(layout.pointer, shape, strides, itemsize)
        self.step = itemsize

    def read(self, offset: int, nbytes: int, destination: int) -> None:
        """Pack a part into ``destination``."""
        _each_block(self._elements, offset, nbytes, destination, lambda host, packed: np.copyto(packed, host))

    def write(self, offset: int, nbytes: int, source: int) -> None:
        """Unpack a part from ``source``."""
        _each_block(self._elements, offset, nbytes, source, np.copyto)


HostSide = HostBytes | HostElements


class HostCopy(NamedTuple):
    """One copy between a device address and the host, in either direction."""

    device: int
    host: HostSide
    nbytes: int


class CopyFailure(TargetError):
    """One of several copies failed, the one at ``position``. ``partly``: its array on the host may hold some of the bytes."""

    def __init__(self, position: int, error: BaseException, partly: bool = False) -> None:
        super().__init__(str(error) or repr(error))
        self.position = position
        self.partly = partly


def _each_block(
    elements: np.ndarray, offset: int, nbytes: int, packed: int, copy: Callable[[np.ndarray, np.ndarray], None]
) -> None:
    """Call ``copy(elements, their packed form)`` for the blocks that make up a part of an array's packed bytes.

    The part is cut into whole rows along the first axis, and what sticks out at either end is cut along the next.
    """
    itemsize = elements.itemsize
    row = itemsize * elements[:1].size
    first, within = divmod(offset, row)
    if within or nbytes < row:
        part = min(row - within, nbytes)
        _each_block(elements[first], within, part, packed, copy)
        first, nbytes, packed = first + 1, nbytes - part, packed + part
    count, rest = divmod(nbytes, row)
    if count:
        block = elements[first : first + count]
        copy(block, raw_view(packed, block.shape, c_strides(block.shape, itemsize), itemsize))
    if rest:
        _each_block(elements[first + count], 0, rest, packed + count * row, copy)


def upload_one_by_one(copies: Sequence[HostCopy], to_device: Move) -> None:
    """Copy over in turn. Raises CopyFailure."""
    for position, copy in enumerate(copies):
        try:
            source, _keep = _dense(copy)
            to_device(copy.device, source, copy.nbytes)
        except Exception as error:
            raise CopyFailure(position, error) from error


def download_one_by_one(copies: Sequence[HostCopy], to_host: Move) -> None:
    """Copy back in turn: all of them, or none where a copy fails, which raises CopyFailure.

    All but the largest dense one are fetched aside first, so that no array of the host is touched before the last copy. A
    single dense output, the usual case, costs nothing more.
    """
    direct = largest_dense(copies)
    fetched: list[tuple[HostCopy, np.ndarray]] = []
    for position, copy in sorted(enumerate(copies), key=lambda item: item[0] == direct):
        try:
            if position == direct:
                to_host(copy.host.address, copy.device, copy.nbytes)  # type: ignore[arg-type]
            else:
                aside = np.empty(copy.nbytes, dtype=np.uint8)
                to_host(address(aside), copy.device, copy.nbytes)
                fetched.append((copy, aside))
        except Exception as error:
            raise CopyFailure(position, error) from error
    for copy, aside in fetched:
        copy.host.write(0, copy.nbytes, address(aside))


def largest_dense(copies: Sequence[HostCopy]) -> int:
    """The position of the largest copy whose bytes lie together on the host; -1 where there is none."""
    return max(
        (position for position, copy in enumerate(copies) if copy.host.address is not None),
        key=lambda position: copies[position].nbytes,
        default=-1,
    )


def _dense(copy: HostCopy) -> tuple[int, np.ndarray | None]:
    """Where a copy's bytes lie together, and what keeps them there."""
    if copy.host.address is not None:
        return copy.host.address, None
    packed = np.empty(copy.nbytes, dtype=np.uint8)
    copy.host.read(0, copy.nbytes, address(packed))
    return address(packed), packed
