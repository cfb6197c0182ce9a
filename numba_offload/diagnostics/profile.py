"""Counting what moves and what runs: ``with profile() as p``.

Array copies and launches only; scalars, error records and code are not counted. A profile is global: it counts what the
whole program does inside the block, in every thread. Profiles nest, and each counts for itself.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from numba_offload.diagnostics import events
from numba_offload.diagnostics.events import ProfileEvent, record_copy, record_launch

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

__all__ = ["Profile", "ProfileEvent", "profile", "profiling", "record_copy", "record_launch"]

PEAK_BYTES = 128 << 20
_KINDS = ("h2d", "d2h")


class Profile:
    """What was counted so far; readable inside and after the block.

    ``print`` shows ``table()``.
    """

    def __init__(self, peak_bandwidth: float | Mapping[str, float] | None = None) -> None:
        self._lock = threading.Lock()
        self._events: list[ProfileEvent] = []
        self._calls: list[ProfileEvent] = []
        self._blocks = 0
        #: Bytes per second that copies are compared with, by direction: ``{"h2d": ..., "d2h": ...}``. Empty: not known.
        self.peak_bandwidth: dict[str, float] = _checked_peak(peak_bandwidth)

    def __enter__(self) -> Self:
        with self._lock:
            self._blocks += 1
            if self._blocks == 1:
                events.listen(self._add)
        return self

    def __exit__(self, *exc: object) -> None:
        with self._lock:
            self._blocks -= 1
            if self._blocks == 0:
                events.unlisten(self._add)

    @property
    def events(self) -> list[ProfileEvent]:
        """All copies and launches, in the order in which they ended."""
        with self._lock:
            return list(self._events)

    @property
    def calls(self) -> list[ProfileEvent]:
        """The calls of kernels, as the host sees them: copies, the launch and, at first, compiling lie inside."""
        with self._lock:
            return list(self._calls)

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
        """A rich table with one row for each kernel, array and direction.

        Count, bytes, milliseconds, bandwidth in GB/s (10^9 bytes), and which part of ``peak_bandwidth`` that is, where it
        was given or measured. The last line has the sums.
        """
        from numba_offload.diagnostics.summary import summary_table

        return summary_table(self.events, self.peak_bandwidth)

    def measure_peak(self, nbytes: int = PEAK_BYTES) -> dict[str, float]:
        """Measure on the current target what copies can reach, for ``table()``, and return it, in bytes per second.

        That is the fastest of a few plain copies each way, of ``nbytes`` and of a sixteenth of it, without packing, between a
        buffer of the device and host memory that was touched before (page-locked, where the target can lock pages). None of
        them is counted.

        Raises TargetError where the target shares the host's memory, so that nothing is copied, and DeviceMemoryError
        where there is no room for the buffer.
        """
        from numba_offload.diagnostics.peak import measured_peak

        self.peak_bandwidth = measured_peak(nbytes)
        return dict(self.peak_bandwidth)

    def save_trace(self, path: str | os.PathLike[str]) -> None:
        """Write a timeline as JSON in Chrome's trace event format, for ui.perfetto.dev or ``chrome://tracing``.

        Tracks: the calls of each host thread, and for each target and stream the copies over, kernels, and copies back.
        Times are in microseconds since the first event; arguments, bytes and bandwidth stand with each event.
        """
        from numba_offload.diagnostics.trace import save_trace

        save_trace(path, [*self.calls, *self.events])

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Draw a timeline with the tracks of ``save_trace`` and return the Matplotlib figure.

        With ``path`` it is also written there, in the format that the name's ending says. Raises ImportError where
        Matplotlib is missing.
        """
        from rich import filesize

        from numba_offload.diagnostics.plot import timeline_figure

        title = (
            f"{self.launches} launches, {self.h2d_count} copies to the device ({filesize.decimal(self.h2d_bytes)}), "
            f"{self.d2h_count} back ({filesize.decimal(self.d2h_bytes)})"
        )
        return timeline_figure([*self.calls, *self.events], title, path)

    def _add(self, event: ProfileEvent) -> None:
        with self._lock:
            (self._calls if event.kind == "call" else self._events).append(event)

    def _sum(self, kind: str) -> int:
        return sum(event.nbytes for event in self.events if event.kind == kind)

    def _count(self, kind: str) -> int:
        return sum(event.kind == kind for event in self.events)

    def __repr__(self) -> str:
        return (
            f"<Profile: {self.launches} launches, {self.h2d_count} copies to the device ({self.h2d_bytes} bytes), "
            f"{self.d2h_count} back ({self.d2h_bytes} bytes)>"
        )

    def __str__(self) -> str:
        from numba_offload.diagnostics.summary import as_text

        return as_text(self.table())


def profile(peak_bandwidth: float | Mapping[str, float] | None = None) -> Profile:
    """Count array copies and launches inside the block, in every thread.

    Gives ``h2d_bytes``, ``h2d_count``, ``d2h_bytes``, ``d2h_count``, ``launches``, ``events``, ``calls``, and
    ``table()``, ``save_trace(path)`` and ``plot(path)``.

    ``peak_bandwidth``, in bytes per second, is what ``table()`` compares copies with: one number, or a mapping with "h2d"
    and "d2h"; ``measure_peak()`` measures it. Raises ValueError where it is neither.

    A profile that was made before its block, and one whose block is entered again, goes on counting.
    """
    return Profile(peak_bandwidth)


def profiling() -> bool:
    """Whether a profile is counting, or something else listens."""
    return bool(events.listeners)


def _checked_peak(given: Any) -> dict[str, float]:
    if given is None:
        return {}
    peak = dict(given) if isinstance(given, Mapping) else dict.fromkeys(_KINDS, given)
    for kind, value in peak.items():
        if kind not in _KINDS or not isinstance(value, int | float) or isinstance(value, bool) or not value > 0:
            raise ValueError(
                f"profile(peak_bandwidth={given!r}): expected bytes per second, as one number or as "
                "{'h2d': ..., 'd2h': ...}, above 0"
            )
    return {kind: float(value) for kind, value in peak.items()}
