"""A display for long loops of launches: ``for step in progress(range(1000)):``."""

from __future__ import annotations

import operator
import sys
from collections.abc import Iterable, Iterator
from time import perf_counter
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from numba_offload.diagnostics import events
from numba_offload.diagnostics.events import ProfileEvent

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

T = TypeVar("T")

_EVERY_SECONDS = 0.1


class progress(Generic[T]):
    """Show how far a loop is, launches per second, bytes moved over and back so far, and the time left.

    ``for step in progress(range(1000), "heating"):`` goes through any iterable. ``total`` is the number of steps, where the
    iterable does not say. Without an iterable, ``with progress(total=1000) as shown:`` and a ``shown.advance()`` for each
    step.

    Launches and bytes are of the whole program while the display is there. It goes to standard error, and only where that
    is a terminal; ``force=True`` shows it anyway. A loop without it runs as if ``progress`` were not there.
    """

    def __init__(
        self,
        iterable: Iterable[T] | None = None,
        description: str = "",
        *,
        total: int | None = None,
        force: bool = False,
    ) -> None:
        if iterable is None and total is None:
            raise TypeError("progress(): give an iterable, or total= and call advance() in a with block")
        if iterable is not None and not hasattr(iterable, "__iter__") and not hasattr(iterable, "__getitem__"):
            number = isinstance(iterable, int)
            raise TypeError(
                f"progress({iterable!r}): expected something to iterate over, such as range({iterable if number else 1000})"
            )
        if total is not None and (not hasattr(total, "__index__") or operator.index(total) < 0):
            raise ValueError(f"progress(total={total!r}): expected the number of steps, an integer of 0 or more")
        self._iterable = iterable
        self._description = description
        self._total = _length(iterable) if total is None else total
        self._force = force
        self._display: _Display | None = None

    def __iter__(self) -> Iterator[T]:
        if self._iterable is None:
            raise TypeError("progress(total=...) has nothing to iterate over: use it in a with block, and call advance()")
        if not self._shown():
            return iter(self._iterable)
        return self._steps(self._iterable)

    def __len__(self) -> int:
        if self._total is None:
            raise TypeError("progress() does not know the length of what it goes through; give total=")
        return self._total

    def __enter__(self) -> progress[T]:
        if self._shown():
            self._display = _Display(self._description, self._total)
        return self

    def __exit__(self, *exc: object) -> None:
        display, self._display = self._display, None
        if display is not None:
            display.stop()

    def advance(self, steps: int = 1) -> None:
        """Count steps, in a ``with`` block."""
        if not hasattr(steps, "__index__") or operator.index(steps) < 0:
            raise ValueError(f"advance({steps!r}): expected how many steps were made, an integer of 0 or more")
        display = self._display
        if display is not None:
            display.done += steps
            if perf_counter() >= display.due:
                display.refresh()

    def _steps(self, iterable: Iterable[T]) -> Iterator[T]:
        display = _Display(self._description, self._total)
        done = 0
        try:
            for item in iterable:
                yield item
                done += 1
                if perf_counter() >= display.due:
                    display.done = done
                    display.refresh()
        finally:
            # Also where the loop is left early: the generator is closed with it.
            display.done = done
            display.stop()

    def _shown(self) -> bool:
        if self._force:
            return True
        return sys.stderr is not None and sys.stderr.isatty()


class _Display:
    """A line on standard error, refreshed by the loop itself: no thread takes time from kernels."""

    def __init__(self, description: str, total: int | None) -> None:
        self.done = 0
        self._launches = 0
        self._moved = {"h2d": 0, "d2h": 0}
        self._total = total
        self._began = perf_counter()
        self._progress = _rich_progress()
        self._task = self._progress.add_task(description, total=total, launches="", moved="")
        self.due = 0.0
        self._progress.start()
        events.listen(self._count, times=False)

    def refresh(self) -> None:
        now = perf_counter()
        self.due = now + _EVERY_SECONDS
        per_second = self._launches / max(now - self._began, 1e-9)
        self._progress.update(
            self._task,
            completed=self.done,
            launches=f"{per_second:,.0f} launches/s",
            moved=f"{_size(self._moved['h2d'])} over {_size(self._moved['d2h'])} back",
        )
        self._progress.refresh()

    def stop(self) -> None:
        events.unlisten(self._count)
        self.refresh()
        self._progress.stop()

    def _count(self, event: ProfileEvent) -> None:
        if event.kind == "launch":
            self._launches += 1
        elif event.kind != "call":
            self._moved[event.kind] += event.nbytes


def _rich_progress() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    from rich.table import Column

    console: Console = Console(stderr=True)
    columns: list[Any] = [
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(table_column=Column(no_wrap=True)),
        TextColumn("{task.fields[launches]}"),
        TextColumn("{task.fields[moved]}"),
        TimeRemainingColumn(table_column=Column(no_wrap=True)),
        TextColumn("left"),
    ]
    return Progress(*columns, console=console, auto_refresh=False, expand=True)


def _size(nbytes: int) -> str:
    from rich import filesize

    return filesize.decimal(nbytes)


def _length(iterable: Any) -> int | None:
    try:
        return len(iterable)
    except TypeError:
        return None
