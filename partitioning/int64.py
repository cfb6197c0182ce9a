"""int64 arithmetic in CPython: what a device would wrap around silently is an error here."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from partitioning.checks import INT64_MAX, INT64_MIN
from partitioning.index_array import IndexArray
from partitioning.parametrised import Parametrised


class Int64(int):
    """An int whose arithmetic with any integer raises OverflowError where int64 would wrap around."""

    __slots__ = ()


def _checked(name: str) -> Callable[..., Any]:
    plain = getattr(int, name)

    def method(self: Int64, *others: Any) -> Any:
        result = plain(self, *others)
        if result is NotImplemented or isinstance(result, float):  # a negative power is no integer
            return result
        if not INT64_MIN <= result <= INT64_MAX:
            shown = " and ".join(str(int(number)) for number in (self, *others))
            raise OverflowError(f"{_WORDS.get(name.strip('_').lstrip('r'), name)} of {shown} overflows int64")
        return Int64(result)

    method.__name__ = name
    return method


_WORDS = {
    "add": "the sum",
    "sub": "the difference",
    "mul": "the product",
    "floordiv": "the quotient",
    "pow": "the power",
}
_BINARY = ("add", "sub", "mul", "floordiv", "mod", "pow", "lshift", "rshift", "and", "or", "xor")

for _name in _BINARY:
    setattr(Int64, f"__{_name}__", _checked(f"__{_name}__"))
    # A plain int on the left yields to its subclass's reflected method, so that constants are checked too.
    setattr(Int64, f"__r{_name}__", _checked(f"__r{_name}__"))
for _name in ("neg", "pos", "abs", "invert"):
    setattr(Int64, f"__{_name}__", _checked(f"__{_name}__"))


class CheckedArray:
    """An index array as a strategy's methods see it while they are checked: indices do not wrap around."""

    def __init__(self, values: IndexArray, name: str) -> None:
        self._values = values
        self._name = name

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, at: int) -> Int64:
        if not 0 <= at < len(self._values):
            raise IndexError(f"reads {self._name}[{int(at)}], outside its {len(self._values)} numbers")
        return Int64(self._values[operator.index(at)])


def checked_copy(part: Any) -> Any:
    """A twin of a strategy or element map whose arithmetic is checked: its integers are Int64."""
    twin = object.__new__(type(part))
    for name, value in part._attributes():
        if name in part.index_arrays:
            value = CheckedArray(value, name)
        elif isinstance(value, Parametrised):
            value = checked_copy(value)
        elif isinstance(value, int) and not isinstance(value, bool):
            value = Int64(value)
        object.__setattr__(twin, name, value)
    return twin
