"""benchmarks.startup: its tables have a row for each kernel and each way to start. Nothing here looks at times."""

from __future__ import annotations

import io

from rich.console import Console

from benchmarks import startup


def shown(table):
    console = Console(file=io.StringIO(), width=160)
    console.print(table)
    return console.file.getvalue()


def test_medians_are_of_processes_and_the_total_leaves_out_the_first_kernel(monkeypatch):
    samples = iter(
        (0.0, {kernel: {"host pass": a * seconds, "cpu": b * seconds} for kernel, a, b in
               (("(the first kernel of a process)", 7.0, 8.0), ("one", 0.001, 0.002), ("two", 0.010, 0.020))})
        for seconds in (1, 100, 2)
    )  # fmt: skip
    monkeypatch.setattr(startup, "_child", lambda *args: next(samples))
    lines = shown(startup.compile_times(["cpu"], 3)).splitlines()
    found = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines if line.startswith("│")]
    assert found[1:] == [["one", "2.0", "4.0"], ["two", "20.0", "40.0"], ["all 2", "22.0", "44.0"]]


def test_thirteen_kernels_are_compiled():
    assert len({launch.kernel.__name__ for launch in startup._launches()}) == 13


def test_every_way_to_start_is_measured(monkeypatch):
    monkeypatch.setattr(startup, "STARTED", ("FIR",))
    table = shown(startup.start_times(1))
    for mode in ("imports only", "no cache", "bundle"):
        assert f"│ fir    │ {mode}" in table


def test_targets_that_cannot_be_compiled_for_are_left_out():
    console = Console(file=io.StringIO(), width=160)
    assert startup._usable(["cpu", "nonsense"], console) == ["cpu"]
    assert "left out: unknown target 'nonsense'" in console.file.getvalue()
