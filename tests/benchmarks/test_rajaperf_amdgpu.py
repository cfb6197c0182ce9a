"""The RAJAPerf kernels on AMD instructions: the same bits as on the CPU, where neither fuses multiplications and additions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.rajaperf import energy, pressure
from benchmarks.rajaperf.registry import benchmarks
from numba_offload import use_target
from numba_offload.kernel import OffloadKernel

SIZE = {"LTIMES num_d=64": 3_000}

DATA = {
    **{benchmark.name: (benchmark, benchmark.set_up) for benchmark in benchmarks()},
    "ENERGY, every branch": (energy.BENCHMARK, energy.every_branch_data),
    "PRESSURE, every branch": (pressure.BENCHMARK, pressure.every_branch_data),
}


def run(benchmark, data, target):
    with use_target(target):
        for launch in benchmark.launches(data):
            plain = OffloadKernel(launch.kernel.py_func, replace(launch.kernel.options, contract=False))
            plain(*launch.arguments)


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx1100"], indirect=True)
@pytest.mark.parametrize("case", DATA)
@pytest.mark.emulated
def test_the_thirteen_kernels_equal_the_cpus_bit_for_bit(case, target):
    benchmark, make = DATA[case]
    size = SIZE.get(case, 150)
    expected, actual = make(size), make(size)
    run(benchmark, expected, "cpu")
    run(benchmark, actual, target.name)
    for name in (*benchmark.outputs, *benchmark.written):
        assert actual[name].tobytes() == expected[name].tobytes(), name
        assert actual[name].size
