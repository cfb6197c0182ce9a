"""Composition: a strategy followed by an element map is a strategy, and stays disjoint.

An element map renumbers: it takes the element that the strategy names in a *source* array to an element of
the real one, never two to the same. `strategy.then(map)` is compiled like any other strategy, through its
attributes `inner` and `map`.
"""

from __future__ import annotations

from typing import Any

from partitioning.parametrised import Parametrised
from partitioning.strategy import PartitioningStrategy, has_lattice, is_dense


class ElementMap(Parametrised):
    """An injective map from the elements of a source array to those of an array of shape `shape`.

    One's own needs `ndim` and `apply`, under the same rules as a strategy's methods, and `source_shape` where
    the source array has another shape. That a map is injective is not taken on trust: the composed strategy
    is checked.

    A map that takes lattices to lattices may say so, so that composed kernels keep their nested loops and
    `view.local`: `map_origin(origin, local, step, shape)`, `map_shape(local)` and `map_step(step)` give the
    image's `origin`, `local_shape` and `step`. The image may be walked in another order than the source.
    """

    #: Axes of the array whose elements it returns.
    ndim: int
    #: Axes of the source array, where they differ.
    source_ndim: int | None = None
    #: Claims that it reaches every element of the array.
    covers: bool = True

    def _seal(self) -> None:
        super()._seal()
        ndim = getattr(self, "ndim", None)
        if not isinstance(ndim, int) or ndim < 1:
            name = type(self).__name__
            raise TypeError(
                f"{name}.ndim must say how many axes its arrays have, such as ndim = 1; it is {ndim!r}"
            )
        lattice = [hasattr(self, name) for name in ("map_origin", "map_shape", "map_step")]
        if any(lattice) and not all(lattice):
            raise TypeError(
                f"{type(self).__name__} must define map_origin, map_shape and map_step, or none of them"
            )

    # These two are the device's as well as the host's.

    def apply(self, index: Any, shape: Any) -> Any:
        """The element of the array for the source's element `index`: an int for one axis, else a tuple."""
        raise NotImplementedError(f"{type(self).__name__} must define apply(self, index, shape)")

    def source_shape(self, shape: Any) -> Any:
        """The shape of the array that the inner strategy partitions: a tuple."""
        return shape

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Raise LaunchRefused where an array of this shape cannot be renumbered this way. The host's only."""

    def bind(self, ndim: int) -> ElementMap:
        """This map for a strategy over `ndim` axes; ValueError where it is for another number."""
        wanted = self.source_ndim or self.ndim
        if wanted != ndim:
            raise ValueError(
                f"{self!r} is for arrays of {wanted} axes; it cannot follow a strategy over arrays of {ndim}"
            )
        return self


class MapFamily:
    """A map for any number of axes, such as `reverse()`: the strategy it follows decides. Not for kernels."""

    def bind(self, ndim: int) -> ElementMap:
        """The map for a strategy over `ndim` axes; ValueError where there is none."""
        raise NotImplementedError(f"{type(self).__name__} must define bind(self, ndim)")


class Composed(PartitioningStrategy):
    """Thread t owns `map` of what it owns under `inner`. Made by `inner.then(map)`."""

    def __init__(self, inner: PartitioningStrategy, map: ElementMap) -> None:
        self.inner = inner
        self.map = map

    @property
    def ndim(self) -> int:  # type: ignore[override]
        return self.map.ndim

    @property
    def coordinates(self) -> str:  # type: ignore[override]
        return self.inner.coordinates

    @property
    def covers(self) -> bool:  # type: ignore[override]
        return self.inner.covers and self.map.covers

    def count(self, t: Any, T: Any, shape: Any) -> int:
        return self.inner.count(t, T, self.map.source_shape(shape))

    def index(self, t: Any, k: Any, T: Any, shape: Any) -> Any:
        return self.map.apply(self.inner.index(t, k, T, self.map.source_shape(shape)), shape)

    def threads(self, shape: Any) -> Any:
        return self.inner.threads(self.map.source_shape(shape))

    def preferred_threads(self, shape: Any) -> Any:
        return self.inner.preferred_threads(self.map.source_shape(shape))

    def blocks(self, shape: Any) -> int:
        return self.inner.blocks(self.map.source_shape(shape))

    def covers_shape(self, shape: tuple[int, ...]) -> bool:
        return self.map.covers and self.inner.covers_shape(self.map.source_shape(shape))

    def check_shape(self, shape: tuple[int, ...]) -> None:
        self.map.check_shape(shape)
        self.inner.check_shape(self.map.source_shape(shape))

    def check_launch(self, grid: tuple[int, ...], block: tuple[int, ...], shape: tuple[int, ...]) -> None:
        self.inner.check_launch(grid, block, self.map.source_shape(shape))

    def __repr__(self) -> str:
        return f"{self.inner!r}.then({self.map!r})"


class _ComposedLattice(Composed):
    """A composition whose inner strategy has a lattice that the map keeps; `index` walks the image."""

    def inner_step(self, t: Any, T: Any, shape: Any) -> Any:
        raise NotImplementedError

    def origin(self, t: Any, T: Any, shape: Any) -> Any:
        source = self.map.source_shape(shape)
        local = self.inner.local_shape(t, T, source)  # type: ignore[attr-defined]
        origin = self.inner.origin(t, T, source)  # type: ignore[attr-defined]
        return self.map.map_origin(origin, local, self.inner_step(t, T, shape), shape)  # type: ignore

    def local_shape(self, t: Any, T: Any, shape: Any) -> Any:
        source = self.map.source_shape(shape)
        return self.map.map_shape(self.inner.local_shape(t, T, source))  # type: ignore[attr-defined]

    def image_step(self, t: Any, T: Any, shape: Any) -> Any:
        return self.map.map_step(self.inner_step(t, T, shape))  # type: ignore[attr-defined]


class ComposedBlock1D(_ComposedLattice):
    """A composition that keeps a dense block of one axis."""

    def inner_step(self, t: Any, T: Any, shape: Any) -> Any:
        return 1

    def index(self, t: Any, k: Any, T: Any, shape: Any) -> Any:
        return self.origin(t, T, shape) + k * self.image_step(t, T, shape)


class ComposedBlock2D(_ComposedLattice):
    """A composition that keeps a dense block of two axes."""

    def inner_step(self, t: Any, T: Any, shape: Any) -> Any:
        return (1, 1)

    def index(self, t: Any, k: Any, T: Any, shape: Any) -> Any:
        origin = self.origin(t, T, shape)
        local = self.local_shape(t, T, shape)
        step = self.image_step(t, T, shape)
        return (origin[0] + k // local[1] * step[0], origin[1] + k % local[1] * step[1])


class ComposedBlock3D(_ComposedLattice):
    """A composition that keeps a dense block of three axes."""

    def inner_step(self, t: Any, T: Any, shape: Any) -> Any:
        return (1, 1, 1)

    def index(self, t: Any, k: Any, T: Any, shape: Any) -> Any:
        origin = self.origin(t, T, shape)
        local = self.local_shape(t, T, shape)
        step = self.image_step(t, T, shape)
        line = k // local[2]
        return (
            origin[0] + line // local[1] * step[0],
            origin[1] + line % local[1] * step[1],
            origin[2] + k % local[2] * step[2],
        )


class _Stepped(_ComposedLattice):
    """The same for a lattice with gaps: the step comes from the inner strategy."""

    def inner_step(self, t: Any, T: Any, shape: Any) -> Any:
        return self.inner.step(t, T, self.map.source_shape(shape))  # type: ignore[attr-defined]

    def step(self, t: Any, T: Any, shape: Any) -> Any:
        return self.image_step(t, T, shape)


class ComposedLattice1D(_Stepped, ComposedBlock1D):
    """A composition that keeps a lattice of one axis."""


class ComposedLattice2D(_Stepped, ComposedBlock2D):
    """A composition that keeps a lattice of two axes."""


class ComposedLattice3D(_Stepped, ComposedBlock3D):
    """A composition that keeps a lattice of three axes."""


_DENSE: dict[int, type[Composed]] = {1: ComposedBlock1D, 2: ComposedBlock2D, 3: ComposedBlock3D}
_STEPPED: dict[int, type[Composed]] = {1: ComposedLattice1D, 2: ComposedLattice2D, 3: ComposedLattice3D}


def compose(strategy: PartitioningStrategy, element_map: ElementMap | MapFamily) -> Composed:
    """`strategy.then(element_map)`: TypeError for what is no map, ValueError for a map over other axes."""
    if not isinstance(element_map, ElementMap | MapFamily):
        raise TypeError(
            f"{strategy!r}.then(...) takes an element map, such as reverse(), not {element_map!r}"
            f" ({type(element_map).__name__})"
        )
    bound = element_map.bind(strategy.ndim)
    if strategy.coordinates == "grid" and bound.ndim != strategy.ndim:
        raise ValueError(
            f"{bound!r} leads from {strategy.ndim} axes to {bound.ndim}; {strategy!r} has a thread coordinate"
            f" per axis and can only be followed by a map that keeps their number"
        )
    if has_lattice(strategy) and hasattr(bound, "map_origin") and bound.ndim == strategy.ndim:
        kinds = _DENSE if is_dense(strategy) else _STEPPED
        return kinds.get(strategy.ndim, Composed)(strategy, bound)
    return Composed(strategy, bound)
