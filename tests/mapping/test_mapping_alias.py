"""Aliasing: decided on elements, exactly."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

from numba_offload.errors import AliasError
from numba_offload.mapping import DeviceArray, check_aliases
from numba_offload.mapping.alias import overlaps_itself, shares_elements


def bytes_of(offset, shape, strides, itemsize):
    """Brute force: for each element the set of its bytes."""
    return [
        set(range(start, start + itemsize))
        for index in np.ndindex(*shape)
        for start in [offset + sum(i * s for i, s in zip(index, strides, strict=True))]
    ]


@st.composite
def placements(draw, writable=False):
    """(offset, shape, strides, itemsize) inside 400 bytes around the middle of a buffer."""
    itemsize = draw(st.sampled_from([1, 2, 4, 8, 12]))
    ndim = draw(st.integers(0, 3))
    shape = tuple(draw(st.integers(0, 4)) for _ in range(ndim))
    strides = tuple(draw(st.integers(-30, 30)) for _ in range(ndim))
    return draw(st.integers(400, 440)), shape, strides, itemsize


def view_at(base, placement):
    offset, shape, strides, itemsize = placement
    item = base[offset : offset + itemsize].view(f"V{itemsize}")
    return as_strided(item, shape, strides)


def device_at(placement):
    offset, shape, strides, itemsize = placement
    return DeviceArray(0x10000 + offset, shape, strides, np.dtype(f"V{itemsize}"), False, None)


@settings(max_examples=300, deadline=None)
@given(placements(), placements())
def test_sharing_agrees_with_brute_force_on_host_and_device(a, b):
    base = np.zeros(1000, dtype=np.uint8)
    expected = bool(set().union(*bytes_of(*a)) & set().union(*bytes_of(*b)))
    assert shares_elements(view_at(base, a), view_at(base, b)) is expected
    assert shares_elements(device_at(a), device_at(b)) is expected


@settings(max_examples=300, deadline=None)
@given(placements())
def test_overlapping_itself_agrees_with_brute_force(placement):
    elements = bytes_of(*placement)
    expected = len(set().union(*elements)) < sum(len(element) for element in elements)
    assert overlaps_itself(*placement[1:]) is expected


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(placements(), st.booleans()), min_size=1, max_size=4))
def test_the_verdict_agrees_with_brute_force(arguments):
    base = np.zeros(1000, dtype=np.uint8)
    sets = [(bytes_of(*placement), written) for placement, written in arguments]
    wholes = [set().union(*elements) for elements, _ in sets]
    expected = any(
        written
        and (
            len(wholes[i]) < sum(map(len, elements))
            or any(wholes[i] & wholes[j] for j in range(len(sets)) if j != i)
        )
        for i, (elements, written) in enumerate(sets)
    )
    uses = [(f"a{i}", view_at(base, placement), written) for i, (placement, written) in enumerate(arguments)]
    if expected:
        with pytest.raises(AliasError):
            check_aliases(uses)
    else:
        check_aliases(uses)


class TestCases:
    def test_the_same_array_twice(self):
        a = np.ones(10)
        check_aliases([("x", a, False), ("y", a, False)])
        with pytest.raises(AliasError, match=r"saxpy writes argument 'y' and reads argument 'x'.*copy"):
            check_aliases([("x", a, False), ("y", a, True)], "saxpy")
        with pytest.raises(AliasError, match="also writes"):
            check_aliases([("x", a, True), ("y", a, True)])

    def test_shifted_views_and_reinterpretations(self):
        a = np.ones(10)
        check_aliases([("x", a[1:], False), ("y", a[:-1], False)])
        with pytest.raises(AliasError):
            check_aliases([("x", a[1:], False), ("y", a[:-1], True)])
        with pytest.raises(AliasError):
            check_aliases([("x", a, False), ("y", a.view("u8"), True)])

    def test_interleaved_views_are_allowed(self):
        a = np.ones((10, 10))
        check_aliases([("x", a[::2], True), ("y", a[1::2], True)])
        check_aliases([("x", a[:, ::2], True), ("y", a[:, 1::2], False)])
        z = np.ones(5, dtype=complex)
        check_aliases([("x", z.real, True), ("y", z.imag, True)])
        r = np.zeros(5, dtype=[("a", "i4"), ("b", "i4")])
        check_aliases([("x", r["a"], True), ("y", r["b"], True)])
        with pytest.raises(AliasError):
            check_aliases([("x", r["a"], True), ("y", r, False)])

    def test_arrays_without_elements_never_alias(self):
        a = np.ones((4, 4))
        check_aliases([("x", a[:0], True), ("y", a, True), ("z", a[2:2, 1:], True)])

    def test_a_written_broadcast_array_is_refused(self):
        row = as_strided(np.arange(3.0), (4, 3), (0, 8))
        check_aliases([("x", row, False)])
        with pytest.raises(AliasError, match=r"'x'.*elements that share memory.*x\.copy"):
            check_aliases([("x", row, True)])
        with pytest.raises(AliasError):
            check_aliases([("x", as_strided(np.arange(9.0), (5, 3), (8, 8)), True)])

    def test_too_costly_is_refused(self):
        # A knapsack: many strides of similar size that no bound settles.
        rng = np.random.default_rng(1)
        strides = tuple(int(s) for s in rng.integers(10**6, 10**7, 16))
        big = DeviceArray(1 << 40, (3,) * 16, strides, np.dtype("i1"), False, None)
        near = tuple(s + 3 for s in strides)
        other = DeviceArray((1 << 40) + 5, (3,) * 16, near, np.dtype("i1"), False, None)
        assert shares_elements(big, other) is None
        with pytest.raises(AliasError, match="too costly"):
            check_aliases([("x", big, False), ("y", other, True)])

    def test_a_far_away_argument_hides_no_pair(self):
        a = np.ones(100)
        uses = [("whole", a, False), *((f"p{i}", a[i : i + 1], False) for i in range(50))]
        check_aliases(uses)
        with pytest.raises(AliasError, match=r"'last'.*'whole'"):
            check_aliases([*uses, ("last", a[99:], True)])
