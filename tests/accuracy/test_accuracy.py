"""How far each mathematical function is from the exact value, in units of the last place, in each width, on each target.

The bars: 2 units in float64 and 4 in float32, for complex numbers 4 units of the modulus; `benchmarks/accuracy` has the
functions, their sample points, and the few that are held to other bars. `python -m benchmarks.accuracy` prints the errors.
"""

from __future__ import annotations

import math
import platform

import numpy as np
import pytest

pytest.importorskip("mpmath")

from benchmarks.accuracy.complex_functions import COMPLEX_FUNCTIONS
from benchmarks.accuracy.exact_functions import EXACT_FUNCTIONS
from benchmarks.accuracy.formats import FORMATS
from benchmarks.accuracy.functions import FUNCTIONS
from benchmarks.accuracy.measure import (
    evaluate,
    mismatches,
    worst_complex_results,
    worst_results,
    wrong_complex_specials,
    wrong_specials,
)

by_width = pytest.mark.parametrize("fmt", FORMATS.values(), ids=lambda f: f.dtype)
of_one_number = [f for f in COMPLEX_FUNCTIONS if f.arity == 1]


def named(functions):
    return pytest.mark.parametrize("function", functions, ids=lambda f: f.name)


def listed(results):
    return "\n".join(map(str, results))


@by_width
@named(FUNCTIONS)
def test_error(request, target, function, fmt):
    miss = function.misses.get(f"{target.name}/{fmt.dtype}")
    if miss is not None:
        # Other C libraries than the one that was measured may be better.
        strict = target.name != "cpu" or platform.libc_ver()[0] == "glibc"
        reason = f"{miss.measured:.3g} ulp: {miss.reason}"
        request.applymarker(pytest.mark.xfail(strict=strict, raises=AssertionError, reason=reason))
    bar = function.bar(fmt, target.name)
    over = [r for r in worst_results(function, fmt, target.name) if not r.error <= bar]
    assert not over, f"more than {bar:.3g} ulp on {target.name}:\n{listed(over)}"


@by_width
@named([f for f in FUNCTIONS if f.misses])
def test_what_misses_its_bar_is_no_worse_than_known(target, function, fmt):
    miss = function.misses.get(f"{target.name}/{fmt.dtype}")
    most = function.bar(fmt, target.name) if miss is None else miss.most
    over = [r for r in worst_results(function, fmt, target.name) if not r.error <= most]
    assert not over, f"more than {most:.3g} ulp on {target.name}:\n{listed(over)}"


@by_width
@named(FUNCTIONS)
def test_zeros_infinities_nan_and_1(target, function, fmt):
    wrong = wrong_specials(function, fmt, function.bar(fmt, target.name))
    assert not wrong, f"on {target.name}:\n{listed(wrong)}"


@by_width
@named(EXACT_FUNCTIONS)
def test_exact_results(target, function, fmt):
    wrong = list(mismatches(function, fmt, target.name))
    assert not wrong, f"on {target.name}:\n{listed(wrong)}"


@by_width
@named(COMPLEX_FUNCTIONS)
def test_complex_error(target, function, fmt):
    bar = function.bar(fmt, target.name)
    over = [r for r in worst_complex_results(function, fmt, target.name) if not r.error <= bar]
    assert not over, f"more than {bar:.3g} ulp of the modulus on {target.name}:\n{listed(over)}"


@by_width
@named(of_one_number)
def test_complex_zeros_and_infinities(target, function, fmt):
    wrong = wrong_complex_specials(function, fmt, function.bar(fmt, target.name))
    assert not wrong, f"on {target.name}:\n{listed(wrong)}"


@pytest.mark.parametrize("dtype", ["i1", "i4", "i8", "u1", "u8"])
def test_divisors_and_multiples(target, dtype):
    x, y = (g.ravel() for g in np.meshgrid(*[np.array([0, 1, 2, 3, 12, 18, 100, 127, *range(20, 60)], dtype)] * 2))
    if np.dtype(dtype).kind == "i":
        x, y = np.concatenate([x, -x]), np.concatenate([y, y])
    gcd, same = evaluate(("math.gcd(a, b)", "np.gcd(a, b)"), (x, y), dtype)
    assert np.array_equal(gcd, np.gcd(x, y))
    assert np.array_equal(same, np.gcd(x, y))
    (lcm,) = evaluate(("np.lcm(a, b)",), (x.astype("i8"), y.astype("i8")), "i8")
    assert np.array_equal(lcm, np.lcm(x.astype("i8"), y.astype("i8")))


def test_integers_are_taken_as_double_precision(target):
    n = np.array([-7, -1, 0, 1, 2, 3, 1000])
    spellings = (
        "math.cbrt(a)", "math.fmod(a, b)", "math.remainder(a, b)", "math.modf(a)[1]", "np.heaviside(a, b)", "math.atan2(a, b)",
    )  # fmt: skip
    m = np.full(len(n), 5)
    of_integers = evaluate(spellings, (n, m), "f8")
    of_floats = evaluate(spellings, (n.astype("f8"), m.astype("f8")), "f8")
    for spelling, got, wanted in zip(spellings, of_integers, of_floats, strict=True):
        assert np.array_equal(got, wanted), spelling
    assert math.cbrt(1000) == pytest.approx(of_integers[0][-1], rel=1e-15)
