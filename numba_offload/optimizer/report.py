"""What the last call of a host function moved, with the lines that made it necessary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.filesize import decimal

from numba_offload.mapping.residency import Moved
from numba_offload.optimizer.sites import Loop, Site


@dataclass(slots=True)
class _Entry:
    site: Site
    kind: str
    label: str
    nbytes: int = 0
    count: int = 0
    sizes: set[int] = field(default_factory=set)
    because: tuple[int, str] | None = None
    """Line and text of the use by the host after which it was needed again."""
    again: int = 0


@dataclass
class Report:
    """Transfers of one call, grouped by place, array and direction."""

    loops: Sequence[Loop]
    iterations: list[int] = field(default_factory=list)
    """Of each loop."""
    parts: dict[Any, Report] = field(default_factory=dict)
    """Of all functions of one call whose transfers are optimised: they share it. A function that is called by itself again, or
    by several others, has one report for all."""
    called: list[Any] = field(default_factory=list)
    """The functions that this one called."""
    kernels: int = 0
    entries: dict[tuple[int, str, str], _Entry] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.iterations = [0] * len(self.loops)

    def part(self, function: Any, loops: Sequence[Loop]) -> Report:
        """The report of a function that this one calls, for all its calls together."""
        if function not in self.called:
            self.called.append(function)
        if function not in self.parts:
            self.parts[function] = Report(loops, parts=self.parts)
        return self.parts[function]

    def with_called(self, function: Any) -> dict[Any, Report]:
        """This report of a function, and those of the functions that it called, or that these called, by function."""
        found = {function: self}
        waiting = [self]
        while waiting:
            for callee in waiting.pop(0).called:
                if callee not in found:
                    found[callee] = self.parts[callee]
                    waiting.append(found[callee])
        return found

    def add(self, number: int, site: Site, moved: Moved, because: tuple[int, str] | None) -> None:
        """Note a transfer made at a site."""
        entry = self.entries.setdefault(
            (number, moved.kind, moved.label), _Entry(site, moved.kind, moved.label)
        )
        entry.count += 1
        entry.nbytes += moved.nbytes
        entry.sizes.add(moved.nbytes)
        if because is not None:
            entry.because = because
            entry.again += 1

    def lines(self) -> list[str]:
        """One line for each place, array and direction, in the order of the source."""
        ordered = sorted(self.entries.values(), key=lambda e: (e.site.line, e.kind != "h2d", e.label))
        return [self._line(entry) for entry in ordered]

    def total(self, kind: str) -> tuple[int, int]:
        """Count and bytes of the transfers in one direction: "h2d" or "d2h"."""
        chosen = [entry for entry in self.entries.values() if entry.kind == kind]
        return sum(e.count for e in chosen), sum(e.nbytes for e in chosen)

    def _line(self, entry: _Entry) -> str:
        verb = "takes {} over" if entry.kind == "h2d" else "brings {} back"
        size = decimal(*entry.sizes) if len(entry.sizes) == 1 else f"{decimal(entry.nbytes)} in all"
        place = f"line {entry.site.line}: " if entry.site.line else ""
        text = f"{place}{entry.site.text} {verb.format(entry.label)}, {size}, {self._how_often(entry)}"
        if entry.because is not None:
            again = "" if entry.again == entry.count else f" {counted(entry.again, 'time', 'times')}"
            text += f"; again{again} because of line {entry.because[0]}: {entry.because[1]}"
        return text

    def _how_often(self, entry: _Entry) -> str:
        if entry.site.loop >= 0 and entry.count > 1:
            iterations = self.iterations[entry.site.loop]
            # The test of a while loop comes once more than its body, and so does a step of an iterator.
            if iterations and iterations <= entry.count < 2 * iterations:
                return "every iteration"
            return f"{entry.count} times in {counted(iterations, 'iteration', 'iterations')}"
        return "once" if entry.count == 1 else f"{entry.count} times"


def counted(number: int, one: str, more: str) -> str:
    """A number with its noun."""
    return f"{number} {one if number == 1 else more}"
