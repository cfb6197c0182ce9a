"""Counting what moves and what runs: ``with profile() as p``.

Array copies and launches only; scalars, error records and code are not counted. A profile is global: it
counts what the whole program does inside the block, in every thread. Profiles nest, and each counts for
itself.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True, slots=True)
class ProfileEvent:
    """One copy or launch.

    ``kind`` is "h2d", "d2h" or "launch"; ``name`` is the argument, or the arguments that share the copy.
    """

    kind: str
    name: str
    kernel: str
    nbytes: int
    seconds: float
    target: str


class Profile:
    """What was counted so far; readable inside and after the block."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._events: list[ProfileEvent] = []

    @property
    def events(self) -> list[ProfileEvent]:
        """All events, in the order in which they ended."""
        with self._lock:
            return list(self._events)

    @property
    def h2d_bytes(self) -> int:
        """Bytes copied from host to device."""
        return self._sum("h2d")

    @property
    def h2d_count(self) -> int:
        """Copies from host to device."""
        return self._count("h2d")

    @property
    def d2h_bytes(self) -> int:
        """Bytes copied from device to host."""
        return self._sum("d2h")

    @property
    def d2h_count(self) -> int:
        """Copies from device to host."""
        return self._count("d2h")

    @property
    def launches(self) -> int:
        """Kernels launched."""
        return self._count("launch")

    def table(self) -> Table:
        """A rich table with one row for each kernel, array and direction: count, bytes, milliseconds."""
        from rich.table import Table

        totals: dict[tuple[str, str, str, str], list[float]] = {}
        for event in self.events:
            row = totals.setdefault((event.kernel, event.name, event.kind, event.target), [0, 0, 0.0])
            row[0] += 1
            row[1] += event.nbytes
            row[2] += event.seconds
        table = Table(title="Transfers and launches")
        for heading in ("kernel", "array", "kind", "target"):
            table.add_column(heading)
        for heading in ("count", "bytes", "ms"):
            table.add_column(heading, justify="right")
        for key, (count, nbytes, seconds) in totals.items():
            table.add_row(*key, str(int(count)), f"{int(nbytes):,}", f"{seconds * 1e3:.3f}")
        return table

    def _add(self, event: ProfileEvent) -> None:
        with self._lock:
            self._events.append(event)

    def _sum(self, kind: str) -> int:
        return sum(event.nbytes for event in self.events if event.kind == kind)

    def _count(self, kind: str) -> int:
        return sum(event.kind == kind for event in self.events)

    def __repr__(self) -> str:
        return (
            f"<Profile: {self.launches} launches, {self.h2d_count} copies to the device ({self.h2d_bytes} "
            f"bytes), {self.d2h_count} back ({self.d2h_bytes} bytes)>"
        )


_lock = threading.Lock()
# Replaced whole, never changed in place: the hooks read it without the lock.
_active: tuple[Profile, ...] = ()


@contextmanager
def profile() -> Iterator[Profile]:
    """Count array copies and launches inside the block, in every thread.

    Gives ``h2d_bytes``, ``h2d_count``, ``d2h_bytes``, ``d2h_count``, ``launches``, ``events`` and
    ``table()``.
    """
    global _active
    counted = Profile()
    with _lock:
        _active = (*_active, counted)
    try:
        yield counted
    finally:
        with _lock:
            _active = tuple(other for other in _active if other is not counted)


def profiling() -> bool:
    """Whether a profile is counting."""
    return bool(_active)


def record_copy(
    kind: str, name: str, nbytes: int, seconds: float, kernel: str = "", target: str = ""
) -> None:
    """Hook for a finished copy of an array; ``kind`` is "h2d" or "d2h"."""
    if _active:
        _record(ProfileEvent(kind, name, kernel, nbytes, seconds, target))


def record_launch(kernel: str, target: str, seconds: float) -> None:
    """Hook for a finished launch."""
    if _active:
        _record(ProfileEvent("launch", "", kernel, 0, seconds, target))


def _record(event: ProfileEvent) -> None:
    for counted in _active:
        counted._add(event)
