"""What a profile holds beyond its counts: times, threads, lines, rates."""

from __future__ import annotations

import io
import threading
from time import perf_counter

import pytest
from observed_kernels import arrays, saxpy
from rich.console import Console

from numba_offload import Region, TargetError, profile
from numba_offload.diagnostics.events import record_copy, record_launch
from numba_offload.targets.registry import current_target


def cells(p, name: str) -> list[list[str]]:
    out = io.StringIO()
    Console(file=out, width=160).print(p.table())
    rows = [[cell.strip() for cell in line.strip("│").split("│")] for line in out.getvalue().splitlines()]
    return [row for row in rows if name in row]


def test_events_tell_when_in_which_thread_and_for_which_line(discrete):
    x, y = arrays()
    before = perf_counter()
    with profile() as p:
        saxpy(2.0, x, Region(y))
    after = perf_counter()
    assert [(e.kind, e.name) for e in p.events] == [("h2d", "y"), ("h2d", "x"), ("launch", ""), ("d2h", "y")]
    ends = [e.end for e in p.events]
    assert ends == sorted(ends)
    for e in [*p.events, *p.calls]:
        assert before <= e.start <= e.end <= after
        assert e.thread == threading.get_ident() and e.thread_name == threading.current_thread().name
        assert e.where == f"{__file__}:{saxpy_line()}"
    (call,) = p.calls
    assert call.kind == "call" and call.kernel == "saxpy"
    assert all(call.start <= e.start and e.end <= call.end for e in p.events)


def saxpy_line() -> int:
    with open(__file__) as file:
        return next(k for k, line in enumerate(file, 1) if "saxpy(2.0, x, Region(y))" in line)


def test_a_launch_tells_its_shape_and_code(target):
    x, y = arrays()
    with profile() as p:
        saxpy[8, 128](2.0, x, Region(y))
        saxpy[8, 128](3.0, x, Region(y))  # where memory is unified, by the short way
    launches = [e for e in p.events if e.kind == "launch"]
    assert len(launches) == len(p.calls) == p.launches == 2
    for e in launches:
        assert (e.detail.grid, e.detail.block, e.detail.threads) == ((8, 1, 1), (128, 1, 1), (1024, 1, 1))
        assert e.detail.arch and current_target().target.arch.startswith(e.detail.arch)
        assert e.detail.settled >= 0 and e.detail.waited


def test_a_call_that_fails_is_recorded_and_nothing_else(unified):
    with profile() as p, pytest.raises(TypeError):
        saxpy(1)
    assert [c.kernel for c in p.calls] == ["saxpy"] and p.events == []


def test_bandwidth_is_of_copies_only():
    with profile() as p:
        record_copy("h2d", "x", 1000, 0.5)
        record_copy("h2d", "x", 1000, 0.0)
        record_launch("k", "cpu", 0.5)
    assert [e.bandwidth for e in p.events] == [2000.0, None, None]


def test_the_table_compares_with_the_peak():
    with profile(peak_bandwidth={"h2d": 4e9}) as p:
        record_copy("h2d", "x", 1_000_000_000, 0.5, "k", "cuda")
        record_copy("h2d", "x", 1_000_000_000, 0.5, "k", "cuda")
        record_copy("d2h", "y", 1_000_000_000, 1.0, "k", "cuda")
        record_launch("k", "cuda", 0.25)
    assert [row[4:] for row in cells(p, "x")] == [["2", "2,000,000,000", "1000.000", "2.00", "50%"]]
    assert [row[4:] for row in cells(p, "y")] == [["1", "1,000,000,000", "1000.000", "1.00", ""]]
    assert [row[4:] for row in cells(p, "total")] == [["2", "2,000,000,000", "1000.000", "2.00", "50%"]]
    assert cells(p, "launch")[0][4:] == ["1", "0", "250.000", "", ""]


def test_names_with_brackets_stand_as_they_are():
    with profile() as p:
        record_copy("h2d", "t[1][0], p.vel", 8, 0.5, "k", "cuda")
    assert cells(p, "t[1][0], p.vel")


def test_printing_shows_the_table(capsys):
    with profile() as p:
        record_copy("h2d", "x", 1000, 0.5, "saxpy", "cpu")
    print(p)
    shown = capsys.readouterr().out
    assert "Transfers and launches" in shown and "saxpy" in shown and "\x1b" not in shown
    with profile() as nothing:
        pass
    assert "Transfers and launches" in str(nothing)
    assert repr(p).startswith("<Profile: 0 launches, 1 copies to the device (1000 bytes)")


def test_one_peak_is_for_both_directions():
    with profile(peak_bandwidth=2e9) as p:
        pass
    assert p.peak_bandwidth == {"h2d": 2e9, "d2h": 2e9}


@pytest.mark.parametrize("wrong", [0, -1.0, "fast", True, {"over": 1.0}, {"h2d": 0}, float("nan")])
def test_a_peak_that_is_none_is_refused(wrong):
    with pytest.raises(ValueError, match="expected bytes per second"), profile(peak_bandwidth=wrong):
        pass


def test_the_peak_is_measured_on_request_and_not_counted(discrete):
    with profile() as p:
        peak = p.measure_peak(1 << 20)
        x, y = arrays()
        saxpy(2.0, x, Region(y))
    assert set(peak) == {"h2d", "d2h"} and all(value > 0 for value in peak.values())
    assert p.peak_bandwidth == peak
    assert (p.h2d_count, p.d2h_count) == (2, 1)
    assert all(row[-1].endswith("%") for row in cells(p, "y"))
    assert current_target().device.pool.bytes_in_use == 0


def test_no_peak_is_measured_where_nothing_is_copied(unified):
    with profile() as p, pytest.raises(TargetError, match="shares the host's memory"):
        p.measure_peak()


def test_a_profile_that_is_made_before_its_block_counts_in_it(unified):
    p = profile(peak_bandwidth=1e9)
    x, y = arrays()
    saxpy(2.0, x, Region(y))
    assert p.launches == 0 and "saxpy" not in str(p)
    with p as entered:
        saxpy(2.0, x, Region(y))
    assert entered is p and p.launches == 1


def test_a_profile_whose_block_is_entered_again_goes_on(unified):
    x, y = arrays()
    p = profile()
    with p:
        saxpy(2.0, x, Region(y))
        with p:
            saxpy(2.0, x, Region(y))
        saxpy(2.0, x, Region(y))
    saxpy(2.0, x, Region(y))
    assert p.launches == 3
    with p:
        saxpy(2.0, x, Region(y))
    assert p.launches == 4


def test_a_wrong_peak_is_refused_where_it_is_given():
    with pytest.raises(ValueError, match="expected bytes per second"):
        profile(peak_bandwidth="fast")
