"""What a check of a partition can find: one record per kind of fault, each readable as one sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

#: A thread in its strategy's coordinates, and an element: an int, or a tuple of ints.
Coordinates = int | tuple[int, ...]


@dataclass(frozen=True)
class Counterexample:
    """Two slots hold the same element: two threads would race for it, or one would visit it twice."""

    thread_a: Coordinates
    slot_a: int
    thread_b: Coordinates
    slot_b: int
    element: Coordinates

    def __str__(self) -> str:
        slots = f"(slots {self.slot_a} and {self.slot_b})"
        if self.thread_a == self.thread_b:
            return f"thread {self.thread_a} owns element {self.element} twice {slots}"
        return f"threads {self.thread_a} and {self.thread_b} both own element {self.element} {slots}"


@dataclass(frozen=True)
class OutOfRange:
    """A slot holds an element outside the array. Negative numbers do not wrap around here."""

    thread: Coordinates
    slot: int
    element: Coordinates
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return (
            f"thread {self.thread} owns element {self.element} (slot {self.slot}), outside shape {self.shape}"
        )


@dataclass(frozen=True)
class NegativeCount:
    """A thread claims fewer than no elements."""

    thread: Coordinates
    count: int

    def __str__(self) -> str:
        return f"thread {self.thread} owns {self.count} elements; a count must be 0 or more"


@dataclass(frozen=True)
class Missing:
    """The strategy claims to cover the array, the launch is large enough, and an element has no owner."""

    element: Coordinates
    launched: Coordinates
    needed: Coordinates

    def __str__(self) -> str:
        return (
            f"no thread owns element {self.element} with {self.launched} threads, though the strategy"
            f" claims to cover the array with {self.needed}"
        )


@dataclass(frozen=True)
class LatticeMismatch:
    """`origin`, `local_shape`, `step` describe other elements, or another order, than `count` and `index`."""

    thread: Coordinates
    claim: str
    found: Any
    expected: Any
    slot: int | None = None

    def __str__(self) -> str:
        where = f"thread {self.thread}" if self.slot is None else f"thread {self.thread}, slot {self.slot}"
        return f"{where}: {self.claim} is {self.found}, but origin, local_shape and step give {self.expected}"


@dataclass(frozen=True)
class Fault:
    """A method failed, or returned something other than integers: overflow, division by zero, a float ..."""

    thread: Coordinates | None
    method: str
    reason: str
    slot: int | None = None

    def __str__(self) -> str:
        where = "" if self.thread is None else f"thread {self.thread}, "
        slot = "" if self.slot is None else f"slot {self.slot}, "
        return f"{where}{slot}{self.method}: {self.reason}"


Finding = Counterexample | OutOfRange | NegativeCount | Missing | LatticeMismatch | Fault
