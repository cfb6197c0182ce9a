"""What ``NUMBA_OFFLOAD_DEBUG=borrow`` adds to a preload: a stale read on the host shows, and so does a write.

NumPy cannot keep the host from reading an array whose current content is on a device. In this mode such an array is poisoned
while it is borrowed for writing: NaN, or another value that no program computes. In unified memory kernels work on a copy
meanwhile. And the host's bytes are compared with what they were, as views from before the preload can still be written.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np

from numba_offload.mapping.discrete import POISON
from numba_offload.mapping.layout import Layout, byte_range, distinct_shape, layout_of, raw_dtype, raw_view


class HostWatch:
    """The host's side of one borrow. ``poison``: it is for writing, and the host must not read it."""

    def __init__(self, array: np.ndarray, poison: bool) -> None:
        self._layout = layout_of(array)
        self._saved: np.ndarray | None = None
        if poison and array.size:
            self._saved = self._bytes().copy()
            _poison(self._elements(array.dtype))
        self._digest = self._summary()

    def end(self) -> bool:
        """Put back what was there before; returns whether the host has written meanwhile."""
        changed = self._summary() != self._digest
        if self._saved is not None:
            np.copyto(self._bytes(), self._saved)
        return changed

    def take_from(self, copy: np.ndarray) -> None:
        """Take over what kernels have written to a copy."""
        layout = layout_of(copy)
        np.copyto(self._bytes(), raw_view(layout.pointer, layout.shape, layout.strides, layout.itemsize))

    def _summary(self) -> bytes:
        if self._layout.begin == self._layout.end:
            return b""
        return blake2b(np.ascontiguousarray(self._bytes()).view(np.uint8).data, digest_size=16).digest()

    def _bytes(self) -> np.ndarray:
        """The elements as raw bytes, writable though the array is locked."""
        return _raw(self._layout)

    def _elements(self, dtype: np.dtype) -> np.ndarray:
        return self._bytes().view(dtype)


def copy_alike(array: np.ndarray) -> np.ndarray:
    """A copy with the same strides, for kernels to work on."""
    strides, itemsize = array.strides, array.dtype.itemsize
    begin, end = byte_range(0, array.shape, strides, itemsize)
    alignment = 64
    storage = np.zeros(end - begin + alignment, np.uint8)
    first = -storage.__array_interface__["data"][0] % alignment
    copy = np.ndarray(array.shape, array.dtype, storage, first - begin, strides)
    np.copyto(_raw(layout_of(copy)), _raw(layout_of(array)))
    return copy


def _raw(layout: Layout) -> np.ndarray:
    if layout.begin == layout.end:
        return np.empty(layout.shape, raw_dtype(layout.itemsize))
    return raw_view(layout.pointer, distinct_shape(layout), layout.strides, layout.itemsize)


def _poison(elements: np.ndarray) -> None:
    dtype: Any = elements.dtype
    if dtype.fields is not None:
        for name in dtype.names:
            _poison(elements[name])
    elif dtype.kind in "fc":
        elements[...] = np.nan
    elif dtype.kind in "mM":
        elements[...] = np.array("NaT", dtype)
    elif dtype.kind == "b":
        np.logical_not(elements, out=elements)
    else:
        elements[...] = np.frombuffer(bytes([POISON]) * dtype.itemsize, dtype)[0]
