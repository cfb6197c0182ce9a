"""The RAJAPerf benchmarks: their data, their checksum, and that all implementations compute the same."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.rajaperf import cli, energy, matvec_3d_stencil, pressure
from benchmarks.rajaperf.checksum import TOLERANCE, checksum, relative_difference
from benchmarks.rajaperf.initialise import Domain, Initialiser, glibc_rand
from benchmarks.rajaperf.registry import benchmarks, select
from benchmarks.rajaperf.runner import Outcome, prepared, run

SMALL = 3_000

BENCHMARKS = {benchmark.name: benchmark for benchmark in benchmarks()}

DATA = {
    **{name: (benchmark, benchmark.set_up) for name, benchmark in BENCHMARKS.items()},
    "ENERGY, every branch": (energy.BENCHMARK, energy.every_branch_data),
    "PRESSURE, every branch": (pressure.BENCHMARK, pressure.every_branch_data),
}
"""Every benchmark on the suite's data, and the two with branches also on data that takes them all."""


# Data


def test_random_numbers_are_those_of_glibc():
    # glibc's documented example: rand() without srand() behaves as after srand(1).
    assert glibc_rand(4, seed=1) == [1804289383, 846930886, 1681692777, 1714636915]
    expected = [0.19089668346145036, 0.8474068799276868, 0.5656014995489277, 0.7508265277141829]
    np.testing.assert_array_equal(Initialiser().random(4), expected)


def test_every_initialisation_advances_the_factor():
    init = Initialiser()
    even, odd = 0.19582535938404025, 0.09791267969202012
    assert init.scalar() == even
    assert init.scalar() == odd
    init.constant(3.0, 2)
    assert init.scalar() == odd
    init.random(1)
    init.overwritten()
    assert init.ramp(5)[0] == even
    assert init.calls == 7


def test_a_ramp_of_rank_two_counts_on_over_its_rows():
    np.testing.assert_array_equal(Initialiser().ramp(3, 4).ravel(), Initialiser().ramp(12))


def test_the_default_domain_in_two_dimensions():
    domain = Domain.of_size(1_000_000, 2)
    zones = domain.zone_list()
    assert (domain.nodes, domain.jp, domain.kp, domain.all_nodes) == (1001, 1004, 0, 1_008_016)
    assert (zones.size, domain.real_zones) == (1_000_000, 1_000_000)
    assert (zones[0], zones[-1]) == (2010, 1_006_005)


def test_the_default_domain_in_three_dimensions():
    domain = Domain.of_size(1_000_000, 3)
    zones = domain.zone_list()
    assert (domain.nodes, domain.jp, domain.kp, domain.all_nodes) == (101, 104, 10_816, 1_124_864)
    assert (zones.size, domain.real_zones) == (1_000_000, 1_000_000)
    assert (zones[0], zones[-1]) == (21_842, 1_103_021)
    assert (domain.first_zone, domain.last_zone) == (10_921, 1_113_942)


@pytest.mark.parametrize("dimensions", [2, 3])
def test_zones_are_listed_once_with_the_first_axis_fastest(dimensions):
    domain = Domain(4, dimensions)
    zones = domain.zone_list()
    assert zones.dtype == np.int64
    assert np.array_equal(zones, np.unique(zones))
    assert zones[1] == zones[0] + 1


def test_positions_grow_from_the_ghost_corner():
    domain = Domain(4, 3)
    x, y, z = domain.positions(0.3, 0.2, 0.1)
    node = 1 + 2 * domain.jp + 3 * domain.kp
    assert (x[0], y[0], z[0]) == (0.0, 0.0, 0.0)
    assert (x[node], y[node], z[node]) == (0.3, 2 * 0.2, 3 * 0.1)


def test_problem_sizes_are_those_of_the_suite():
    assert {name: benchmark.set_up()["size"] for name, benchmark in BENCHMARKS.items()} == {
        "DEL_DOT_VEC_2D": 1_000_000,
        "ENERGY": 1_000_000,
        "FIR": 1_000_000,
        "LTIMES num_d=6": 999_936,
        "LTIMES num_d=64": 999_424,
        "MATVEC_3D_STENCIL": 1_000_000,
        "PRESSURE": 1_000_000,
        "VOL3D": 1_000_000,
    }
    assert sum(len(benchmark.kernels) for benchmark in benchmarks(directions=(6,))) == 13


def test_missing_diagonals_are_the_stored_ones_seen_from_the_neighbour():
    data = matvec_3d_stencil.set_up(SMALL)
    domain = Domain.of_size(SMALL, 3)
    first, jp, kp = domain.zone_list()[0], domain.jp, domain.kp
    for name, stored, offset in (("ccr", "ccl", 1), ("ucc", "dcc", kp), ("ufr", "dbl", 1 + jp + kp)):
        assert data[f"m_{name}"][5] == data[stored][first + 5 + offset]
        assert np.shares_memory(data[f"m_{name}"], data[stored])


# Checksums


def test_checksum_weights_follow_position_and_sign():
    # Position 0: o = 1 for a value that is not negative, 0.5 for one that is.
    assert float(checksum([np.array([2.0])])) == pytest.approx(2.0 * (1.0 / math.pi + 0.5), rel=1e-15)
    assert float(checksum([np.array([-2.0])])) == pytest.approx(2.0 * (0.5 / math.pi + 0.5), rel=1e-15)
    # Position 3: 4 / pi is 1.27, of which the fraction counts.
    assert float(checksum([np.array([0.0, 0.0, 0.0, 1.0])])) == pytest.approx(4.0 / math.pi - 0.5, rel=1e-15)


def test_checksums_of_several_arrays_add_and_ignore_rank():
    a, b = np.arange(6.0), -np.arange(4.0)
    assert checksum([a, b]) == checksum([a]) + checksum([b])
    assert checksum([a.reshape(2, 3)]) == checksum([a])


def test_a_checksum_that_is_not_a_number_never_passes():
    nan = checksum([np.array([1.0, np.nan])])
    assert relative_difference(nan, np.longdouble(1)) == math.inf
    assert not Outcome("made up", 2, 1, nan, np.longdouble(1), 0.0).passed


@pytest.mark.parametrize("name", BENCHMARKS)
def test_numpy_reproduces_the_reference_checksum_in_one_repetition(name):
    outcome = run(BENCHMARKS[name], "numpy", reps_factor=0.0)
    assert outcome.reps == 1
    assert outcome.difference <= TOLERANCE


# Implementations


@pytest.mark.parametrize("target", ["handwritten-cpu", "cpu"])
@pytest.mark.parametrize("case", DATA)
def test_implementations_agree_with_numpy(case, target):
    benchmark, make = DATA[case]
    expected, actual = make(SMALL), make(SMALL)
    for _ in range(2):
        benchmark.reference(expected)
    with prepared(benchmark, actual, target) as repetition:
        repetition.run(2)
    for name in (*benchmark.outputs, *benchmark.written):
        np.testing.assert_allclose(actual[name], expected[name], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", BENCHMARKS)
def test_kernels_leave_their_inputs_alone(name):
    benchmark = BENCHMARKS[name]
    before, data = benchmark.set_up(SMALL), benchmark.set_up(SMALL)
    with prepared(benchmark, data, "cpu"):
        benchmark.run(data)
    for key in data.keys() - {*benchmark.outputs, *benchmark.written}:
        np.testing.assert_array_equal(data[key], before[key])


@pytest.mark.cuda
@pytest.mark.parametrize("target", ["handwritten-cuda", "cuda"])
@pytest.mark.parametrize("case", DATA)
def test_cuda_agrees_with_numpy(case, target):
    benchmark, make = DATA[case]
    expected, actual = make(SMALL), make(SMALL)
    benchmark.reference(expected)
    with prepared(benchmark, actual, target) as repetition:
        repetition.run(1)
    for name in benchmark.outputs:
        np.testing.assert_allclose(actual[name], expected[name], rtol=1e-11, atol=1e-11)


def test_energy_data_takes_every_branch():
    data = energy.every_branch_data(SMALL)
    energy.reference(data)
    compressing = data["delvc"] <= 0.0
    assert (data["delvc"] == 0.0).any() and (data["delvc"] < 0.0).any() and not compressing.all()
    # Where energy was cut, floored and kept.
    for taken in (data["e_new"] == 0.0, data["e_new"] == data["emin"], data["e_new"] > data["e_cut"]):
        assert taken.any()
    # Where viscosity is zero by expansion and by the cut; where the sound speed vanishes and where not.
    q_new, still = data["q_new"], data["qq_old"]
    assert (q_new[~compressing] == 0.0).all()
    assert (q_new[compressing] == 0.0).any()
    kept = compressing & (q_new != 0.0)
    assert (q_new[kept] == still[kept]).any()
    assert (q_new[kept] != still[kept]).any()


def test_pressure_data_takes_every_branch():
    data = pressure.every_branch_data(SMALL)
    pressure.reference(data)
    p = data["bvc"] * data["e_old"]
    small, dense = np.abs(p) < data["p_cut"], data["vnewc"] >= data["eosvmax"]
    assert (small & ~dense).any() and (dense & ~small).any() and (~small & ~dense).any()
    assert (data["p_new"] == data["pmin"]).any() and (data["p_new"] > data["p_cut"]).any()


# The command


def test_the_command_reports_a_pass(capsys):
    assert cli.main(["--target", "numpy", "--only", "fir", "--reps-factor", "0"]) == 0
    output = capsys.readouterr().out
    assert "FIR" in output and "PASS" in output


def test_the_command_fails_on_a_wrong_checksum(capsys, monkeypatch):
    monkeypatch.setattr(
        "benchmarks.rajaperf.runner.Benchmark.result", lambda self, data: np.longdouble(1606185.9)
    )
    assert cli.main(["--target", "numpy", "--only", "FIR", "--reps-factor", "0"]) == 1
    assert "FAIL" in capsys.readouterr().out


def test_an_unknown_benchmark_is_named_with_the_known_ones():
    with pytest.raises(ValueError, match="no benchmark is called 'LFIR'; there are DEL_DOT_VEC_2D, ENERGY"):
        select("LFIR")


def test_only_directions_with_a_reference_are_accepted(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--num-d", "7"])
    assert "6 and 64" in capsys.readouterr().err
