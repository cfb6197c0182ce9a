"""Which arrays stay on the device: usual host programs, counted."""

from __future__ import annotations

import gc
from types import SimpleNamespace

import numpy as np
import pytest

from numba_offload import GridStride1D, Region, optimize_transfers, profile
from numba_offload.targets.registry import current_target

from .optimizer_helpers import add_one, add_to, assert_nothing_left, copy_to, fail_beyond, twelve


def copies(function, *args):
    """Copies over and back of a call."""
    with profile() as moved:
        function(*args)
    assert_nothing_left()
    return moved.h2d_count, moved.d2h_count


def swapped(a, b, n):
    for _ in range(n):
        add_to(a, Region(b))
        a, b = b, a


def partitioned_in_the_loop(a, n):
    for _ in range(n):
        add_one(Region(a, GridStride1D()))


def told_now_and_then(a, n):
    for step in range(n):
        add_one(Region(a))
        if step % 100 == 99:
            print(f"step {step}: {a[0]:.1f}")


def until_it_changes_no_more(a, b):
    for _ in range(10):
        copy_to(a, Region(b))
        if np.abs(b - a).max() < 1e-6:
            return


def held_by_an_object(a, n):
    model = SimpleNamespace(field=a, steps=0)
    for _ in range(n):
        add_one(Region(model.field))
        model.steps += 1


def held_by_a_dict(a, b, n):
    arrays = {"a": a, "b": b}
    for k in np.arange(n):
        add_to(arrays["a"], Region(arrays["b"]))
        arrays["last"] = k


def drawing_numbers(a, n):
    rng = np.random.default_rng(0)
    for _ in range(n):
        add_one(Region(a))
        rng.random()


def with_errors_ignored(a, n):
    for _ in range(n):
        with np.errstate(all="ignore"):
            add_one(Region(a))


@pytest.mark.parametrize(
    ("function", "arguments", "expected"),
    [
        (swapped, (twelve, twelve, 50), (2, 2)),
        (partitioned_in_the_loop, (twelve, 20), (1, 1)),
        (told_now_and_then, (twelve, 250), (1, 3)),
        (until_it_changes_no_more, (twelve, twelve), (1, 1)),
        (held_by_an_object, (twelve, 20), (1, 1)),
        (held_by_a_dict, (twelve, twelve, 20), (2, 1)),
        (drawing_numbers, (twelve, 20), (1, 1)),
        (with_errors_ignored, (twelve, 20), (1, 1)),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_usual_programs(function, arguments, expected, monkeypatch, tmp_path):
    with (tmp_path / "printed").open("w") as stream:
        monkeypatch.setattr("sys.stdout", stream)
        made = [argument() if callable(argument) else argument for argument in arguments]
        assert copies(optimize_transfers(function), *made) == expected


@optimize_transfers
def inner(a):
    add_one(Region(a))


@optimize_transfers
def outer(a, n):
    for _ in range(n):
        inner(a)
    return a[0]


def test_a_function_called_by_another_shares_what_stays():
    assert copies(outer, twelve(), 5) == (1, 1)
    told = outer.explain()
    assert "5 launches; 1 copy over, 96 bytes; 1 back, 96 bytes" in told
    assert "in inner(), line" in told
    assert "return a[0]" not in told and "a[0] brings a back, 96 bytes, once" in told


def test_what_nobody_can_reach_any_more_is_not_brought_back():
    @optimize_transfers
    def program(n):
        for _ in range(n):
            a = np.ones(12)
            add_one(Region(a))
        held = len(current_target().device.present.residents)
        return held

    with profile() as moved:
        held = program(40)
    gc.collect()
    assert held <= 6
    assert moved.d2h_count <= 6
    assert_nothing_left()


def test_no_launch_and_a_failing_first_launch_leave_outputs_as_they_were():
    @optimize_transfers
    def none(a, b):
        for _ in range(0):
            copy_to(a, Region(b))

    @optimize_transfers
    def first(a, b):
        fail_beyond(a, Region(b), 3.0)

    b = twelve()
    assert copies(none, twelve(), b) == (0, 0)
    with pytest.raises(ValueError, match="beyond"):
        first(twelve(), b)
    assert b.tolist() == twelve().tolist()
    assert_nothing_left()


def test_a_later_failure_leaves_what_earlier_launches_computed():
    @optimize_transfers
    def program(a, b, n):
        for _ in range(n):
            add_one(Region(b))
            fail_beyond(a, Region(b), 100.0)
        fail_beyond(a, Region(b), 3.0)

    for n in (1, 40, 200):
        b = np.zeros(12)
        with pytest.raises(ValueError, match="beyond"):
            program(twelve(), b, n)
        assert b.tolist() == [2.0 * n] * 12
    assert_nothing_left()


def test_a_limit_on_device_memory_makes_it_move_more_and_never_fail():
    arrays = [np.full(1000, k, "f8") for k in range(6)]

    @optimize_transfers(device_memory=3 * 8000)
    def program(arrays, n):
        for _ in range(n):
            for array in arrays:
                add_one(Region(array))

    assert copies(program, arrays, 3) == (18, 18)
    assert all(np.all(array == k + 3) for k, array in enumerate(arrays))


class Stream:
    """As a stream of another library may be: it cannot be hashed."""

    handle = 0
    __hash__ = None


def test_a_stream_of_the_callers_may_be_any_object():
    @optimize_transfers
    def program(a):
        for _ in range(3):
            add_one[1, 32, Stream()](Region(a))

    a = twelve()
    program(a)
    assert a.tolist() == (twelve() + 3).tolist()


def test_harmless_functions_leave_arrays_where_they_are():
    @optimize_transfers
    def program(a, n):
        seen = []
        for k in range(n):
            add_one(Region(a))
            seen.append(np.float32(k).item() + sorted([k, 1])[0] + k.bit_length())
        return seen

    a = twelve()
    assert copies(program, a, 10) == (1, 1)
    assert a[0] == 10
