"""What moves and what runs, told to whoever listens: profiles, the launch log, progress displays.

Array copies and launches only; scalars, error records and code are no events.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from numba_offload.errors import LaunchError
from numba_offload.origin import user_line
from numba_offload.targets.gpu.streams import stream_handle

Extent = tuple[int, int, int]


def extent_text(extent: Extent) -> str:
    """As logs and traces show it: ``8x1x1``."""
    return "x".join(map(str, extent))


@dataclass(frozen=True, slots=True)
class LaunchDetail:
    """The shape of a launch, and the code that ran. Extents are along x, y, z."""

    grid: Extent
    block: Extent
    threads: Extent
    """The logical threads, without surplus hardware threads."""
    arch: str
    """Of the code: the processor's name, or the GPU's architecture."""
    settled: int
    """How many facts the host settled before the launch, which this variant of the code does not check again."""
    waited: bool = True
    """Whether the launch's time is the kernel's. Otherwise it was only put on its stream."""


@dataclass(frozen=True, slots=True)
class ProfileEvent:
    """One copy, launch or call of a kernel.

    ``kind`` is "h2d", "d2h", "launch" or "call"; ``name`` is the argument, or the arguments that share the copy.
    ``start`` is in seconds of ``time.perf_counter``; ``thread`` is the identifier of the Python thread, ``stream`` the
    handle of the stream (0: the default). ``where`` is ``file:line`` in the user's code, empty where that is not known.
    """

    kind: str
    name: str
    kernel: str
    nbytes: int
    seconds: float
    target: str
    start: float = 0.0
    thread: int = 0
    thread_name: str = ""
    stream: int = 0
    where: str = ""
    detail: LaunchDetail | None = None

    @property
    def end(self) -> float:
        """When it ended, in seconds of ``time.perf_counter``."""
        return self.start + self.seconds

    @property
    def bandwidth(self) -> float | None:
        """Bytes per second of a copy; None for anything else, and where no time was measured."""
        return self.nbytes / self.seconds if self.seconds > 0 and self.kind in ("h2d", "d2h") else None


Listener = Callable[[ProfileEvent], None]

# Replaced whole, never changed in place: the hooks read it without the lock, and cost this one look where nobody listens.
listeners: tuple[Listener, ...] = ()
timed = False
"""Whether a listener wants to know how long launches take, so that they are waited for."""
_without_times: set[Listener] = set()
_lock = threading.Lock()


def listen(listener: Listener, times: bool = True) -> None:
    """Call ``listener`` with every event from now on, in the thread in which it ends.

    Without ``times`` it only counts: launches need not be waited for on its account.
    """
    global listeners
    with _lock:
        listeners = (*listeners, listener)
        if not times:
            _without_times.add(listener)
        _look()


def unlisten(listener: Listener) -> None:
    """Stop calling ``listener``."""
    global listeners
    with _lock:
        # Equal, not identical: a bound method is a new object each time it is asked for.
        listeners = tuple(other for other in listeners if other != listener)
        _without_times.discard(listener)
        _look()


def _look() -> None:
    global timed
    timed = any(listener not in _without_times for listener in listeners)


def record_copy(
    kind: str,
    name: str,
    nbytes: int,
    seconds: float,
    kernel: str = "",
    target: str = "",
    started: float | None = None,
    stream: Any = None,
) -> None:
    """Hook for a finished copy of an array; ``kind`` is "h2d" or "d2h". ``started``: by ``perf_counter``, if not just now."""
    if listeners:
        _tell(kind, name, kernel, nbytes, seconds, target, started, stream)


def record_launch(
    kernel: str,
    target: str,
    seconds: float,
    started: float | None = None,
    stream: Any = None,
    detail: LaunchDetail | None = None,
) -> None:
    """Hook for a finished launch."""
    if listeners:
        _tell("launch", "", kernel, 0, seconds, target, started, stream, detail)


def record_call(kernel: str, started: float) -> None:
    """Hook for the end of a kernel's call: everything from the user's line and back to it, compiling included."""
    if listeners:
        _tell("call", "", kernel, 0, perf_counter() - started, "", started, None)


def _tell(
    kind: str,
    name: str,
    kernel: str,
    nbytes: int,
    seconds: float,
    target: str,
    started: float | None,
    stream: Any,
    detail: LaunchDetail | None = None,
) -> None:
    start = perf_counter() - seconds if started is None else started
    thread = threading.current_thread()
    handle = 0 if stream is None else _handle(stream)
    event = ProfileEvent(
        kind, name, kernel, nbytes, seconds, target, start, thread.ident or 0, thread.name, handle, user_line(), detail
    )
    for listener in listeners:
        listener(event)


def _handle(stream: Any) -> int:
    try:
        return stream_handle(stream)
    except LaunchError:  # for a target without streams, which takes anything
        return 0
