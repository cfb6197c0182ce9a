"""Kernels and functions for kernels are pickled and copied as functions are: by name."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from numba_offload import Region, offload_function, offload_kernel, optimize_transfers


@offload_function
def halved(value):
    return value / 2


@offload_kernel
def halve(y):
    for i in y.indices():
        y[i] = halved(y[i])


@optimize_transfers
def halve_twice(y):
    halve(Region(y))
    halve(Region(y))


class Holder:
    @staticmethod
    @offload_kernel
    def halve(y):
        for i in y.indices():
            y[i] = y[i] / 2


@pytest.mark.parametrize("made", [halve, halved, halve_twice, Holder.halve], ids=str)
@pytest.mark.parametrize("protocol", range(4, pickle.HIGHEST_PROTOCOL + 1))
def test_what_comes_back_is_the_same(made, protocol):
    assert pickle.loads(pickle.dumps(made, protocol)) is made
    assert copy.copy(made) is made and copy.deepcopy([made])[0] is made


def test_with_arguments():
    kernel, y = pickle.loads(pickle.dumps((halve, np.ones(3))))
    kernel(Region(y))
    assert (y == 0.5).all()


def test_what_has_no_name_is_not_pickled():
    @offload_kernel
    def inner(y):
        pass

    with pytest.raises((pickle.PicklingError, AttributeError), match="inner"):
        pickle.dumps(inner)
