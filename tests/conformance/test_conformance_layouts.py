"""However an array lies in memory, a kernel does to it what NumPy does; what is not part of the view stays."""

from __future__ import annotations

import kernels
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from layouts import LAYOUTS, WRITABLE
from samples import RECORD, name_of, same_bytes, sample, small

from numba_offload import Chunked1D, Columns, GridStride1D, Linear1D, Region, Rows, Tiles2D, Tiles3D

_OTHER = {1: Chunked1D(3), 2: Tiles2D(2, 3), 3: Tiles3D(2, 1, 3)}


@pytest.mark.parametrize("dtype", ["i1", "f8", "c16", RECORD], ids=name_of)
@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
def test_input_of_any_layout(target, layout, dtype):
    base = sample(dtype, layout.base)
    x = layout.of(base)
    before = base.copy()
    y = sample(dtype, x.shape, seed=9)
    kernels.copy(x, Region(y))
    assert same_bytes(y, x)
    assert same_bytes(base, before)


@pytest.mark.parametrize("dtype", ["i1", "f8", "c16", RECORD], ids=name_of)
@pytest.mark.parametrize("layout", WRITABLE, ids=lambda layout: layout.name)
def test_output_of_any_layout(target, layout, dtype):
    base = sample(dtype, layout.base)
    expected = base.copy()
    x = sample(dtype, layout.of(base).shape, seed=9)
    layout.of(expected)[...] = x
    kernels.copy(x, Region(layout.of(base)))
    assert same_bytes(base, expected)


@pytest.mark.parametrize("other", [False, True], ids=["default strategy", "blocks"])
@pytest.mark.parametrize("layout", WRITABLE, ids=lambda layout: layout.name)
def test_update_in_place_of_any_layout(target, layout, other):
    base = small("i4", layout.base)
    expected = base.copy()
    x = small("i4", layout.of(base).shape, seed=3)
    layout.of(expected)[...] += x
    region = Region(layout.of(base), _OTHER[x.ndim] if other else None)
    kernels.add_into(x, region)
    assert same_bytes(base, expected)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("strategy", [None, Rows(), Columns(), Tiles2D(2, 2)], ids=repr)
def test_fortran_and_c_order_mixed(target, strategy, order):
    x = np.asfortranarray(small("f8", (7, 9)))
    y = np.zeros((7, 9), order=order)
    kernels.copy(x, Region(y, strategy))
    assert np.array_equal(x, y)
    assert y.flags["C_CONTIGUOUS" if order == "C" else "F_CONTIGUOUS"]


def test_part_of_a_larger_array_is_all_that_changes(target):
    big = np.arange(400.0).reshape(20, 20)
    expected = big.copy()
    expected[3:12:2, -1:4:-3] += 1
    kernels.increment(Region(big[3:12:2, -1:4:-3]))
    assert np.array_equal(big, expected)


def test_interleaved_views_of_one_array(target):
    base = np.arange(20)
    kernels.copy(base[::2], Region(base[1::2]))
    assert np.array_equal(base, np.arange(20) // 2 * 2)


def test_two_disjoint_regions_of_one_array(target):
    base = np.zeros(30, "i8")
    x = np.arange(10)
    kernels.both(x, Region(base[:10]), Region(base[29:19:-1]))
    assert np.array_equal(base, [*x, *np.zeros(10), *x[::-1]])


def test_one_array_read_under_several_views(target):
    base = np.arange(11.0)
    y = np.zeros(10)
    kernels.add_pair((base[1:], base[:-1]), Region(y))
    assert np.array_equal(y, base[1:] + base[:-1])


@pytest.mark.parametrize("shape", [(0,), (0, 4), (4, 0), (2, 0, 3)])
def test_arrays_without_elements(target, shape):
    y = np.zeros(shape)
    kernels.copy(np.zeros(shape), Region(y))
    assert y.shape == shape


def test_an_input_of_no_axes(target):
    y = np.zeros(5)
    kernels.only_element(np.array(2.5), Region(y))
    assert np.array_equal(y, np.full(5, 2.5))


def test_an_array_in_a_field_of_records(target):
    base = np.full(12 * RECORD.itemsize, 0xAB, "u1").view(RECORD)
    expected = base.view("u1").copy().view(RECORD)
    expected["v"][::2] = np.arange(6)
    kernels.numbers(Region(base["v"][::2]))
    assert base.tobytes() == expected.tobytes()


def test_real_and_imaginary_parts_as_regions(target):
    z = small("c16", 9)
    real = small("f8", 9, seed=5)
    expected = real + 1j * (z.imag + 1)
    kernels.copy(real, Region(z.real))
    kernels.increment(Region(z.imag))
    assert same_bytes(z, expected)



@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_basic_index_of_numpy(target, data):
    ndim = data.draw(st.integers(1, 3))
    shape = data.draw(st.tuples(*[st.integers(1, 6)] * ndim))
    order = data.draw(st.permutations(range(ndim)))
    base = small("i4", shape, seed=1)
    expected = base.copy()
    index = data.draw(hnp.basic_indices(shape, min_dims=1, max_dims=3, allow_newaxis=True))
    mine, theirs = (a.transpose(order)[index] if a.transpose(order).shape == shape else a[index] for a in (base, expected))
    x = np.arange(mine.size, dtype="i4").reshape(mine.shape)
    theirs[...] += x
    kernels.add_into(x, Region(mine))
    assert np.array_equal(base, expected)


@pytest.mark.parametrize("strategy", [Linear1D(), GridStride1D()], ids=repr)
def test_a_region_over_a_reversed_view_counts_from_its_end(target, strategy):
    y = np.zeros(50, "i8")
    kernels.numbers(Region(y[::-1], strategy))
    assert np.array_equal(y, np.arange(50)[::-1])
