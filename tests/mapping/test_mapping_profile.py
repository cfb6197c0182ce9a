"""Counting copies and launches."""

from __future__ import annotations

import io
import threading

from rich.console import Console

from numba_offload.diagnostics.profile import profile, profiling, record_copy, record_launch


def test_counts_and_events():
    assert not profiling()
    record_copy("h2d", "before", 1, 0.0)
    with profile() as p:
        assert profiling()
        record_copy("h2d", "x", 100, 0.5, "saxpy", "cuda")
        record_copy("h2d", "y", 50, 0.25, "saxpy", "cuda")
        record_copy("d2h", "y", 50, 0.25, "saxpy", "cuda")
        record_launch("saxpy", "cuda", 0.125)
    record_copy("d2h", "after", 1, 0.0)
    assert (p.h2d_bytes, p.h2d_count, p.d2h_bytes, p.d2h_count, p.launches) == (150, 2, 50, 1, 1)
    assert [(e.kind, e.name, e.kernel, e.nbytes, e.seconds, e.target) for e in p.events][-2:] == [
        ("d2h", "y", "saxpy", 50, 0.25, "cuda"),
        ("launch", "", "saxpy", 0, 0.125, "cuda"),
    ]


def test_profiles_nest():
    with profile() as outer:
        record_launch("a", "cpu", 0.0)
        with profile() as inner:
            record_launch("b", "cpu", 0.0)
        record_launch("c", "cpu", 0.0)
    assert [e.kernel for e in outer.events] == ["a", "b", "c"]
    assert [e.kernel for e in inner.events] == ["b"]
    assert not profiling()


def test_other_threads_are_counted():
    with profile() as p:
        threads = [
            threading.Thread(target=lambda: [record_copy("h2d", "x", 1, 0.0) for _ in range(500)])
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert p.h2d_bytes == p.h2d_count == 2000


def test_the_table_has_a_row_for_each_kernel_and_array():
    with profile() as p:
        for _ in range(3):
            record_copy("h2d", "x", 1000, 0.001, "saxpy", "cpu")
        record_launch("saxpy", "cpu", 0.5)
    text = io.StringIO()
    Console(file=text, width=120).print(p.table())
    row = next(line for line in text.getvalue().splitlines() if " x " in line)
    expected = ["saxpy", "x", "h2d", "cpu", "3", "3,000", "3.000", "0.00", ""]
    assert expected == [cell.strip() for cell in row.strip("│").split("│")]
    assert p.table().row_count == 2
