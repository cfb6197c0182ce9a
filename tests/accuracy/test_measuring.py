"""The measure of errors itself: units in the last place, also where numbers end."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("mpmath")

from mpmath import mp, mpc, mpf

from benchmarks.accuracy import __main__ as command
from benchmarks.accuracy.formats import BITS, FORMATS, modulus_error, ulp_error
from benchmarks.accuracy.points import HARDEST_ANGLES, some_of

F4, F8 = FORMATS["f4"], FORMATS["f8"]


@pytest.fixture(autouse=True)
def many_bits():
    with mp.workprec(BITS):
        yield


def test_a_neighbour_is_one_unit_away():
    for fmt in (F4, F8):
        one = np.dtype(fmt.dtype).type(1.5)
        assert ulp_error(float(np.nextafter(one, one.dtype.type(2))), mpf(1.5), fmt) == 1
        assert ulp_error(1.5, mpf(1.5), fmt) == 0
        assert ulp_error(1.5, mpf(1.5) + mpf(fmt.eps) / 4, fmt) == 0.25


def test_below_normal_numbers_a_unit_is_the_least_number():
    assert ulp_error(0.0, mpf(5e-324), F8) == 1
    assert ulp_error(5e-324, mpf(5e-324) / 4, F8) == 0.75


def test_infinity_is_the_number_after_the_largest():
    largest = F8.largest
    assert ulp_error(math.inf, mpf(2) ** 1024, F8) == 0
    assert ulp_error(math.inf, mpf(10) ** 400, F8) == 0
    assert ulp_error(math.inf, mpf(largest), F8) == 1
    assert ulp_error(largest, mpf(10) ** 400, F8) == 0.5  # beyond, a unit is twice as large
    assert ulp_error(-math.inf, mpf(10) ** 400, F8) > 1e15


def test_not_a_number_is_right_only_where_it_is_expected():
    assert ulp_error(math.nan, mp.nan, F8) == 0
    assert ulp_error(1.0, mp.nan, F8) == ulp_error(math.nan, mpf(1), F8) == math.inf


def test_complex_errors_are_relative_to_the_modulus():
    unit = 2.0**-52
    assert modulus_error(complex(1, unit), mpc(1, 0), F8) == 1
    assert modulus_error(complex(3 + 4 * unit, 4), mpc(3, 4), F8) == 1  # between 4 and 8 a unit is four times as large


def test_the_hardest_angle_of_each_format():
    with mp.workprec(1200):
        for dtype, bound in (("f8", 5e-19), ("f4", 2e-9)):
            angle = HARDEST_ANGLES[dtype]
            assert float(np.dtype(dtype).type(angle)) == angle
            assert 0 < abs(mp.cos(mpf(angle))) < bound


def test_a_few_points_have_some_of_each_group():
    groups = [(np.zeros(1000),), (np.ones(1),), (np.full(50, 2.0),)]
    (chosen,) = some_of(groups, 100)
    assert 90 <= len(chosen) <= 110
    assert set(chosen) == {0.0, 1.0, 2.0}


def test_the_command_prints_errors_and_bars(capsys):
    assert command.main(["--only", "sqrt", "--strict"]) == 0
    printed = capsys.readouterr().out
    assert "sqrt" in printed
    assert "(<= 4)" in printed
