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
    """Of the functions that were called, whose transfers are optimised too; all functions of one call share it."""
    kernels: int = 0
    entries: dict[tuple[int, str, str], _Entry] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.iterations = [0] * len(self.loops)

    def part(self, function: Any, loops: Sequence[Loop]) -> Report:
        """The report of a function that is called, for all its calls together."""
        if function not in self.parts:
            self.parts[function] = Report(loops, parts=self.parts)
        return self.parts[function]

    def add(self, number: int, site: Site, moved: Moved, because: tuple[int, str] | None) -> None:
        """Note a transfer made at a site."""
        entry = self.entries.setdefault(
            (number, moved.kind, moved.label), _Entry(site, moved.kind, moved.label)
        )
        entry.count += 1
        entry.nbytes += moved.nbytes
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
        text = f"line {entry.site.line}: {entry.site.text} {verb.format(entry.label)}, {decimal(entry.nbytes // entry.count)}"
        text += f", {self._how_often(entry)}"
        if entry.because is not None:
            again = "" if entry.again == entry.count else f" {entry.again} times"
            text += f"; again{again} because of line {entry.because[0]}: {entry.because[1]}"
        return text

    def _how_often(self, entry: _Entry) -> str:
        if entry.site.loop >= 0 and entry.count > 1:
            iterations = self.iterations[entry.site.loop]
            if entry.count >= iterations:
                return "every iteration"
            return f"{entry.count} times in {iterations} iterations"
        return "once" if entry.count == 1 else f"{entry.count} times"


def counted(number: int, one: str, more: str) -> str:
    """A number with its noun."""
    return f"{number} {one if number == 1 else more}"
