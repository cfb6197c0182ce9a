"""Index arrays: a private, unchangeable copy of a caller's integers, made without importing NumPy."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NoReturn

from partitioning.checks import INT64_MAX, integer


class IndexArray(Sequence[int]):
    """Integers that nobody can change: a strategy was checked with these very numbers.

    Not an `array` itself: whoever wraps one in NumPy shares its memory and may write to it.
    """

    __slots__ = ("__weakref__", "_numbers")

    #: Bytes of a number.
    itemsize = 8

    def __init__(self, values: Iterable[int] = ()) -> None:
        self._numbers = array("q", values)

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, at: Any) -> Any:
        return self._numbers[at]

    def __setitem__(self, at: Any, value: Any) -> NoReturn:
        raise TypeError("a strategy's index array cannot be changed; construct a new strategy")

    def __iter__(self) -> Iterator[int]:
        return iter(self._numbers)

    def buffer_info(self) -> tuple[int, int]:
        """Address of the first number, and how many there are: for reading, while this object lives."""
        return self._numbers.buffer_info()

    def memory(self) -> memoryview:
        """The numbers as read-only memory."""
        return memoryview(self._numbers).toreadonly()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, IndexArray):
            return NotImplemented
        return self is other or self._numbers == other._numbers

    def __hash__(self) -> int:
        # Samples are enough: equal arrays have equal samples, and hashing must not cost a pass over a million
        # numbers.
        size = len(self)
        return hash((size, *self._numbers[: min(size, 8)], *self._numbers[:: max(1, size // 8)]))

    def __repr__(self) -> str:
        return f"<{len(self)} integers>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self._numbers.tobytes(),)


def _restore(data: bytes) -> IndexArray:
    plain = array("q")
    plain.frombytes(data)
    return IndexArray(plain)


def loaded_numpy() -> Any:
    """NumPy if the caller has imported it, else None: who passes a NumPy array has."""
    return sys.modules.get("numpy")


def index_array(values: Any, what: str) -> IndexArray:
    """A copy of a one-dimensional sequence, iterable or array of integers.

    TypeError for anything but integers, ValueError for more axes than one or numbers beyond int64; both name
    the position where there is one.
    """
    if isinstance(values, IndexArray):
        return values
    if isinstance(values, array) and values.typecode == "q":
        return IndexArray(values)
    numpy = loaded_numpy()
    if numpy is not None and isinstance(values, numpy.ndarray):
        return _from_numpy(numpy, values, what)
    try:
        items = list(values)
    except TypeError:
        raise TypeError(
            f"{what} must be a sequence of integers, not {values!r} ({type(values).__name__})"
        ) from None
    return IndexArray([int(integer(item, f"{what}[{at}]")) for at, item in enumerate(items)])


def _from_numpy(numpy: Any, values: Any, what: str) -> IndexArray:
    if values.ndim != 1:
        raise ValueError(
            f"{what} must have one axis, not {values.ndim} (shape {values.shape}); ravel it first"
        )
    if values.dtype.kind not in "iu":
        if values.size == 0:
            # numpy.array([]) is float64 by default: no number of it is wrong.
            return IndexArray()
        raise TypeError(f"{what} must hold integers, not {values.dtype}; convert with .astype('int64')")
    if values.dtype.kind == "u" and values.size and int(values.max()) > INT64_MAX:
        at = int(values.argmax())
        raise ValueError(f"{what}[{at}] is {int(values[at])}, which does not fit in a 64-bit signed integer")
    return _restore(numpy.ascontiguousarray(values, dtype=numpy.int64).tobytes())
