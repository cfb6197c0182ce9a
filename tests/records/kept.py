"""Kernels of every kind of argument, and specialisations that went through a file's text."""

from __future__ import annotations

import copy
import json
from collections import namedtuple
from typing import Any

import numpy as np

from numba_offload import (
    Accumulator,
    Chunked1D,
    GridStride1D,
    Linear1D,
    PartitioningStrategy,
    Permuted,
    RedBlack,
    Region,
    Rows,
    Runtime,
    Segments,
    Strided1D,
    Tiles2D,
    offload_function,
    offload_kernel,
)
from numba_offload.kernel import OffloadKernel
from numba_offload.record_data import record_from_data, record_to_data
from numba_offload.specialisation import Specialisation, loaded
from numba_offload.targets.image import KernelImage
from numba_offload.targets.image_data import image_from_data, image_to_data
from partitioning.element_maps import reverse

N = 1000
ROW = np.dtype([("id", "i2"), ("mass", "f8"), ("ok", "?")])
PADDED = np.dtype({"names": ["a", "b"], "formats": ["f4", "i8"], "offsets": [4, 16], "itemsize": 32})
Pair = namedtuple("Pair", "scale rows")
TABLE = np.arange(16.0)
LIMIT = 3


class Complaint(Exception):
    """An exception of the user's."""


class EveryOther(PartitioningStrategy):
    """A strategy of the user's, with a parameter and a module's value."""

    ndim = 1
    covers = False
    stride = 2

    def __init__(self, first):
        self.first = first

    def count(self, t, T, shape):
        return 1 if self.first + self.stride * t < shape[0] else 0

    def index(self, t, k, T, shape):
        return self.first + self.stride * t

    def threads(self, shape):
        return (shape[0] + 1) // 2


@offload_function
def squared(value):
    return value * value


@offload_kernel
def axpy(a, x, y):
    for i in y.indices():
        y[i] = a * x[i] + y[i]


@offload_kernel
def fill(value, y):
    for i in y.indices():
        y[i] = squared(value)


@offload_kernel
def fill_2d(value, y):
    for i, j in y.indices():
        y[i, j] = value + i * 10 + j


@offload_kernel
def blur(image, out, width=1):
    rows, columns = image.shape
    for i, j in out.indices():
        if width <= i < rows - width and width <= j < columns - width:
            total = 0.0
            for k in range(-width, width + 1):
                total += image[i + k, j] + image[i, j + k]
            out[i, j] = total


@offload_kernel
def mixed(p, flag, z, small, when, nothing, y):
    for i in y.indices():
        y[i] = p.scale * p.rows[i].mass + z.real * z.imag + small + flag


@offload_kernel
def records(rows):
    for i in rows.indices():
        rows[i].b = rows[i].b + np.int64(rows[i].a)


@offload_kernel
def histogram(values, counts, best):
    for i in values.indices():
        counts.update(int(values[i]) % 16, 1)
        best.update(0, values[i])


@offload_kernel
def many(arrays, k, y):
    for i in y.indices():
        y[i] = arrays[k][i]


@offload_kernel
def two(x, y):
    for i in x.indices():
        y[i] = x[i] + 1


@offload_kernel
def captured(y):
    for i in y.indices():
        y[i] = TABLE[i % 16] * LIMIT


@offload_kernel
def shifted(x, shift, y):
    for i in y.indices():
        y[i] = x[i + shift]


@offload_kernel
def dates(when, step, y):
    for i in y.indices():
        y[i] = when + step


@offload_kernel
def picky(limit, y):
    for i in y.indices():
        if y[i] > limit:
            raise Complaint("too large", 3, limit, (1, 2.5))
        y[i] += 1


@offload_kernel
def plainly(y):
    for i in y.indices():
        assert y[i] >= 0, "negative"


@offload_kernel
def neighbours(y):
    for i, j in y.indices():
        y[i, j] = y[i, j + 1]


def _rows(dtype: np.dtype) -> np.ndarray:
    made = np.zeros(N, dtype)
    for name in dtype.names or ():
        made[name] = np.arange(N) % 2 if dtype[name].kind == "b" else np.arange(N) % 100
    return made


def calls() -> dict[str, tuple[OffloadKernel, tuple[Any, ...]]]:
    """Kernels that succeed, with fresh arguments."""
    x, y, square = np.arange(N) * 0.5, np.arange(N) * 0.25, np.arange(600.0).reshape(20, 30)
    offsets = [0, 10, 10, 400, N]
    return {
        "axpy": (axpy, (2.0, x, Region(y))),
        "float32": (axpy, (np.float32(2), x.astype("f4"), Region(y.astype("f4"), GridStride1D()))),
        "strided": (axpy, (3, x[::2], Region(y[::2], Chunked1D(7)))),
        "complex": (axpy, (1 + 2j, x.astype("c16"), Region(y.astype("c16"), Linear1D()))),
        "segments": (fill, (3.0, Region(y, Segments(offsets)))),
        "permuted": (fill, (3.0, Region(y, Permuted(np.arange(N)[::-1].copy())))),
        "runtime": (fill, (True, Region(y, Chunked1D(Runtime(3))))),
        "composed": (fill, (np.int8(3), Region(y, Chunked1D(3).then(reverse())))),
        "own": (fill, (3.0, Region(y, EveryOther(1)))),
        "partial": (fill, (3.0, Region(y, Strided1D(1, 3)))),
        "tiles": (fill_2d, (3.0, Region(square, Tiles2D(4, 5)))),
        "rows": (fill_2d, (3.0, Region(square, Rows()))),
        "blur": (blur, (square, Region(np.zeros((20, 30))))),
        "blur wide": (blur, (square, Region(np.zeros((20, 30))), 4)),
        "mixed": (mixed, (Pair(2.0, _rows(ROW)), True, 1 + 2j, np.int8(3), np.datetime64("2020", "D"), None, Region(y))),
        "records": (records, (Region(_rows(PADDED)),)),
        "accumulators": (
            histogram, (Region(x.copy()), Accumulator(np.zeros(16, "i8"), "+"), Accumulator(np.full(1, -1.0), "max")),
        ),
        "united": (many, ((x, x[::-1].copy()), 1, Region(y))),
        "shared": (two, (Region(x), Region(y))),
        "captured": (captured, (Region(y),)),
        "shifted": (shifted, (np.arange(N + 5.0), 5, Region(y))),
        "wrapped": (shifted, (x, -N, Region(y))),
        "dates": (dates, (np.datetime64("2020-01-01", "ns"), np.timedelta64(3, "ns"), Region(np.zeros(N, "M8[ns]")))),
        "empty": (fill, (1.0, Region(np.zeros(0)))),
    }  # fmt: skip


def failing_calls() -> dict[str, tuple[OffloadKernel, tuple[Any, ...]]]:
    """Kernels of which a thread fails."""
    square = np.ones((4, 4))
    return {
        "raise": (picky, (5.0, Region(np.array([1.0, 9.0])))),
        "assert": (plainly, (Region(np.array([-1.0])),)),
        "index": (shifted, (np.arange(8.0), 1, Region(np.zeros(8)))),
        "division": (two_divided, (0, Region(np.ones(3, "i8")))),
        "read": (neighbours, (Region(square, RedBlack(0)),)),
    }


@offload_kernel
def two_divided(by, y):
    for i in y.indices():
        y[i] //= by


class Kept:
    """Images that went through text: the one that a launch asks for, or none."""

    def __init__(self, images: list[KernelImage]) -> None:
        self.images = [image_from_data(json.loads(json.dumps(image_to_data(image))), image.data) for image in images]

    def find(self, target: Any, settled: frozenset[Any]) -> KernelImage | None:
        return next((image for image in self.images if image.assumed == settled), None)

    def keep(self, target: Any, image: KernelImage) -> None:
        raise AssertionError("an image was built")


def through_text(specialisation: Specialisation, key: Any) -> Specialisation:
    """The specialisation as another process would load it: record, and the images made so far."""
    record = record_from_data(json.loads(json.dumps(record_to_data(specialisation.record))))
    return loaded(record, key, Kept([code.image for code in specialisation.code.values()]))


def arrays_of(args: tuple[Any, ...]) -> list[np.ndarray]:
    """Every array of a call, to compare."""
    out = []
    for value in args:
        if isinstance(value, tuple):
            out += arrays_of(value)
        else:
            array = getattr(value, "array", value)
            out += [array] if isinstance(array, np.ndarray) else []
    return out


def copied(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """A call with arrays of its own."""

    def one(value: Any) -> Any:
        if isinstance(value, Region):
            return Region(_copy(value.array), value.strategy)
        if isinstance(value, Accumulator):
            return Accumulator(_copy(value.array), value.op)
        if isinstance(value, tuple):
            parts = [one(item) for item in value]
            return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
        return _copy(value) if isinstance(value, np.ndarray) else copy.copy(value)

    return tuple(one(value) for value in args)


def _copy(array: np.ndarray) -> np.ndarray:
    """With the same strides, where they are not those of a whole array."""
    if array.flags.c_contiguous:
        return array.copy()
    base = np.zeros(2 * len(array), array.dtype)
    base[::2] = array
    return base[::2]
