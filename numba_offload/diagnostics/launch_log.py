"""The launch log: what ``NUMBA_OFFLOAD_INFO`` asks for, on standard error, a line for each thing that happens.

The categories have the bits of ``LIBOMPTARGET_INFO`` in LLVM's libomptarget. Each line is ``numba_offload: CATEGORY`` and then
``key=value`` pairs, to be split as a shell would (``shlex.split``); docs/profiling.md lists the keys.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from numba_offload.diagnostics import events
from numba_offload.diagnostics.events import ProfileEvent, extent_text
from numba_offload.origin import user_line

if TYPE_CHECKING:
    from numba_offload.mapping.plan import ArrayUse, BufferPlan
    from numba_offload.mapping.present import Entry
    from numba_offload.mapping.state import DeviceState

ARGUMENTS, EXISTING, TABLE, CHANGES, KERNELS, COPIES = 1, 2, 4, 8, 16, 32
CATEGORIES = {
    "arguments": ARGUMENTS,
    "existing": EXISTING,
    "table": TABLE,
    "changes": CHANGES,
    "kernels": KERNELS,
    "copies": COPIES,
}
ALL = sum(CATEGORIES.values())
VARIABLE = "NUMBA_OFFLOAD_INFO"

mask = 0
"""The categories that are on. Looked at on the way of each launch, so a plain global."""


def parse(text: str) -> int:
    """The bit mask that a setting means: a number (-1: all, as in libomptarget), or names and ``all`` with commas.

    Raises ValueError naming what is not understood.
    """
    chosen = 0
    for word in filter(None, (part.strip().lower() for part in text.split(","))):
        if word == "all":
            chosen |= ALL
        elif word in CATEGORIES:
            chosen |= CATEGORIES[word]
        else:
            try:
                number = int(word, 0)
            except ValueError:
                number = ALL + 1
            if not -1 <= number <= ALL:
                raise ValueError(
                    f"{VARIABLE}={text!r}: {word!r} is no category of the launch log; expected a sum of "
                    f"{', '.join(f'{bit} ({name})' for name, bit in CATEGORIES.items())}, or these names with commas, or 'all'"
                )
            chosen |= ALL if number == -1 else number
    return chosen


def configure(chosen: int) -> None:
    """Switch categories on, given as a bit mask, and the others off."""
    global mask
    mask = chosen
    events.unlisten(_on_event)
    if chosen & (KERNELS | COPIES):
        events.listen(_on_event)


def configure_from_environment() -> None:
    """Do what ``NUMBA_OFFLOAD_INFO`` says. What is not understood is a warning: a log must not end a program."""
    try:
        configure(parse(os.environ.get(VARIABLE, "")))
    except ValueError as error:
        configure(0)
        warnings.warn(f"{error}. Nothing is logged", stacklevel=2)


# ---------------------------------------------------------------------------------------------------------------- hooks


def log_arguments(
    kernel: str, target: str, uses: Iterable[ArrayUse], scalars: Iterable[tuple[str, Any]]
) -> None:
    """Hook for a launch about to be mapped: its arrays, and its scalars with their names."""
    if mask & ARGUMENTS:
        for use in uses:
            array = use.array
            shape = "x".join(map(str, array.shape)) or "scalar"
            _line(
                "arguments", kernel=kernel, target=target, argument=use.name, map=use.map, dtype=array.dtype, shape=shape,
                bytes=array.nbytes,
            )  # fmt: skip
        for name, value in scalars:
            _line(
                "arguments", kernel=kernel, target=target, argument=name, map="literal", dtype=type(value).__name__, value=value
            )  # fmt: skip


def log_existing(name: str, entry: Entry, user: str) -> None:
    """Hook for an array that is found in the present table, so that nothing is copied for ``user``."""
    if mask & EXISTING:
        _line("existing", argument=name, by=user, **_entry(entry))


def log_change(what: str, entry: Entry) -> None:
    """Hook for a change of the present table: ``what`` is "added", "count", "written" or "removed"."""
    if mask & CHANGES:
        _line("changes", change=what, **_entry(entry))


def log_buffers(what: str, buffers: Iterable[tuple[BufferPlan, int]], kernel: str) -> None:
    """Hook for the buffers of one launch, "mapped" or "unmapped"."""
    if mask & CHANGES:
        for plan, device in buffers:
            _line(
                "changes", change=what, kernel=kernel, argument=plan.label, host=hex(plan.begin), device=hex(device),
                bytes=plan.nbytes,
            )  # fmt: skip


def log_table(device: DeviceState, kernel: str, ok: bool) -> None:
    """Hook for the end of a launch, failed or not: what the present table holds."""
    if mask & TABLE:
        held = device.present.entries
        after = {"kernel": kernel, "target": device.name, "launch": "ended" if ok else "failed"}
        _line("table", **after, entries=len(held))
        for number, entry in enumerate(held, start=1):
            _line("table", **after, number=number, **_entry(entry))


def _on_event(event: ProfileEvent) -> None:
    if event.kind == "launch":
        if mask & KERNELS:
            shape: dict[str, Any] = {}
            if event.detail is not None:
                detail = event.detail
                shape = {
                    "arch": detail.arch,
                    "grid": extent_text(detail.grid),
                    "block": extent_text(detail.block),
                    "threads": extent_text(detail.threads),
                    "settled": detail.settled,
                    "waited": "yes" if detail.waited else "no",
                }
            _line("kernels", event.where, kernel=event.kernel, target=event.target, **shape, ms=f"{event.seconds * 1e3:.3f}")
    elif event.kind in ("h2d", "d2h") and mask & COPIES:
        rate = {} if event.bandwidth is None else {"GB/s": f"{event.bandwidth / 1e9:.2f}"}
        _line(
            "copies", event.where, direction=event.kind, argument=event.name, kernel=event.kernel, target=event.target,
            bytes=event.nbytes, ms=f"{event.seconds * 1e3:.3f}", **rate,
        )  # fmt: skip


def _entry(entry: Entry) -> dict[str, Any]:
    plan = entry.plan
    return {
        "entry": entry.use.name,
        "host": hex(plan.begin) if plan is not None else "none",
        "device": hex(entry.address),
        "bytes": plan.nbytes if plan is not None else 0,
        "count": entry.count,
        "written": "yes" if entry.dirty else "no",
    }


def _line(category: str, at: str | None = None, **said: Any) -> None:
    said["at"] = user_line() if at is None else at
    write_line(category, said)


def write_line(category: str, said: dict[str, Any]) -> None:
    """One line on standard error. A line that cannot be written is lost: a log must not end a program."""
    pairs = " ".join(f"{key}={shlex.quote(str(value))}" for key, value in said.items() if value != "")
    with contextlib.suppress(AttributeError, OSError, ValueError):
        # In one piece, as other threads write too.
        sys.stderr.write(f"numba_offload: {category} {pairs}\n")


configure_from_environment()
