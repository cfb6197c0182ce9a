"""Events laid out in tracks, for the trace and the picture: no two events of a track overlap."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from numba_offload.diagnostics.events import ProfileEvent

KINDS = {"call": "calls", "h2d": "copies over", "launch": "kernels", "d2h": "copies back"}
"""The kinds of events, in the order of their tracks."""


@dataclass(frozen=True, slots=True)
class Track:
    """Events in a row, by start. ``group`` is "host" or the target, ``name`` is unique within it."""

    group: str
    kind: str
    name: str
    events: tuple[ProfileEvent, ...]


def tracks(events: Iterable[ProfileEvent]) -> list[Track]:
    """The host's threads first, then for each target and stream copies over, kernels, copies back.

    What overlaps, as copies of several threads may, goes to further tracks of the same name with a number.
    """
    found: dict[tuple[str, int, int], list[ProfileEvent]] = {}
    order = list(KINDS)
    threads: dict[int, int] = {}  # by first event
    for event in sorted(events, key=lambda event: (event.start, -event.seconds)):
        key = (event.target or "device", event.stream, order.index(event.kind))
        if event.kind == "call":
            key = ("", threads.setdefault(event.thread, len(threads)), 0)
        found.setdefault(key, []).append(event)
    streams: dict[str, set[int]] = {}
    for group, stream, _ in found:
        streams.setdefault(group, set()).add(stream)
    laid: list[Track] = []
    for group, stream, kind in sorted(found):
        members = found[group, stream, kind]
        name = members[0].thread_name or "calls"
        if group:
            name = KINDS[order[kind]] + (f", stream {stream:#x}" if len(streams[group]) > 1 else "")
        for number, lane in enumerate(_lanes(members), start=1):
            shown = name if number == 1 else f"{name} ({number})"
            laid.append(Track(group or "host", members[0].kind, shown, tuple(lane)))
    return laid


def _lanes(events: Sequence[ProfileEvent]) -> list[list[ProfileEvent]]:
    lanes: list[list[ProfileEvent]] = []
    for event in events:
        for lane in lanes:
            if lane[-1].end <= event.start:
                lane.append(event)
                break
        else:
            lanes.append([event])
    return lanes
