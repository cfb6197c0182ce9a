"""A profile as a table: one row for each kernel, array and direction."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from numba_offload.diagnostics.events import ProfileEvent

_LEAST_WIDTH = 110


@dataclass(slots=True)
class _Total:
    count: int = 0
    nbytes: int = 0
    seconds: float = 0.0

    def add(self, event: ProfileEvent) -> None:
        self.count += 1
        self.nbytes += event.nbytes
        self.seconds += event.seconds

    def cells(self, kind: str, peak: Mapping[str, float]) -> list[str]:
        """Count, bytes, milliseconds; for copies GB/s and, where the peak is known, the part of it."""
        cells = [str(self.count), f"{self.nbytes:,}", f"{self.seconds * 1e3:.3f}"]
        if kind == "launch" or self.seconds <= 0:
            return [*cells, "", ""]
        bandwidth = self.nbytes / self.seconds
        return [*cells, f"{bandwidth / 1e9:.2f}", f"{bandwidth / peak[kind]:.0%}" if kind in peak else ""]


def summary_table(events: Iterable[ProfileEvent], peak: Mapping[str, float]) -> Table:
    """The table of ``Profile.table``. ``peak``: bytes per second by direction, as far as known."""
    rows: dict[tuple[str, str, str, str], _Total] = {}
    sums: dict[str, _Total] = {}
    for event in events:
        rows.setdefault((event.kernel, event.name, event.kind, event.target), _Total()).add(event)
        sums.setdefault(event.kind, _Total()).add(event)
    kinds = [kind for kind in ("h2d", "launch", "d2h") if kind in sums]
    columns = [sums[kind].cells(kind, peak) for kind in kinds]
    footers = ["\n".join(cells) for cells in zip(*columns, strict=True)] if columns else [""] * 5
    table = Table(title="Transfers and launches", show_footer=bool(kinds))
    for heading, footer in zip(("kernel", "array", "kind", "target"), ("total", "", "\n".join(kinds), ""), strict=True):
        table.add_column(heading, footer)
    headings = ("count", "bytes", "ms", "GB/s", "of peak")
    for heading, footer in zip(headings, footers, strict=True):
        table.add_column(heading, footer, justify="right", no_wrap=True)
    for (kernel, name, kind, target), total in rows.items():
        table.add_row(escape(kernel), escape(name), kind, target, *total.cells(kind, peak))
    return table


def as_text(table: Table) -> str:
    """A table as plain text, as wide as the terminal; where there is none, wide enough to lose no column."""
    out = io.StringIO()
    width = max(shutil.get_terminal_size((_LEAST_WIDTH, 0)).columns, _LEAST_WIDTH)
    Console(file=out, width=width, color_system=None).print(table)
    return out.getvalue().rstrip("\n")
