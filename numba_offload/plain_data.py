"""Plain data that was read from a file: looked at piece by piece, and refused with one error where it is not as expected."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

from numba_offload.errors import BundleError

T = TypeVar("T")

Plain = Any
"""What JSON can say: None, bool, int, str, and lists and dictionaries of these. Floats are written as ``float.hex`` writes
them, because JSON has no NaN and no infinity."""


def refuse(what: str, value: Plain, expected: str) -> NoReturn:
    """Raise BundleError: ``what`` is not as ``expected``."""
    shown = repr(value)
    raise BundleError(f"{what} is {shown if len(shown) <= 80 else shown[:77] + '...'}; expected {expected}")


def text(value: Plain, what: str) -> str:
    """A string."""
    return value if type(value) is str else refuse(what, value, "a string")


def flag(value: Plain, what: str) -> bool:
    """True or false."""
    return value if type(value) is bool else refuse(what, value, "true or false")


def whole(value: Plain, what: str, low: int = -(2**63), high: int = 2**64 - 1) -> int:
    """An integer from ``low`` to ``high``."""
    return value if type(value) is int and low <= value <= high else refuse(what, value, f"an integer from {low} to {high}")


def one_of(value: Plain, what: str, known: Sequence[T]) -> T:
    """One of several plain values."""
    for candidate in known:
        if type(value) is type(candidate) and value == candidate:
            return candidate
    refuse(what, value, f"one of {', '.join(map(repr, known))}")


def listed(value: Plain, what: str, read: Callable[[Plain, str], T]) -> tuple[T, ...]:
    """A list of any length, each item read alike."""
    if type(value) is not list:
        refuse(what, value, "a list")
    return tuple([read(item, f"{what}[{k}]") for k, item in enumerate(value)])


def parts(value: Plain, what: str, count: int) -> list[Plain]:
    """The items of a list of a fixed length."""
    return value if type(value) is list and len(value) == count else refuse(what, value, f"a list of {count}")


def fields(value: Plain, what: str, names: Sequence[str]) -> dict[str, Plain]:
    """A dictionary with exactly these keys."""
    if type(value) is not dict or set(value) != set(names):
        refuse(what, list(value) if type(value) is dict else value, f"a dictionary with the keys {', '.join(names)}")
    return value


def real(value: Plain, what: str) -> float:
    """A float, as ``float.hex`` wrote it."""
    try:
        return float.fromhex(text(value, what))
    except (ValueError, OverflowError):
        refuse(what, value, "a float as float.hex writes it")
