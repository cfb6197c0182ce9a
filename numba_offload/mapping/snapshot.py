"""Whether an ndarray is the one that it was: same memory, shape, strides, dtype and flags, at the least cost.

CPython keeps what describes an array in one small structure, and its extents and strides in another. Both are compared as
bytes: it takes two reads where asking for each attribute would make an object of each.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

_START = object.__basicsize__
_FIELDS = struct.Struct("@PiPPPPi")  # data, number of axes, extents, strides, base, dtype, flags
_WORD = ctypes.sizeof(ctypes.c_void_p)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An array as it was. Reads the array's own structures, so only ever after ``id`` has matched a live array."""

    id: int
    header: Any
    header_bytes: bytes
    extents: Any
    extents_bytes: bytes
    dtype: np.dtype
    """It is kept, as another one may come to lie where it was."""
    names: tuple[tuple[np.dtype, Any], ...]
    """Of it, and of the records inside it: the names of their fields, which can be changed in place."""

    def matches(self, array: Any) -> bool:
        """Whether this is the same object, unchanged."""
        return (
            id(array) == self.id
            and type(array) is np.ndarray
            and self.header.raw == self.header_bytes
            and self.extents.raw == self.extents_bytes
            and (not self.names or all(record.names is names for record, names in self.names))
        )


def flags_address(array: np.ndarray) -> int | None:
    """Where an array's flags are kept, a C int; None where this interpreter keeps arrays otherwise than expected."""
    return id(array) + _START + _FIELDS.size - ctypes.sizeof(ctypes.c_int) if _READABLE else None


def _bytes_at(address: int, count: int) -> Any:
    return (ctypes.c_char * count).from_address(address)


def snapshot(array: np.ndarray) -> Snapshot | None:
    """The array as it is; None where this interpreter keeps arrays otherwise than expected."""
    if not _READABLE or type(array) is not np.ndarray or not array.ndim:
        return None
    return _take(array)


def _take(array: np.ndarray) -> Snapshot | None:
    header = _bytes_at(id(array) + _START, _FIELDS.size)
    _, ndim, extents, strides, *_ = _FIELDS.unpack(header.raw)
    if ndim != array.ndim or strides != extents + ndim * _WORD:
        return None
    body = _bytes_at(extents, 2 * ndim * _WORD)
    dtype = array.dtype
    return Snapshot(id(array), header, header.raw, body, body.raw, dtype, tuple(records_of(dtype)))


def records_of(dtype: np.dtype) -> Iterator[tuple[np.dtype, tuple[str, ...]]]:
    """A record's dtype, and those of the records inside it, with the names of their fields."""
    if dtype.names is not None:
        yield dtype, dtype.names
        for name in dtype.names:
            yield from records_of(dtype[name].base)


def _readable() -> bool:
    """Look at a known array: are its parts where they are expected?"""
    if np.ndarray.__basicsize__ < _START + _FIELDS.size:
        return False
    probe = np.arange(24, dtype=np.int32).reshape(2, 3, 4)[:, ::2]
    header = _bytes_at(id(probe) + _START, _FIELDS.size).raw
    data, ndim, extents, strides, base, dtype, _ = _FIELDS.unpack(header)
    expected = (probe.__array_interface__["data"][0], 3, extents + 3 * _WORD, id(probe.base), id(probe.dtype))
    if (data, ndim, strides, base, dtype) != expected:
        return False
    words = struct.unpack(f"@{2 * ndim}n", _bytes_at(extents, 2 * ndim * _WORD).raw)
    return words == probe.shape + probe.strides


try:
    _READABLE = _readable()
except (AttributeError, ValueError, struct.error):
    _READABLE = False
