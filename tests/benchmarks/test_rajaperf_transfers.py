"""benchmarks.rajaperf.transfers: optimised host functions move no more than staged ones, and no more than what is used."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.rajaperf import transfers
from benchmarks.rajaperf.benchmark import Benchmark
from benchmarks.rajaperf.registry import benchmarks
from numba_offload import profile

BENCHMARKS = {benchmark.name: benchmark for benchmark in benchmarks((64,))}
"""The seven. ENERGY and PRESSURE have several kernels."""


def run(benchmark: Benchmark, way: str, reps: int, size: int) -> tuple[profile, dict[str, bytes]]:
    """What moved, and the arrays that were written."""
    data: dict[str, Any] = benchmark.set_up(size)
    calls = [(launch.kernel, launch.arguments) for launch in benchmark.launches(data)]
    with profile() as counted:
        transfers.WAYS[way](calls, reps, [])
    return counted, {name: data[name].tobytes() for name in (*benchmark.outputs, *benchmark.written)}


@pytest.fixture
def size(target, name) -> int:
    # An emulator takes its time; LTIMES with 64 directions has no zone at all in fewer elements.
    return 150 if target.emulated and not name.startswith("LTIMES") else 3_000


@pytest.mark.parametrize("name", BENCHMARKS)
def test_optimised_moves_no_more_than_staged_and_computes_the_same(name, target, size):
    benchmark = BENCHMARKS[name]
    (managed, expected), (optimised, one), (staged, other) = (run(benchmark, way, 3, size) for way in transfers.WAYS)
    assert one == other == expected
    assert optimised.launches == staged.launches == managed.launches == 3 * len(benchmark.kernels)
    assert optimised.h2d_count <= staged.h2d_count and optimised.h2d_bytes <= staged.h2d_bytes
    assert optimised.d2h_count <= staged.d2h_count and optimised.d2h_bytes <= staged.d2h_bytes
    assert (optimised.h2d_count > 0) == target.separate
    assert (managed.h2d_bytes > optimised.h2d_bytes) == target.separate


@pytest.mark.parametrize("name", BENCHMARKS)
def test_once_through_moves_no_more_than_is_used_and_written(name, target, size):
    benchmark = BENCHMARKS[name]
    moved, _ = run(benchmark, "optimised", 1, size)
    used, written = transfers.unavoidable(benchmark, size)
    assert moved.h2d_bytes <= used and moved.d2h_bytes <= written
    assert (moved.d2h_bytes > 0) == target.separate


def test_it_prints_both_tables_and_tells_by_its_exit_status(monkeypatch, capsys):
    monkeypatch.setenv("NUMBA_OFFLOAD_CPU_MEMORY", "discrete")
    options = ["--target", "cpu", "--only", "PRESSURE", "--reps-factor", "0.005", "--rounds", "1", "--size", "3000"]
    assert transfers.main(options) == 0
    shown = capsys.readouterr().out
    assert "no more than staged" in shown and "Once through" in shown and "the paper" in shown
