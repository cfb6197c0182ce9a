"""Numbers that stand in arrays, what describes an array, and who keeps its memory: what is easily taken for no use of it."""

from __future__ import annotations

import ctypes
import gc
import itertools

import numpy as np
import pytest

from numba_offload import Region, offload_kernel, pinned_zeros
from numba_offload.targets.registry import current_target

from .optimizer_helpers import (
    add_one,
    add_to,
    assert_nothing_left,
    check_same,
    fail_beyond,
    optimised,
    twelve,
)


@offload_kernel
def put_length(x, y):
    for i in y.indices():
        y[i] = x.shape[0] + 100.0 * x.ndim


def numbers():
    return np.arange(12)


def islice(a):
    out, n = [], a[2:3].reshape(())
    for _ in range(3):
        add_one(Region(a))
        out.append([*itertools.islice(range(50), n)])
        add_one(Region(a))
        out.append([*itertools.islice(range(50), n, None, n)])
    return out


def enumerates(a):
    out, n = [], a[2:3].reshape(())
    for _ in range(3):
        add_one(Region(a))
        for k, letter in enumerate("ab", n):
            out.append((k, letter))
    return out


def repeats(a):
    out, n = [], a[2:3].reshape(())
    for _ in range(3):
        add_one(Region(a))
        out.append([*itertools.repeat("x", n)])
        add_one(Region(a))
        out.append(len([*itertools.combinations(range(9), n)]))
        add_one(Region(a))
        out.append([k for k, _ in zip(itertools.count(n), range(2), strict=False)])
    return out


def extents(a):
    out, n = [], a[2:3].reshape(())
    for _ in range(3):
        add_one(Region(a))
        out.append(repr(add_one[n, 16]))
        add_one(Region(a))
        out.append(repr(add_one[1, (n, 4)]))
    return out


@pytest.mark.parametrize("program", [islice, enumerates, repeats, extents])
def test_a_number_in_an_array_is_read(program):
    check_same(program, numbers)


def test_what_is_made_an_array_is_read():
    def program(a):
        out = []
        for _ in range(2):
            add_one(Region(a))
            out.append(np.transpose([a, a]).tolist())
            add_one(Region(a))
            out.append(np.squeeze([a]).tolist())
            add_one(Region(a))
            out.append(np.moveaxis((a, a), 0, 1).tolist())
            add_one(Region(a))
            out.append(np.swapaxes([[a]], 0, 2).tolist())
        return out

    check_same(program, twelve)


def test_the_form_of_an_array_that_kernels_only_ask_for_its_shape():
    """Nothing of it is on the device, where its change would show."""

    def program(x, y):
        region, out = Region(y), []
        for _ in range(3):
            put_length(x, region)
        out.append(y[0])
        put_length(x, region)
        x.shape = (3, 4)
        put_length(x, region)
        out.append(y[0])
        put_length(x, region)
        setattr(x, "shape", (2, 3, 2))  # noqa: B010 - another way to the same
        put_length(x, region)
        out.append(y[0])
        put_length(x, region)
        x.resize((5,), refcheck=False)
        put_length(x, region)
        return [*out, y[0]]

    check_same(program, twelve, twelve)


def test_an_array_that_changes_its_shape_while_a_loop_goes_through_it():
    def program(a):
        m, out = a.reshape(3, 4), []
        for row in m:
            add_one(Region(a))
            out.append(row.tolist())
            if len(out) == 1:
                m.shape = (4, 3)
            elif len(out) == 3:
                m.shape = (12,)
            elif len(out) == 4:
                m.shape = ()
        return out

    check_same(program, twelve)


def resize_elsewhere(a, size, check):
    a.resize(size, refcheck=check)


@pytest.mark.parametrize("check", [True, False])
def test_an_array_can_be_resized_when_it_has_been_on_the_device(check):
    """NumPy refuses where anything refers to the array, be it weakly."""

    def here():
        y, c = np.zeros(12), np.ones(12)
        for _ in range(3):
            add_one(Region(y))
            fail_beyond(c, Region(y), 9.0)
        y.resize(24, refcheck=check)
        add_one(Region(y))
        c.resize(24, refcheck=check)
        for _ in range(3):
            add_to(c, Region(y))
        y.resize(15, refcheck=check)
        return c.tolist(), y.tolist()

    def elsewhere():
        y, c = np.zeros(12), np.ones(12)
        for _ in range(3):
            fail_beyond(c, Region(y), 9.0)
        resize_elsewhere(y, 24, False)
        resize_elsewhere(c, 24, False)
        for _ in range(3):
            add_to(c, Region(y))
        resize_elsewhere(c, 2, False)
        return c.tolist(), y.tolist()

    check_same(here)
    check_same(elsewhere)


class Lent:
    """An object that shows the memory of an array as its own, as those of other libraries do."""

    def __init__(self, array):
        self.array = array
        self.__array_interface__ = array.__array_interface__


VIEWS = {
    "as_strided": lambda a: np.lib.stride_tricks.as_strided(a, (6,), (16,)),
    "sliding windows": lambda a: np.lib.stride_tricks.sliding_window_view(a, 1, writeable=True)[:, 0],
    "memoryview": lambda a: np.asarray(memoryview(a)[2:]),
    "data": lambda a: np.frombuffer(a.data, a.dtype),
    "ctypes": lambda a: np.ctypeslib.as_array((ctypes.c_double * a.size).from_buffer(a)),
    "array interface": lambda a: np.asarray(Lent(a)),
    "DLPack": lambda a: np.from_dlpack(a),
    "a view of such a view": lambda a: np.asarray(memoryview(np.asarray(memoryview(a))))[3:],
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_what_was_written_through_a_view_that_has_gone_is_not_lost(view):
    def program(a):
        out = []
        for _ in range(3):
            v = view(a)
            add_one(y=Region(v))
            v = None
            out.append(a.tolist())
        v = view(a)
        add_one(y=Region(v))
        add_one(y=Region(a))
        v = None
        return out

    check_same(program, twelve)


def test_page_locked_memory_goes_with_its_arrays():
    @optimised
    def program():
        for _ in range(40):
            a = pinned_zeros(12)
            add_one(Region(a))
        return len(current_target().device.present.residents)

    assert program() <= 6
    gc.collect()
    assert_nothing_left()
