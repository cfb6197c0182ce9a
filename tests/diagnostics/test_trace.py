"""The trace of a profile is what the trace event format asks for, and says what happened."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from observed_kernels import arrays, saxpy

from numba_offload import Region, profile
from numba_offload.diagnostics.events import ProfileEvent
from numba_offload.diagnostics.timeline import tracks
from numba_offload.diagnostics.trace import trace_events


def saved(p: Any, folder: Path) -> list[dict[str, Any]]:
    path = folder / "trace.json"
    p.save_trace(path)
    content = json.loads(path.read_text(encoding="utf-8"))
    assert set(content) == {"traceEvents", "displayTimeUnit", "otherData"} and content["displayTimeUnit"] == "ms"
    assert_format(content["traceEvents"])
    return content["traceEvents"]


def assert_format(events: list[dict[str, Any]]) -> None:
    """Required keys and their types; names before use; spans by time, and on one track none inside another."""
    named: set[tuple[int, int]] = set()
    processes: set[int] = set()
    last = 0.0
    ends: dict[tuple[int, int], float] = {}
    for event in events:
        assert event["ph"] in ("M", "X")
        assert isinstance(event["name"], str) and event["name"]
        assert type(event["pid"]) is int and type(event["tid"]) is int
        track = event["pid"], event["tid"]
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "process_sort_index", "thread_name", "thread_sort_index")
            if event["name"] == "process_name":
                processes.add(event["pid"])
            if event["name"] == "thread_name":
                assert track not in named
                named.add(track)
            continue
        assert track in named and event["pid"] in processes
        assert event["cat"] and isinstance(event["args"], dict)
        assert event["ts"] >= last and event["dur"] >= 0
        last = event["ts"]
        assert event["ts"] >= ends.get(track, 0.0) - 0.002  # both are rounded to nanoseconds
        ends[track] = event["ts"] + event["dur"]


def test_tracks_times_and_arguments_of_a_launch(discrete, tmp_path):
    x, y = arrays()
    with profile() as p:
        saxpy[8, 128](2.0, x, Region(y))
        thread = threading.Thread(target=lambda: None)
        thread.start()
        thread.join()
    events = saved(p, tmp_path)
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    groups = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    spans = [e for e in events if e["ph"] == "X"]
    where = [(groups[e["pid"]], names[e["pid"], e["tid"]], e["name"]) for e in spans]
    assert where == [
        ("host", threading.current_thread().name, "saxpy"),
        ("cpu device", "copies over", "y"),
        ("cpu device", "copies over", "x"),
        ("cpu device", "kernels", "saxpy"),
        ("cpu device", "copies back", "y"),
    ]
    call, over, _, kernel, back = spans
    assert call["ts"] == 0
    (started,) = p.calls
    first = p.events[0]
    assert abs(over["ts"] - (first.start - started.start) * 1e6) < 0.01
    assert abs(over["dur"] - first.seconds * 1e6) < 0.01
    assert over["args"]["bytes"] == y.nbytes and over["args"]["argument"] == "y" and over["args"]["GB/s"] >= 0
    assert back["args"]["kernel"] == "saxpy" and back["args"]["line"].startswith(__file__ + ":")
    assert kernel["args"]["grid"] == "8x1x1" and kernel["args"]["block"] == "128x1x1"


def test_an_empty_profile_is_a_trace_too(tmp_path):
    with profile() as p:
        pass
    assert saved(p, tmp_path) == []


def test_streams_and_targets_have_tracks_of_their_own():
    events = [
        ProfileEvent("h2d", "x", "k", 8, 1.0, "cuda", 0.0, stream=0),
        ProfileEvent("h2d", "x", "k", 8, 1.0, "cuda", 0.0, stream=16),
        ProfileEvent("launch", "", "k", 0, 1.0, "cpu", 0.5),
    ]
    assert [(t.group, t.name) for t in tracks(events)] == [
        ("cpu", "kernels"),
        ("cuda", "copies over, stream 0x0"),
        ("cuda", "copies over, stream 0x10"),
    ]


def test_what_overlaps_goes_to_another_track():
    events = [ProfileEvent("h2d", name, "k", 8, 1.0, "cuda", start) for name, start in (("a", 0.0), ("b", 0.5), ("c", 1.0))]
    assert [(t.name, [e.name for e in t.events]) for t in tracks(events)] == [
        ("copies over", ["a", "c"]),
        ("copies over (2)", ["b"]),
    ]


times = st.integers(0, 10**7).map(lambda n: n * 1e-6)
profile_events = st.builds(
    ProfileEvent,
    st.sampled_from(["h2d", "d2h", "launch", "call"]),
    st.text(max_size=3),
    st.text(min_size=1, max_size=3),
    st.integers(0, 2**40),
    times,
    st.sampled_from(["", "cpu", "cuda"]),
    times,
    st.integers(0, 3),
    st.text(max_size=3),
    st.sampled_from([0, 1, 2**40]),
)


@given(st.lists(profile_events, max_size=30))
def test_any_events_make_a_trace_that_keeps_them_all(events):
    made = trace_events(events)
    assert_format(json.loads(json.dumps(made)))
    assert sum(e["ph"] == "X" for e in made) == len(events)
    assert sum(len(t.events) for t in tracks(events)) == len(events)
    labels = [(t.group, t.name) for t in tracks(events) if t.group != "host"]
    assert len(set(labels)) == len(labels)
