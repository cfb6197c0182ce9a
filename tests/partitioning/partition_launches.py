"""Hypothesis strategies for partitions: every strategy, element maps, and launches that fit them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

import partitioning as p
from partitioning import PartitioningStrategy, Runtime

small = st.integers(1, 6)
# Far beyond any array: a product with a thread number leaves int64.
size = st.one_of(small, st.sampled_from([2**31, 2**62, 2**63 - 1]))
parameter = st.one_of(size, size.map(Runtime))
shift = st.one_of(st.integers(-9, 9), st.sampled_from([-(2**63), 2**63 - 1]))


def segments(limit: int) -> st.SearchStrategy[PartitioningStrategy]:
    return st.lists(st.integers(0, limit), min_size=1, max_size=6).map(lambda cuts: p.Segments(sorted(cuts)))


def permuted(limit: int) -> st.SearchStrategy[PartitioningStrategy]:
    return st.permutations(range(limit)).flatmap(
        lambda order: st.integers(0, len(order)).map(lambda n: p.Permuted(order[:n]))
    )


#: By name, for arrays of no fewer than `limit` elements on each axis.
BY_NAME = {
    "Linear1D": lambda limit: st.just(p.Linear1D()),
    "GridStride1D": lambda limit: st.just(p.GridStride1D()),
    "Chunked1D": lambda limit: st.builds(p.Chunked1D, parameter),
    "BlockStriped1D": lambda limit: st.builds(p.BlockStriped1D, parameter),
    "EvenSplit1D": lambda limit: st.just(p.EvenSplit1D()),
    "Strided1D": lambda limit: st.builds(p.Strided1D, st.one_of(st.integers(0, 9), size), parameter),
    "Linear2D": lambda limit: st.just(p.Linear2D()),
    "Linear3D": lambda limit: st.just(p.Linear3D()),
    "Tiles2D": lambda limit: st.builds(p.Tiles2D, parameter, parameter),
    "Tiles3D": lambda limit: st.builds(p.Tiles3D, parameter, parameter, parameter),
    "Rows": lambda limit: st.just(p.Rows()),
    "Columns": lambda limit: st.just(p.Columns()),
    "Segments": segments,
    "Permuted": permuted,
    "RedBlack": lambda limit: st.builds(p.RedBlack, st.sampled_from([0, 1, Runtime(0), Runtime(1)])),
    "PerBlock1D": lambda limit: st.just(p.PerBlock1D()),
}

#: Of each strategy's arrays.
NDIM = {name: int(name[-2]) if name[-1] == "D" else 2 for name in BY_NAME} | {"Segments": 1, "Permuted": 1}


def element_maps(ndim: int) -> st.SearchStrategy[Any]:
    axis = st.integers(-ndim, ndim - 1)
    reverse = st.builds(p.reverse, st.one_of(st.none(), axis))
    roll = st.builds(p.roll, st.one_of(shift, shift.map(Runtime)), axis)
    if ndim == 1:
        return st.one_of(reverse, roll, st.builds(p.group, parameter))
    transpose = st.permutations(range(ndim)).map(lambda axes: p.transpose(*axes))
    if ndim == 3:
        return st.one_of(reverse, roll, transpose, st.just(p.transpose()))
    return st.one_of(reverse, roll, transpose, st.builds(p.swizzle, st.one_of(st.just(0), parameter)))


@st.composite
def launches(draw: st.DrawFn, name: str, maps: int = 0) -> tuple[PartitioningStrategy, tuple[int, ...], Any]:
    """A strategy of this name followed by up to `maps` element maps, a shape, and a launch of any size."""
    ndim = NDIM[name]
    limit = {1: 24, 2: 7, 3: 4}[ndim]
    shape = tuple(draw(st.lists(st.integers(0, limit), min_size=ndim, max_size=ndim)))
    strategy = draw(BY_NAME[name](shape[0]))
    for _ in range(draw(st.integers(min(1, maps), maps))):
        strategy = strategy.then(draw(element_maps(ndim)))
    if strategy.coordinates == "grid":
        T: Any = tuple(draw(st.integers(0, limit + 1)) for _ in range(ndim))
    elif strategy.coordinates == "block":
        T = (draw(st.integers(0, limit + 2)), draw(st.integers(1, 5)))
    else:
        T = draw(st.integers(0, 30))
    return strategy, shape, T


def enough(strategy: PartitioningStrategy, shape: tuple[int, ...], block_size: int = 3) -> Any:
    """The smallest launch that the strategy asks for."""
    needed = strategy.threads(shape)
    if strategy.coordinates == "block":
        return max(-(-needed // block_size), strategy.blocks(shape)), block_size
    return needed
