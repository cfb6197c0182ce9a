"""Where an array's elements lie in memory: addresses, byte ranges, density, padding.

Everything here is arithmetic on pointer, shape, strides and item size, so that host arrays and device arrays
are judged by the same code. Nothing is dereferenced, nothing is copied.
"""

from __future__ import annotations

import ctypes
import sys
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from numba_offload.mapping.arrays import Array, DeviceArray

# `data` is the first member of NumPy's array object, right behind Python's object header: part of NumPy's
# stable ABI. Reading it takes a tenth of the time of `__array_interface__`, which a launch on unified memory
# would notice.
_DATA_OFFSET = object.__basicsize__
_pointer_at = ctypes.c_void_p.from_address


def _address_by_field(array: np.ndarray) -> int:
    return _pointer_at(id(array) + _DATA_OFFSET).value or 0


def _address_by_interface(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def _field_can_be_read() -> bool:
    """Whether this interpreter keeps arrays where the fast way expects them (CPython does)."""
    probe = np.arange(6, dtype=np.int16)[1:]
    data = _address_by_interface(probe).to_bytes(ctypes.sizeof(ctypes.c_void_p), sys.byteorder)
    try:
        return ctypes.string_at(id(probe), np.ndarray.__basicsize__)[_DATA_OFFSET:].startswith(data)
    except (AttributeError, ValueError):
        return False


address = _address_by_field if _field_can_be_read() else _address_by_interface
"""The address of an ndarray's element [0, ..., 0]."""


class Layout(NamedTuple):
    """How an array lies in memory. ``begin`` and ``end`` bound its bytes; equal where it has no elements."""

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int
    begin: int
    end: int


def layout_of(array: Array) -> Layout:
    """The layout of a host or device array."""
    shape, strides, itemsize = array.shape, array.strides, array.dtype.itemsize
    if isinstance(array, DeviceArray):
        pointer = array.pointer
    else:
        pointer = address(array)
        if array.flags.forc:
            return Layout(pointer, shape, strides, itemsize, pointer, pointer + array.nbytes)
    begin, end = byte_range(pointer, shape, strides, itemsize)
    return Layout(pointer, shape, strides, itemsize, begin, end)


def byte_range(
    pointer: int, shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int
) -> tuple[int, int]:
    """First byte and the one behind the last byte of all elements."""
    begin = end = pointer
    for size, stride in zip(shape, strides, strict=True):
        if size == 0:
            return pointer, pointer
        if stride < 0:
            begin += (size - 1) * stride
        else:
            end += (size - 1) * stride
    return begin, end + itemsize


def distinct_shape(layout: Layout) -> tuple[int, ...]:
    """The shape with every broadcast axis (stride 0) reduced to one element."""
    if 0 not in layout.strides:
        return layout.shape
    return tuple(
        1 if stride == 0 and size > 1 else size
        for size, stride in zip(layout.shape, layout.strides, strict=True)
    )


def fills_its_range(layout: Layout) -> bool:
    """Whether the elements fill their byte range exactly, each byte once: any order of axes, any signs."""
    expected = layout.itemsize
    axes = [
        (abs(stride), size) for size, stride in zip(layout.shape, layout.strides, strict=True) if size != 1
    ]
    for stride, size in sorted(axes):
        if stride != expected:
            return False
        expected *= size
    return True


@lru_cache(maxsize=1024)
def has_padding(dtype: np.dtype) -> bool:
    """Whether a structured dtype has bytes that belong to none of its fields."""
    if dtype.fields is None:
        return False
    covered = np.zeros(dtype.itemsize, dtype=np.bool_)
    _cover(dtype, covered)
    return not covered.all()


def _cover(dtype: np.dtype, covered: np.ndarray) -> None:
    if dtype.subdtype is not None:
        base = dtype.base
        if base.fields is None:
            covered[:] = True
            return
        one = np.zeros(base.itemsize, dtype=np.bool_)
        _cover(base, one)
        covered |= np.tile(one, dtype.itemsize // max(base.itemsize, 1))
    elif dtype.fields is None:
        covered[:] = True
    else:
        for field in dtype.fields.values():
            _cover(field[0], covered[field[1] : field[1] + field[0].itemsize])


class _Memory:
    """Carries an array interface to NumPy."""

    def __init__(self, interface: dict[str, Any]) -> None:
        self.__array_interface__ = interface


def raw_dtype(itemsize: int) -> np.dtype:
    """A dtype that is copied bit by bit, NaN payloads and padding included."""
    return np.dtype(f"u{itemsize}" if itemsize in (1, 2, 4, 8) else f"V{itemsize}")


def raw_view(pointer: int, shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> np.ndarray:
    """An ndarray over memory at an address, of raw bytes; the caller keeps that memory alive."""
    interface = {
        "version": 3,
        "data": (pointer, False),
        "shape": shape,
        "strides": strides,
        "typestr": raw_dtype(itemsize).str,
    }
    return np.asarray(_Memory(interface))
