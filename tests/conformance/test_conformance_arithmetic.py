"""Numbers mean in a kernel what they mean in NumPy, in every width, on every target."""

from __future__ import annotations

import math

import kernels
import numpy as np
import pytest
from samples import BOOLS, COMPLEX, FLOATS, INTEGERS, NUMBERS, SIGNED, same_bytes, sample, small
from scipy import special

from numba_offload import Region

N = 200


def outputs(count, n=N, dtype="f8"):
    return [np.zeros(n, dtype) for _ in range(count)]


def regions(arrays):
    return [Region(a) for a in arrays]


#: Units in the last place that a device's own mathematics may be off: vendors document up to 4 for double
#: precision and more for single, whose reference is computed in double.
_TOLERANCE = {"f4": 5e-6, "f8": 1e-13}


def assert_close(got, expected, dtype):
    np.testing.assert_allclose(got, np.asarray(expected, dtype), rtol=_TOLERANCE[dtype], atol=_TOLERANCE[dtype] / 10)


@pytest.mark.parametrize("dtype", FLOATS)
def test_mathematics(target, dtype):
    x = np.linspace(-3, 3, N).astype(dtype)
    names = "sin cos tan exp expm1 log1p sqrt tanh arctan erf floor ceil hypot".split()
    got = outputs(len(names), dtype=dtype)
    kernels.mathematics(x, *regions(got))
    v = x.astype("f8")
    arguments = {"log1p": (np.abs(v),), "sqrt": (np.abs(v),), "hypot": (v, 3 * v)}
    for name, result in zip(names, got, strict=True):
        function = special.erf if name == "erf" else getattr(np, name)
        assert_close(result, function(*arguments.get(name, (v,))), dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_mathematics_of_positive_numbers(target, dtype):
    x = np.linspace(0.05, 8, N).astype(dtype)
    v = x.astype("f8")
    expected = [
        np.log(v), np.log2(v), np.log10(v), v**2.5, special.gamma(v), special.gammaln(v), np.arccos(1 / (1 + v)),
        np.arcsin(1 / (1 + v)), np.arctan2(-v, 2.0), np.copysign(v, -1.0), np.fmod(v, 0.7), np.arcsinh(v),
    ]
    got = outputs(len(expected), dtype=dtype)
    kernels.mathematics_positive(x, *regions(got))
    for position, (result, wanted) in enumerate(zip(got, expected, strict=True)):
        if position == 10 and dtype == "f4":
            continue  # a remainder is as far from the double one as its operands' rounding makes it
        assert_close(result, wanted, dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_numpy_functions_on_scalars(target, dtype):
    x = np.linspace(-4, 4, N).astype(dtype)
    got = outputs(8, dtype=dtype)
    kernels.numpy_functions(x, *regions(got))
    expected = [
        np.sin(x), np.exp(x), np.sqrt(np.abs(x)), np.abs(x), np.minimum(x, 0.5), np.maximum(x, 0.5), np.sign(x),
        np.floor(x),
    ]
    for result, wanted in zip(got, expected, strict=True):
        assert_close(result, wanted, dtype)


SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, 5e-324, 1.7e308])


@pytest.mark.parametrize("dtype", FLOATS)
def test_classification(target, dtype):
    with np.errstate(over="ignore"):
        x = SPECIAL.astype(dtype)
    got = outputs(3, len(x), "?")
    kernels.classify(x, *regions(got))
    assert [g.tolist() for g in got] == [np.isnan(x).tolist(), np.isinf(x).tolist(), np.isfinite(x).tolist()]


@pytest.mark.parametrize("dtype", FLOATS)
def test_rounding_is_to_even_and_int_truncates(target, dtype):
    x = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.7, -3.7, 1e6 + 0.5], dtype)
    y, z = np.zeros(len(x)), np.zeros(len(x), "i8")
    kernels.rounding(x, Region(y), Region(z))
    assert np.array_equal(y, np.rint(x))
    assert np.array_equal(z, np.trunc(x))


@pytest.mark.parametrize("dtype", FLOATS)
def test_float_division_is_ieee(target, dtype):
    with np.errstate(all="ignore"):
        special_values = SPECIAL.astype(dtype)
        x, y = (g.ravel() for g in np.meshgrid(special_values, special_values))
        expected = x / y
    (quotient,) = outputs(1, len(x), dtype)
    kernels.float_division(x, y, Region(quotient))
    assert np.array_equal(quotient, expected, equal_nan=True)
    assert np.array_equal(np.signbit(quotient[~np.isnan(expected)]), np.signbit(expected[~np.isnan(expected)]))


@pytest.mark.parametrize("dtype", FLOATS)
def test_float_floor_division_and_remainder(target, dtype):
    x = np.array([7.5, -7.5, 7.5, -7.5, 0.0, 1e10, 5.0], dtype)
    y = np.array([2.0, 2.0, -2.0, -2.0, 3.0, 7.0, np.inf], dtype)
    quotient, remainder = outputs(2, len(x), dtype)
    kernels.float_floor_division(x, y, Region(quotient), Region(remainder))
    assert same_bytes(quotient, x // y)
    assert same_bytes(remainder, x % y)


@pytest.mark.parametrize("dtype", FLOATS)
def test_float_floor_division_by_zero_is_ieee(target, dtype):
    x = np.array([1.0, -1.0, 0.0, np.nan], dtype)
    y = np.zeros(4, dtype)
    quotient, remainder = outputs(2, len(x), dtype)
    kernels.float_floor_division(x, y, Region(quotient), Region(remainder))
    with np.errstate(all="ignore"):
        assert np.array_equal(quotient, x // y, equal_nan=True)
        assert np.array_equal(remainder, x % y, equal_nan=True)


def pairs(dtype, seed=0):
    """Random numbers of the whole range beside small ones; divisors are never zero."""
    x = np.concatenate([sample(dtype, 100, seed), small(dtype, 100, seed)])
    y = np.concatenate([sample(dtype, 50, seed + 1), small(dtype, 100, seed + 1), sample(dtype, 50, seed + 2)])
    y[y == 0] = 3
    return x, y


@pytest.mark.parametrize("dtype", INTEGERS)
def test_floor_division_and_modulo(target, dtype):
    x, y = pairs(dtype)
    if np.dtype(dtype).kind == "i":
        y[(x == np.iinfo(dtype).min) & (y == -1)] = 1  # overflows; below
    quotient, remainder = outputs(2, len(x), dtype)
    kernels.integer_division(x, y, Region(quotient), Region(remainder))
    assert np.array_equal(quotient, x // y)
    assert np.array_equal(remainder, x % y)


@pytest.mark.parametrize("dtype", SIGNED)
def test_the_quotient_that_overflows_wraps(target, dtype):
    x = np.full(3, np.iinfo(dtype).min, dtype)
    y = np.full(3, -1, dtype)
    quotient, remainder = outputs(2, 3, dtype)
    kernels.integer_division(x, y, Region(quotient), Region(remainder))
    with np.errstate(over="ignore"):
        assert np.array_equal(quotient, x // y)
    assert not remainder.any()


@pytest.mark.parametrize("dtype", INTEGERS)
def test_true_division_of_integers_is_float64(target, dtype):
    x, y = pairs(dtype)
    (quotient,) = outputs(1, len(x))
    kernels.true_division(x, y, Region(quotient))
    assert np.array_equal(quotient, x.astype("f8") / y.astype("f8"))


@pytest.mark.parametrize("dtype", (*BOOLS, *INTEGERS))
def test_bitwise_operators(target, dtype):
    x, y = sample(dtype, N), sample(dtype, N, seed=1)
    got = outputs(4, dtype=dtype)
    kernels.bits(x, y, *regions(got))
    for result, wanted in zip(got, [x & y, x | y, x ^ y, ~x], strict=True):
        assert np.array_equal(result, wanted)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifts(target, dtype):
    x = sample(dtype, N)
    bits = np.dtype(dtype).itemsize * 8
    by = (np.arange(N) % bits).astype(dtype)
    left, right = outputs(2, dtype=dtype)
    kernels.shifts(x, by, Region(left), Region(right))
    assert np.array_equal(left, x << by)
    assert np.array_equal(right, x >> by)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifts_by_the_width_and_more(target, dtype):
    x = np.repeat(sample(dtype, 30), 4)
    by = np.tile(np.array([8, 64, 65, 100]), 30)
    left, right = outputs(2, len(x), dtype)
    kernels.shifts(x, by, Region(left), Region(right))
    # In Python's integers, which have no width.
    bits = 8 * np.dtype(dtype).itemsize
    expected = [((int(v) << int(n)) & (2**bits - 1)).to_bytes(bits // 8, "little") for v, n in zip(x, by, strict=True)]
    assert left.tobytes() == b"".join(expected)
    assert right.tolist() == [int(v) >> int(n) for v, n in zip(x, by, strict=True)]


def test_a_negative_shift_gives_what_numpy_gives(target):
    x = np.array([5, -5, 5, -5])
    by = np.array([-1, -1, -(2**63), -64])
    left, right = outputs(2, 4, "i8")
    kernels.shifts(x, by, Region(left), Region(right))
    assert np.array_equal(left, x << by)
    assert np.array_equal(right, x >> by)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_arithmetic_wraps_around(target, dtype):
    x, y = sample(dtype, N), sample(dtype, N, seed=1)
    got = outputs(4, dtype=dtype)
    kernels.wrap_around(x, y, *regions(got))
    for result, wanted in zip(got, [x + y, x - y, x * y, np.negative(x)], strict=True):
        assert np.array_equal(result, wanted)


@pytest.mark.parametrize("dtype", (*BOOLS, *INTEGERS, *FLOATS))
def test_comparisons(target, dtype):
    x, y = sample(dtype, N), np.roll(sample(dtype, N), 3)
    y[::4] = x[::4]
    got = outputs(3, dtype="?")
    kernels.comparisons(x, y, *regions(got))
    for result, wanted in zip(got, [x < y, x == y, x >= y], strict=True):
        assert np.array_equal(result, wanted)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_integer_powers(target, dtype):
    x = small(dtype, N, low=-4, high=5)
    squared, cubed = outputs(2, dtype=dtype)
    kernels.powers(x, Region(squared), Region(cubed))
    assert np.array_equal(squared, x * x)
    if dtype in COMPLEX:
        np.testing.assert_allclose(cubed, x * x * x, rtol=_TOLERANCE["f4" if dtype == "c8" else "f8"])
    else:
        assert np.array_equal(cubed, x * x * x)


@pytest.mark.parametrize("right", ["i1", "u1", "i2", "i8"])
@pytest.mark.parametrize("left", ["i1", "u1", "i2", "u2", "i4"])
def test_narrow_integers_have_wide_results(target, left, right):
    rng = np.random.default_rng(3)
    x, y = (rng.integers(np.iinfo(d).min, np.iinfo(d).max, N, dtype=d, endpoint=True) for d in (left, right))
    x[:2], y[:2] = np.iinfo(left).min, (np.iinfo(right).max, 1)
    y[y == 0] = 7
    a, b = x.astype("i8"), y.astype("i8")
    got = outputs(4, N, "i8")
    kernels.wide_results(x, y, *regions(got))
    for result, wanted in zip(got, [a * b, a // b, a % b, (~x).astype("i8") - b], strict=True):
        assert np.array_equal(result, wanted)


@pytest.mark.parametrize("dtype", COMPLEX)
def test_complex_arithmetic(target, dtype):
    x, y = small(dtype, N), small(dtype, N, seed=1)
    y[y == 0] = 1 - 2j
    part = "f4" if dtype == "c8" else "f8"
    wide = [np.zeros(N, dtype) for _ in range(4)]
    narrow = [np.zeros(N, part) for _ in range(3)]
    kernels.complex_arithmetic(x, y, *regions(wide), *regions(narrow))
    assert np.array_equal(wide[0], x + y)
    assert np.array_equal(wide[1], x * y)
    np.testing.assert_allclose(wide[2], x / y, rtol=_TOLERANCE[part])
    assert np.array_equal(wide[3], x.conj())
    assert np.array_equal(narrow[0], x.real)
    assert np.array_equal(narrow[1], x.imag)
    assert_close(narrow[2], np.abs(x), part)


@pytest.mark.parametrize("dtype", COMPLEX)
def test_complex_products_round_each_step_without_contraction(target, dtype):
    rng = np.random.default_rng(5)
    x, y = ((rng.random(N) + 1j * rng.random(N)).astype(dtype) for _ in range(2))
    wanted = np.empty(N, dtype)
    wanted.real = x.real * y.real - x.imag * y.imag
    wanted.imag = x.real * y.imag + x.imag * y.real
    wanted += 1
    out = np.ones(N, dtype)
    kernels.complex_product(x, y, Region(out))
    assert np.array_equal(out, wanted)


@pytest.mark.parametrize("dtype", COMPLEX)
def test_complex_powers(target, dtype):
    x, y = ((small(dtype, N, seed=seed) / 5).astype(dtype) for seed in (0, 1))
    x[0], x[1], y[0], y[1], y[2] = 0, 0, 0, 2, 0
    power = np.zeros(N, dtype)
    kernels.complex_power(x, y, Region(power))
    defined = (x != 0) | (y == 0) | (y == 2)
    wanted = x.astype("c16")[defined] ** y.astype("c16")[defined]
    part = "f4" if dtype == "c8" else "f8"
    np.testing.assert_allclose(power[defined], wanted, rtol=8 * _TOLERANCE[part], atol=_TOLERANCE[part])


@pytest.mark.parametrize("dtype", COMPLEX)
def test_complex_division_by_zero_is_ieee(target, dtype):
    x = np.array([1 + 2j, -1j, 0, 3 - 1j, complex(np.inf, 1), complex(np.nan, 0)], dtype)
    y = np.array([0, 0, 0, complex(np.nan, 1), 2, 1], dtype)
    (quotient,) = outputs(1, 6, dtype)
    kernels.float_division(x, y, Region(quotient))
    with np.errstate(all="ignore"):
        expected = x / y
    assert np.array_equal(quotient.real, expected.real, equal_nan=True)
    assert np.array_equal(quotient.imag, expected.imag, equal_nan=True)


@pytest.mark.parametrize("dtype", COMPLEX)
def test_complex_functions(target, dtype):
    part = "f4" if dtype == "c8" else "f8"
    x = (small(dtype, N) / 4).astype(dtype)
    got = [np.zeros(N, dtype) for _ in range(3)]
    phase = np.zeros(N, part)
    kernels.complex_functions(x, *regions(got), Region(phase))
    wide = x.astype("c16")
    for result, wanted in zip(got, [np.exp(wide), np.sqrt(wide), np.sin(wide)], strict=True):
        np.testing.assert_allclose(result, wanted, rtol=_TOLERANCE[part], atol=_TOLERANCE[part])
    assert_close(phase, np.angle(wide), part)


@pytest.mark.parametrize("alpha", [2, 0.5, 2 - 1j, np.complex64(1 + 3j)], ids=repr)
@pytest.mark.parametrize("dtype", COMPLEX)
def test_complex_arrays_and_scalars_mixed(target, dtype, alpha):
    x, y = small(dtype, N), small(dtype, N, seed=1)
    expected = alpha * x + y
    kernels.complex_scalar(alpha, x, Region(y))
    assert np.array_equal(y, expected)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_saxpy(target, dtype):
    x, y = small(dtype, N, low=-5, high=6), small(dtype, N, seed=1, low=-5, high=6)
    expected = (3 * x + y).astype(dtype)
    kernels.saxpy(3, x, Region(y))
    assert np.array_equal(y, expected)


@pytest.mark.parametrize("unit", ["ns", "s", "D"])
def test_dates_and_spans(target, unit):
    start = np.array(["2000-01-01", "2024-02-29", "NaT", "1969-07-20"], f"M8[{unit}]")
    step = np.array([1, 366, 5, -7], f"m8[{unit}]")
    stamps, spans = np.zeros(4, f"M8[{unit}]"), np.zeros(4, f"m8[{unit}]")
    kernels.dates(start, step, Region(stamps), Region(spans))
    assert same_bytes(stamps, start + step)
    assert same_bytes(spans, start + step - start[0])


def test_not_gives_a_bool_of_0_or_1(target):
    x = sample("?", N)
    y = np.zeros(N, "?")
    kernels.negate_bool(x, Region(y))
    assert np.array_equal(y.view("u1"), (~x).view("u1"))


@pytest.mark.parametrize("dtype", ["i4", "f8", "u1"])
def test_what_is_not_zero_is_true(target, dtype):
    y = np.zeros(5, "?")
    kernels.copy(np.array([0, 1, 2, 200, 0], dtype), Region(y))
    assert y.view("u1").tolist() == [0, 1, 1, 1, 0]


@pytest.mark.parametrize("to", NUMBERS)
@pytest.mark.parametrize("of", ["?", "i1", "u2", "i8", "f4"])
def test_assignment_converts_as_numpy_does(target, of, to):
    # A negative float as an unsigned integer is undefined, in NumPy too.
    low = 0 if of == "f4" and to[0] == "u" else -9
    x = small(of, N, low=low) if of != "?" else sample(of, N)
    y = np.zeros(N, to)
    kernels.copy(x, Region(y))
    assert np.array_equal(y, x.astype(to))


def test_arithmetic_on_owned_indices(target):
    x = small("i8", 20)
    y = np.zeros(20, "i8")
    kernels.index_arithmetic(x, Region(y))
    i = np.arange(20)
    assert np.array_equal(y, x[(i * 7 + 3) % 20] + 10 * (i // 2) + 1000 * np.minimum(i, 3) + 100000 * (-i % 4))


@pytest.mark.xfail(strict=True, reason="Numba takes an unsigned 64-bit operand for a signed one beside a signed operand")
def test_division_of_large_unsigned_by_signed_integers(target):
    x, y = np.array([2**63 + 5, 2**64 - 1], "u8"), np.array([3, 7])
    quotient, remainder = np.zeros(2, "u8"), np.zeros(2, "i8")
    kernels.integer_division(x, y, Region(quotient), Region(remainder))
    assert quotient.tolist() == [(2**63 + 5) // 3, (2**64 - 1) // 7]
    assert remainder.tolist() == [(2**63 + 5) % 3, (2**64 - 1) % 7]


def test_unsigned_and_signed_mixed(target):
    x, y = np.array([5, 250], "u1"), np.array([-3, 100], "i4")
    got = outputs(4, 2, "i8")
    kernels.wrap_around(x, y, *regions(got))
    wide = x.astype("i8")
    assert [g.tolist() for g in got[:3]] == [(wide + y).tolist(), (wide - y).tolist(), (wide * y).tolist()]


def test_math_domain_is_ieee_not_an_exception(target):
    got = outputs(12, 2)
    kernels.mathematics_positive(np.array([-1.0, 0.0]), *regions(got))
    assert math.isnan(got[0][0])
    assert got[0][1] == -math.inf
    assert math.isnan(got[3][0])


