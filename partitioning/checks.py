"""Checks of constructor arguments: what is an integer, and how far it may go."""

from __future__ import annotations

import operator
from typing import Any

INT64_MIN = -(2**63)
INT64_MAX = 2**63 - 1


def integer(value: Any, what: str) -> int:
    """`value` as an int within int64 (or the `Runtime` it is); NumPy integers pass, bools and floats not."""
    if isinstance(value, bool) or not hasattr(value, "__index__") or hasattr(value, "__len__"):
        raise TypeError(f"{what} must be an integer, not {value!r} ({type(value).__name__})")
    try:
        number = operator.index(value)
    except TypeError:
        # An array's and a numpy.bool's __index__ exists only to say no.
        raise TypeError(f"{what} must be an integer, not {value!r} ({type(value).__name__})") from None
    if not INT64_MIN <= number <= INT64_MAX:
        raise ValueError(f"{what} is {number}, which does not fit in a 64-bit signed integer")
    return value if isinstance(value, Runtime) else number


def at_least(value: Any, low: int, what: str) -> int:
    """`value` as an int that is not below `low`."""
    number = integer(value, what)
    if number < low:
        raise ValueError(f"{what} is {int(number)}; it must be at least {low}")
    return number


class Runtime(int):
    """An integer parameter that is passed at launch rather than compiled in.

    `Chunked1D(8)` is a type of its own, and the compiler sees the constant 8. `Chunked1D(Runtime(8))` shares
    one compiled kernel with `Chunked1D(Runtime(9))`. It works for every integer parameter of every strategy
    and element map, a user's own included: the attribute becomes a plain int, its name joins
    `runtime_parameters`.
    """

    __slots__ = ()

    def __new__(cls, value: Any) -> Runtime:
        return super().__new__(cls, operator.index(integer(value, "Runtime's value")))

    def __repr__(self) -> str:
        return f"Runtime({int(self)})"
