"""Arguments, tuples, device functions, closures and globals."""

from __future__ import annotations

import enum
import types

import kernels
import numpy as np
import pytest
from samples import small

from numba_offload import (
    AliasError,
    Chunked1D,
    GridStride1D,
    Region,
    SafetyError,
    Tiles2D,
    UnsupportedArrayError,
    offload_kernel,
)

X = np.arange(12.0)


def output(n=12, dtype="f8"):
    return np.zeros(n, dtype)


@pytest.mark.parametrize(
    ("args", "kwargs", "expected"),
    [
        ((), {}, 2 * X),
        ((3.0,), {}, 3 * X),
        ((3.0, 5), {}, 3 * X + 5),
        ((), {"shift": 1}, 2 * X + 1),
        ((), {"shift": 1, "scale": 4}, 4 * X + 1),
        ((7,), {"shift": 2.5}, 7 * X + 2.5),
    ],
)
def test_defaults_and_keywords(target, args, kwargs, expected):
    y = output()
    kernels.defaults(X, Region(y), *args, **kwargs)
    assert np.array_equal(y, expected)


def test_every_argument_by_keyword(target):
    y = output()
    kernels.defaults(shift=1, y=Region(y), scale=3, x=X)
    assert np.array_equal(y, 3 * X + 1)


@pytest.mark.parametrize(
    ("args", "kwargs", "match"),
    [
        ((X,), {}, "missing a required argument: 'y'"),
        ((X, Region(output()), 1, 2, 3), {}, "too many positional arguments"),
        ((X, Region(output())), {"factor": 2}, "no parameter 'factor'"),
        ((X, Region(output())), {"x": X}, "multiple values for argument 'x'"),
    ],
)
def test_a_wrong_call_is_a_type_error(target, args, kwargs, match):
    with pytest.raises(TypeError, match=f"defaults.*{match}"):
        kernels.defaults(*args, **kwargs)


@pytest.mark.parametrize("extra", [None, 3, 2.5])
def test_an_optional_argument(target, extra):
    y = output()
    kernels.optional(X, Region(y), extra)
    assert np.array_equal(y, X + (extra or 0))


@pytest.mark.parametrize(
    "value",
    [True, 3, -(2**63), 2**63 - 1, 2.5, np.float32(1.5), np.int8(-3), np.uint16(65535), np.bool_(True)],
    ids=repr,
)
def test_scalars_by_value(target, value):
    y = np.zeros(4, np.asarray(value).dtype)
    kernels.fill(Region(y), value)
    assert np.array_equal(y, np.full(4, value))


def test_an_unsigned_64_bit_scalar(target):
    y = np.zeros(4, "u8")
    kernels.fill(Region(y), 2**64 - 1)
    assert np.array_equal(y, np.full(4, 2**64 - 1, "u8"))


@pytest.mark.parametrize("value", [2.5 - 1j, np.complex64(1 + 2j), np.complex128(-3j)], ids=repr)
def test_complex_scalars_by_value(target, value):
    y = np.zeros(4, "c16")
    kernels.fill(Region(y), value)
    assert np.array_equal(y, np.full(4, value))


@pytest.mark.parametrize("unit", ["ns", "s", "D"])
def test_dates_by_value(target, unit):
    day, span = np.datetime64("2024-02-29", unit), np.timedelta64(90, unit)
    stamps, spans = np.zeros(3, f"M8[{unit}]"), np.zeros(3, f"m8[{unit}]")
    kernels.fill(Region(stamps), day)
    kernels.fill(Region(spans), span)
    assert (stamps == day).all()
    assert (spans == span).all()


@pytest.mark.parametrize("value", ["s", [1, 2], {"a": 1}, object(), 2**70, {1}], ids=lambda v: type(v).__name__)
def test_what_has_no_form_in_a_kernel(target, value):
    y = output()
    with pytest.raises(UnsupportedArrayError, match="'value'"):
        kernels.fill(Region(y), value)
    assert not y.any()


def test_a_named_tuple_of_arrays_regions_and_scalars(target):
    position, velocity = small("f8", 20), small("f8", 20, seed=1)
    expected = position + 0.5 * velocity / 4.0
    kernels.move(kernels.Particles(Region(position), velocity, 4.0), 0.5)
    assert np.array_equal(position, expected)


@pytest.mark.parametrize("dtypes", ["f8 f8", "i4 f8", "f4 i1"])
def test_a_tuple_of_arrays(target, dtypes):
    a, b = (small(dtype, 9, seed=k) for k, dtype in enumerate(dtypes.split()))
    y = output(9)
    kernels.add_pair((a, b), Region(y))
    assert np.array_equal(y, a + b)


def test_a_tuple_in_a_tuple(target):
    x, y = small("f8", 9), output(9)
    kernels.nested_tuple((x, (Region(y), 3.0)))
    assert np.array_equal(y, 3 * x)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_tuple_indexed_by_a_variable(target, n):
    arrays = tuple(small("f8", 9, seed=k) for k in range(n))
    y = output(9)
    kernels.any_of(arrays, Region(y))
    assert np.array_equal(y, sum(arrays))


@pytest.mark.parametrize("dtype", ["i4", "f4", "f8", "c16"])
def test_device_functions_on_scalars(target, dtype):
    x = small(dtype, 9)
    y = np.zeros(9, dtype)
    kernels.call_scalars(x, Region(y))
    assert np.array_equal(y, 5 * x)


def test_device_functions_on_views_and_indices(target):
    x, y = small("f8", 30), output(30)
    kernels.call_views(x, Region(y, GridStride1D()))
    assert np.array_equal(y, x)
    x2, y2 = small("f8", (5, 6)), np.zeros((5, 6))
    kernels.call_views(x2, Region(y2, Tiles2D(2, 2)))
    assert np.array_equal(y2, x2)


@pytest.mark.parametrize("shape", [(30,), (5, 6)])
def test_a_device_function_that_loops_over_a_region(target, shape):
    y = np.zeros(shape)
    kernels.call_with_region(Region(y), 4.0)
    assert np.array_equal(y, np.full(shape, 4.0))


def test_a_device_function_on_slices(target):
    x, y = small("i8", 10), output(4, "i8")
    kernels.call_with_slice(x, Region(y))
    assert np.array_equal(y, np.full(4, x[:3].sum() + x.sum()))


def test_a_device_function_that_takes_and_returns_tuples(target):
    x, y, z = small("f8", 10), small("f8", 10, seed=1), output(10)
    low, high = np.minimum(x, y), np.maximum(x, y)
    kernels.call_with_tuple(x, Region(y), Region(z))
    assert np.array_equal(y, low)
    assert np.array_equal(z, high)


def test_a_device_function_on_a_block(target):
    y = output(11, "i8")
    kernels.call_with_block(Region(y, Chunked1D(4)))
    at = np.arange(11)
    assert np.array_equal(y, at // 4 * 4 + 2 * (at % 4))


@pytest.mark.parametrize("kernel", [kernels.call_recursive, kernels.call_mutually_recursive])
def test_a_device_function_that_calls_itself_is_refused(target, kernel):
    with pytest.raises(SafetyError, match=r"(?s)calls itself.*loop"):
        kernel(Region(output(9, "i8")))


def test_an_offload_function_is_a_plain_function_in_python():
    assert kernels.twice(4) == 8
    assert kernels.smallest_and_largest((3, 1)) == (1, 3)


def test_globals_are_read_as_they_are_at_the_launch(target, monkeypatch):
    y = output(6)
    kernels.uses_globals(Region(y))
    assert np.array_equal(y, 9.5 + np.array([1, 20, 300, 1, 20, 300]))
    monkeypatch.setattr(kernels.calls, "GRAVITY", 1.5)
    kernels.uses_globals(Region(y))
    assert np.array_equal(y, 1.5 + np.array([1, 20, 300, 1, 20, 300]))
    monkeypatch.setattr(kernels.calls, "OFFSETS", (0, 2, 4))
    kernels.uses_globals(Region(y))
    assert np.array_equal(y, 1.5 + np.array([0, 2, 4, 0, 2, 4]))


def test_each_closure_has_its_own_value(target):
    double, triple = kernels.scaled_by(2.0), kernels.scaled_by(3)
    x, y = small("f8", 7), output(7)
    double(x, Region(y))
    assert np.array_equal(y, 2 * x)
    triple(x, Region(y))
    assert np.array_equal(y, 3 * x)
    double(x, Region(y))
    assert np.array_equal(y, 2 * x)


def test_a_closure_cell_that_changes(target):
    change, kernel = _counter_kernel()
    y = output(3)
    kernel(Region(y))
    assert np.array_equal(y, np.ones(3))
    change(5.0)
    kernel(Region(y))
    assert np.array_equal(y, np.full(3, 5.0))


def _counter_kernel():
    value = 1.0

    def change(new):
        nonlocal value
        value = new

    @offload_kernel
    def kernel(y):
        for i in y.indices():
            y[i] = value

    return change, kernel


def test_a_captured_array_is_current_at_each_launch(target):
    table = np.arange(5.0)

    @offload_kernel
    def look_up(y):
        for i in y.indices():
            y[i] = table[i % 5]

    y = output(10)
    look_up(Region(y))
    assert np.array_equal(y, np.tile(table, 2))
    table[:] = 7
    look_up(Region(y))
    assert np.array_equal(y, np.full(10, 7.0))
    table = np.arange(5, 10, dtype="i4")
    look_up(Region(y))
    assert np.array_equal(y, np.tile(table, 2))


class Mode(enum.Enum):
    ONE = 1
    TWO = 2


def test_what_is_captured_may_become_something_else(target):
    mode, package = Mode.ONE, types.ModuleType("package")
    package.inner = types.ModuleType("package.inner")
    package.inner.step = 10.0

    @offload_kernel
    def kernel(y):
        for i in y.indices():
            y[i] = (1 if mode is Mode.ONE else 2) + package.inner.step

    y = output(3)
    kernel(Region(y))
    mode, package.inner.step = Mode.TWO, 20.0
    z = output(3)
    kernel(Region(z))
    assert (list(y), list(z)) == ([11.0] * 3, [22.0] * 3)


def test_a_captured_number_may_become_an_array_and_back(target):
    value = np.arange(4.0)

    @offload_kernel
    def double(y):
        for i in y.indices():
            y[i] = np.max(value) * 2

    y = output(3)
    double(Region(y))
    assert list(y) == [6.0] * 3
    value = 5.0
    double(Region(y))
    assert list(y) == [10.0] * 3
    value = np.arange(3, dtype="i4")
    double(Region(y))
    assert list(y) == [4.0] * 3


def test_a_captured_array_may_not_be_what_the_kernel_writes(target):
    table = np.arange(5.0)

    @offload_kernel
    def look_up(y):
        for i in y.indices():
            y[i] = table[i] + 1

    with pytest.raises(AliasError, match="table"):
        look_up(Region(table))
    assert np.array_equal(table, np.arange(5))


@pytest.mark.parametrize("dtype", ["?", "i2", "u8", "f4", "f8", "c8", "c16"])
def test_reductions_that_only_read(target, dtype):
    x = small(dtype, (4, 6), low=-3, high=4)

    @offload_kernel
    def totals(x, y, z):
        for i in y.indices():
            y[i] = x[i].sum()
            z[i] = np.prod(x[i, :3])

    y, z = np.zeros(4, x.sum(axis=1).dtype), np.zeros(4, x.prod(axis=1).dtype)
    totals(x, Region(y), Region(z))
    assert np.array_equal(y, x.sum(axis=1))
    assert np.array_equal(z, x[:, :3].prod(axis=1))


def test_positions_in_a_record_are_read_and_written(target):
    packed = np.zeros(6, kernels.PACKED)
    packed["id"], packed["mass"], packed["charge"] = np.arange(6), 1.5, [1, -1] * 3
    y = output(6)
    kernels.record_fields(packed, Region(y))
    assert np.array_equal(y, packed["id"] + packed["mass"] * packed["charge"])


@pytest.mark.parametrize("dtype", [kernels.PACKED, kernels.ALIGNED], ids=["packed", "aligned"])
@pytest.mark.parametrize("strategy", [None, Chunked1D(2)], ids=repr)
def test_one_field_is_written_and_nothing_else(target, dtype, strategy):
    rows = np.full(6 * dtype.itemsize, 0x5A, "u1").view(dtype)
    expected = rows.view("u1").copy().view(dtype)
    expected["mass"] = 2.5 * np.arange(6)
    expected["id"] += 1
    kernels.record_write_field(Region(rows, strategy))
    kernels.record_update_field(Region(rows, strategy))
    assert rows.tobytes() == expected.tobytes()
