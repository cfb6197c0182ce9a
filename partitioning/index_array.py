"""Index arrays: a private, unchangeable copy of a caller's integers, made without importing NumPy."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable
from typing import Any, NoReturn, Self

from partitioning.checks import INT64_MAX, integer


class IndexArray(array):  # type: ignore[type-arg]
    """An `array('q')` that refuses to be changed: a strategy was checked with these very numbers."""

    def __new__(cls, values: Iterable[int] = ()) -> Self:
        return super().__new__(cls, "q", values)  # type: ignore[return-value]

    def _refuse(self, *_: Any) -> NoReturn:
        raise TypeError("a strategy's index array cannot be changed; construct a new strategy")

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = extend = insert = pop = remove = reverse = byteswap = _refuse  # type: ignore[assignment]
    frombytes = fromfile = fromlist = fromunicode = _refuse  # type: ignore[assignment]

    def __hash__(self) -> int:  # type: ignore[override]
        # Samples are enough: equal arrays have equal samples, and hashing must not cost a pass over a million
        # numbers.
        size = len(self)
        return hash((size, *self[: min(size, 8)], *self[:: max(1, size // 8)]))

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self.tobytes(),)

    def __reduce_ex__(self, _protocol: Any) -> tuple[Any, ...]:
        return self.__reduce__()


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
