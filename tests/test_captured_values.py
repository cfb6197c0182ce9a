"""What launches take from around them, or from the dtypes of their arrays, is looked at anew each time."""

from __future__ import annotations

import collections
import types

import numpy as np
import pytest

from numba_offload import Region, offload_function, offload_kernel, optimize_transfers, use_target

Forwards = collections.namedtuple("Forwards", ["x", "y"])
Backwards = collections.namedtuple("Backwards", ["y", "x"])


class Shown(float):
    """A number whose text does not tell what it is."""

    def __repr__(self):
        return "a number"


def module(**attributes):
    made = types.ModuleType("made")
    vars(made).update(attributes)
    return made


PLACE = Forwards(1.0, 2.0)
NUMBER = Shown(1.0)
settings = module(alpha=1.0)
package = module(inner=module(alpha=1.0))
FIRST = SECOND = 1.0


@offload_function
def first():
    return FIRST


@offload_function
def second():
    return 10.0 * SECOND


helper = first


@offload_kernel
def put_place(y):
    for i in y.indices():
        y[i] = PLACE.x


@offload_kernel
def put_number(y):
    for i in y.indices():
        y[i] = NUMBER


@offload_kernel
def put_setting(y):
    for i in y.indices():
        y[i] = settings.alpha


@offload_kernel
def put_inner(y):
    for i in y.indices():
        y[i] = package.inner.alpha


@offload_kernel
def put_helped(y):
    for i in y.indices():
        y[i] = helper()


@pytest.fixture(autouse=True, params=["unified", "discrete"])
def memory(monkeypatch, request):
    monkeypatch.setenv("NUMBA_OFFLOAD_CPU_MEMORY", request.param)
    with use_target("cpu"):
        yield


def check(kernel, value):
    """By launches that are planned, and repeated."""
    y = np.zeros(12)
    region = Region(y)
    for _ in range(3):
        y[:] = -1.0
        kernel(region)
        assert (y == value).all()

    @optimize_transfers
    def several():
        for _ in range(3):
            kernel(region)

    y[:] = -1.0
    several()
    assert (y == value).all()


def change(monkeypatch, name, value):
    monkeypatch.setitem(globals(), name, value)


def test_named_tuples_with_the_same_values(monkeypatch):
    check(put_place, 1.0)
    change(monkeypatch, "PLACE", Backwards(1.0, 2.0))
    check(put_place, 2.0)
    change(monkeypatch, "PLACE", Forwards(3.0, 2.0))
    check(put_place, 3.0)


def test_numbers_that_are_shown_alike(monkeypatch):
    check(put_number, 1.0)
    change(monkeypatch, "NUMBER", Shown(2.0))
    check(put_number, 2.0)


def test_another_module_under_the_same_name(monkeypatch):
    check(put_setting, 1.0)
    other = module(alpha=2.0)
    change(monkeypatch, "settings", other)
    check(put_setting, 2.0)
    other.alpha = 1.0  # as the first one's
    check(put_setting, 1.0)
    other.alpha = 3.0
    check(put_setting, 3.0)
    change(monkeypatch, "settings", module(alpha=4.0))
    check(put_setting, 4.0)


def test_another_module_inside_a_module(monkeypatch):
    check(put_inner, 1.0)
    monkeypatch.setattr(package, "inner", module(alpha=2.0))
    check(put_inner, 2.0)
    package.inner.alpha = 3.0
    check(put_inner, 3.0)


def test_another_callee_whose_own_values_change(monkeypatch):
    check(put_helped, 1.0)
    change(monkeypatch, "SECOND", 2.0)
    change(monkeypatch, "helper", second)
    check(put_helped, 20.0)
    change(monkeypatch, "SECOND", 1.0)  # what FIRST was when it was replaced
    check(put_helped, 10.0)
    change(monkeypatch, "helper", first)
    check(put_helped, 1.0)
    change(monkeypatch, "FIRST", 5.0)
    check(put_helped, 5.0)


# Of dtypes


@offload_kernel
def take_a(x, y):
    for i in y.indices():
        y[i] = x[i].a


@offload_kernel
def take_inner_a(x, y):
    for i in y.indices():
        y[i] = x[i].part.a


def records(*names):
    made = np.zeros(12, np.dtype({"names": names, "formats": ["f8"] * len(names)}))
    made["a"], made["b"] = 1.0, 2.0
    return made


def test_fields_that_are_renamed_in_place():
    x, y = records("a", "b"), np.zeros(12)
    region = Region(y)
    for _ in range(3):
        take_a(x, region)
        assert (y == 1.0).all()
    x.dtype.names = ("b", "a")
    for _ in range(3):
        take_a(x, region)
        assert (y == 2.0).all()


def test_fields_of_inner_records_that_are_renamed_in_place():
    inner = np.dtype([("a", "f8"), ("b", "f8")])
    x, y = np.zeros(12, [("part", inner)]), np.zeros(12)
    x["part"]["a"], x["part"]["b"] = 1.0, 2.0
    region = Region(y)
    for _ in range(3):
        take_inner_a(x, region)
        assert (y == 1.0).all()
    x.dtype["part"].names = ("b", "a")
    for _ in range(3):
        take_inner_a(x, region)
        assert (y == 2.0).all()


def test_another_dtype_where_one_was():
    """An array that has gone and one that is made next may lie at one address, and so may their dtypes."""
    y = np.zeros(12)
    region = Region(y)
    for k in range(60):
        x = records(*("ab" if k % 3 else "ba"))
        for _ in range(2):
            y[:] = 0.0
            take_a(x, region)
            assert (y == 1.0).all(), k
        del x
