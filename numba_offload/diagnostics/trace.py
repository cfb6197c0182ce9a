"""A profile in Chrome's trace event format, which Perfetto and ``chrome://tracing`` open."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from numba_offload.diagnostics.events import ProfileEvent, extent_text
from numba_offload.diagnostics.timeline import tracks
from numba_offload.version import VERSION

_CATEGORIES = {"call": "host", "h2d": "copy over", "launch": "kernel", "d2h": "copy back"}


def trace_events(events: Iterable[ProfileEvent]) -> list[dict[str, Any]]:
    """Names of processes (the host, each target) and threads (tracks), then complete events by time, in microseconds."""
    laid = tracks(events)
    origin = min((track.events[0].start for track in laid), default=0.0)
    processes: dict[str, int] = {}
    names: list[dict[str, Any]] = []
    spans: list[dict[str, Any]] = []
    for tid, track in enumerate(laid, start=1):
        pid = processes.get(track.group)
        if pid is None:
            pid = processes[track.group] = len(processes) + 1
            label = "host" if track.group == "host" else f"{track.group} device"
            names += _metadata("process", pid, 0, label, pid)
        names += _metadata("thread", pid, tid, track.name, tid)
        for event in track.events:
            spans.append(
                {
                    "name": event.name or event.kernel,
                    "cat": _CATEGORIES[event.kind],
                    "ph": "X",
                    "ts": round((event.start - origin) * 1e6, 3),
                    "dur": round(event.seconds * 1e6, 3),
                    "pid": pid,
                    "tid": tid,
                    "args": _arguments(event),
                }
            )
    spans.sort(key=lambda span: span["ts"])
    return names + spans


def save_trace(path: str | os.PathLike[str], events: Iterable[ProfileEvent]) -> None:
    """Write the events as a file that viewers open."""
    content = {
        "traceEvents": trace_events(events),
        "displayTimeUnit": "ms",
        "otherData": {"producer": f"numba_offload {VERSION}"},
    }
    Path(path).write_text(json.dumps(content, indent=None, separators=(",", ":")), encoding="utf-8")


def _metadata(what: str, pid: int, tid: int, name: str, order: int) -> list[dict[str, Any]]:
    place = {"ph": "M", "ts": 0, "pid": pid, "tid": tid}
    return [
        {"name": f"{what}_name", **place, "args": {"name": name}},
        {"name": f"{what}_sort_index", **place, "args": {"sort_index": order}},
    ]


def _arguments(event: ProfileEvent) -> dict[str, Any]:
    said: dict[str, Any] = {"kernel": event.kernel}
    if event.kind in ("h2d", "d2h"):
        said |= {"argument": event.name, "bytes": event.nbytes}
        if event.bandwidth is not None:
            said["GB/s"] = round(event.bandwidth / 1e9, 3)
    if event.detail is not None:
        detail = event.detail
        said |= {
            "grid": extent_text(detail.grid),
            "block": extent_text(detail.block),
            "threads": extent_text(detail.threads),
            "architecture": detail.arch,
            "facts settled": detail.settled,
            "waited": detail.waited,
        }
    if event.target:
        said["target"] = event.target
    if event.stream:
        said["stream"] = hex(event.stream)
    if event.where:
        said["line"] = event.where
    return said
