"""Functions that write an argument that is not obviously an output, and those that read what looks like a mere size."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from numba_offload import Region
from numba_offload.optimizer import closed_list as known

from .optimizer_helpers import add_one, assert_nothing_left, check_same, twelve


def functions(a, b):
    found = []
    for _ in range(2):
        add_one(Region(b))
        np.clip(a, 2, 3, b)
        add_one(Region(b))
        found.append(b.tolist())
        add_one(Region(b))
        np.cumsum(a, 0, None, b)
        add_one(Region(b))
        found.append(b.tolist())
        add_one(Region(b))
        np.round(a, 0, b)
        add_one(Region(b))
        found.append(b.tolist())
        add_one(Region(b))
        np.concatenate([a], 0, b)
        add_one(Region(b))
        found.append(b.tolist())
        add_one(Region(b))
        np.take(a, range(12), 0, b)
        add_one(Region(b))
        found.append(b.tolist())
        add_one(Region(b))
        np.dot(np.eye(12), a, b)
        add_one(Region(b))
        found.append(b.tolist())
        add_one(Region(b))
        np.outer([1.0], a, b.reshape(1, 12))
        add_one(Region(b))
        found.append(b.tolist())
        add_one(Region(b))
        np.sum(a.reshape(1, 12), 0, None, b)
        add_one(Region(b))
        found.append(b.tolist())
    return found


def methods(a, b, c):
    found = []
    for _ in range(2):
        add_one(Region(b))
        a.clip(2, 3, b)
        add_one(Region(b))
        found.append(b.tolist())
        add_one(Region(b))
        a.cumsum(0, None, b)
        add_one(Region(b))
        found.append(b.tolist())
        add_one(Region(b))
        a.round(0, b)
        add_one(Region(b))
        found.append(b.tolist())
        add_one(Region(b))
        a.take(range(12), 0, b)
        add_one(Region(b))
        found.append(b.tolist())
        add_one(Region(b))
        np.eye(12).dot(a, b)
        add_one(Region(b))
        found.append(b.tolist())
        add_one(Region(b))
        a.reshape(1, 12).mean(0, None, b)
        add_one(Region(b))
        found.append(b.tolist())
        add_one(Region(c))
        a.astype(complex).conj(c)
        add_one(Region(c))
        found.append(c.tolist())
        add_one(Region(b))
        np.random.default_rng(1).random(None, float, b)
        add_one(Region(b))
        found.append(b.tolist())
        add_one(Region(b))
        np.random.default_rng(1).standard_normal(None, float, b)
        add_one(Region(b))
        found.append(b.tolist())
    return found


def overwriting(a, b):
    b[0] = np.nan
    for _ in range(2):
        add_one(Region(b))
        np.nan_to_num(b, copy=False)
        add_one(Region(a))
        a[:] = a[::-1].copy()
        add_one(Region(a))
        np.median(a, None, None, True)
        add_one(Region(a))
        a[:] = a[::-1].copy()
        add_one(Region(a))
        np.percentile(a, 50, overwrite_input=True)
        add_one(Region(a))


@pytest.mark.parametrize("program", [functions, methods, overwriting])
def test_what_is_written_goes_over_again(program):
    makers = [twelve, lambda: twelve() * 10, lambda: twelve() * 1j]
    check_same(program, *makers[: len(inspect.signature(program).parameters)])


def test_where_methods_have_out():
    for name, place in known.METHODS_OUT.items():
        owner = np.random.default_rng(1) if name in ("random", "standard_normal") else twelve()
        signature = getattr(owner, name).__doc__.split("\n\n")[0].replace("\n", " ")
        if "out" in signature:
            names = [part.split("=")[0].strip(" ()") for part in signature[signature.index("(") + 1 :].split(",")]
            names = [name for name in names if name not in "/*"]
            assert names.index("out") == place, name
    assert known.place_of_out(np.clip) == 3
    assert known.place_of_out(np.sum) == 3
    assert known.place_of_out(np.zeros) is None


def sizes(n, shape, a):
    found = []
    for _ in range(2):
        add_one(Region(shape))
        found.append(np.empty(shape).shape)
        add_one(Region(shape))
        found.append(np.zeros(shape).shape)
        add_one(Region(shape))
        found.append(np.ones(shape).shape)
        add_one(Region(shape))
        found.append(np.empty_like(a, shape=shape).shape)
        add_one(Region(a))
        found.append(np.full(12, a).tolist())
        add_one(Region(a))
        found.append(np.full((1, 12), [a]).tolist())
        add_one(Region(n))
        found.append(list(range(n[0:1].reshape(()))))
        add_one(Region(n))
        found.append(hex(n[0:1].reshape(())))
        add_one(Region(n))
        found.append(np.arange(n[0:1].reshape(())).tolist())
    return found


def axes(order, a):
    found = []
    for _ in range(2):
        add_one(Region(order))
        found.append(np.transpose(a.reshape(3, 4), order).shape)
        order -= 1
    return found


def test_sizes_are_read():
    check_same(sizes, lambda: np.array([2]), lambda: np.array([2, 3]), twelve)
    check_same(axes, lambda: np.array([0, -1]), twelve)
    assert_nothing_left()


def wrong_counts(a, what):
    add_one(Region(a))
    if what == 0:
        isinstance()
    elif what == 1:
        [].extend()
    else:
        [].extend(1, 2)


@pytest.mark.parametrize("what", range(3))
def test_wrong_counts_are_told_as_ever(what):
    check_same(wrong_counts, twelve, lambda: what)
