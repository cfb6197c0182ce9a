"""Every strategy, on launches at random: nobody shares an element, and no claimed element is missed.

`enumerate_launch` does the looking; `test_partition_enumeration.py` shows that it sees what is there.
"""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from partition_launches import BY_NAME, NDIM, element_maps, enough, launches

import partitioning.strategies
from partitioning import enumerate_launch, ownership

NAMES = sorted(BY_NAME)


def test_every_strategy_is_tried() -> None:
    assert set(partitioning.strategies.__all__) == set(BY_NAME)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_no_launch_shares_or_leaves_the_array(name: str, data: st.DataObject) -> None:
    strategy, shape, T = data.draw(launches(name))
    report = enumerate_launch(strategy, shape, T)
    assert strategy.ndim == len(shape)
    assert report.covered == (report.slots == math.prod(shape))


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_the_smallest_launch_covers_where_claimed(name: str, data: st.DataObject) -> None:
    strategy, shape, _ = data.draw(launches(name))
    block_size = data.draw(st.integers(1, 5))
    report = enumerate_launch(strategy, shape, enough(strategy, shape, block_size))
    if strategy.covers or strategy.covers_shape(shape):
        assert report.covered
    preferred = strategy.preferred_threads(shape)
    if strategy.coordinates == "linear":
        assert preferred >= strategy.threads(shape)
        assert report.slots == enumerate_launch(strategy, shape, preferred).slots


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_compositions_stay_disjoint_and_keep_coverage(name: str, data: st.DataObject) -> None:
    strategy, shape, T = data.draw(launches(name, maps=3))
    try:
        enumerate_launch(strategy, shape, T)
    except partitioning.LaunchRefused:
        # An index array made for this shape, seen through a map: refused before anything runs.
        assert name in ("Segments", "Permuted")
        return
    if strategy.covers_shape(shape):
        assert enumerate_launch(strategy, shape, enough(strategy, shape)).covered


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_a_thread_owns_the_image_of_what_it_owned(name: str, data: st.DataObject) -> None:
    inner, shape, T = data.draw(launches(name))
    element_map = data.draw(element_maps(NDIM[name])).bind(NDIM[name])
    composed = inner.then(element_map)

    def owners(strategy: partitioning.PartitioningStrategy, shape: tuple[int, ...]) -> dict:
        return {element: owner for element, ((owner, _),) in ownership(strategy, shape, T).items()}

    source = owners(inner, element_map.source_shape(shape))
    image = {element_map.apply(element, shape): owner for element, owner in source.items()}
    assert image == owners(composed, shape)


def test_which_strategies_have_a_lattice() -> None:
    without = {name for name in BY_NAME if not hasattr(getattr(partitioning, name), "origin")}
    assert without == {"Permuted", "RedBlack"}
    stepped = {name for name in BY_NAME if hasattr(getattr(partitioning, name), "step")}
    assert stepped == {"BlockStriped1D", "Columns", "GridStride1D", "Rows"}
