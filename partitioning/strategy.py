"""The protocol of a partition: an injective map from (thread, slot) to the element that the thread owns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from partitioning.parametrised import Parametrised

if TYPE_CHECKING:
    from partitioning.algebra import Composed, ElementMap

COORDINATES = ("linear", "grid", "block")


class PartitioningStrategy(Parametrised):
    """Who owns what, as plain integer arithmetic.

    A strategy of one's own needs `ndim`, `count`, `index` and `threads`::

        class EveryThird(PartitioningStrategy):
            ndim = 1

            def count(self, t, T, shape):
                return 1 if 3 * t < shape[0] else 0

            def index(self, t, k, T, shape):
                return 3 * t

            def threads(self, shape):
                return (shape[0] + 2) // 3

            covers = False

    The methods are written once and used three ways - compiled for devices, compiled to check one launch, run
    by CPython - so they keep to int64 arithmetic, comparisons, `min`,
    `max`, conditionals, tuples of ints, `shape[axis]`, attributes of `self`, and calls of methods of `self`
    or of a nested strategy or element map. `index` is only called with 0 <= k < count.

    `t` names a thread and `T` the launch, according to `coordinates`:

    * "linear": ints, the linear id over the whole launch (blocks of any rank are linearised) and the thread
      count;
    * "grid": tuples with one entry per axis of the array, in axis order (the last axis is CUDA's x);
    * "block": `t` = (block, lane) and `T` = (blocks, block size), linearised ints; blocks are launched whole.

    `shape` is the array's, always a tuple.

    When a thread's elements are `origin + k * step` on each axis with 0 <= k < local_shape, a strategy may
    define `origin(t, T, shape)`, `local_shape(t, T, shape)` and, unless it is 1 on every axis, `step(t, T,
    shape)`: ints for one axis, else tuples. Slots then run over `local_shape` in row-major order, `index`
    agrees with that, and `count` is the product of `local_shape`. A thread that owns nothing has some
    `local_shape` of 0 and any origin.

    A strategy that leaves elements without an owner may define `readable(index, shape)`: whether no thread
    writes that element, so that any thread may read it while others are written.
    """

    #: Axes of the arrays it partitions.
    ndim: int
    #: "linear", "grid" or "block": what `t` and `T` are.
    coordinates: str = "linear"
    #: Claims that in any launch with at least `threads(shape)` threads (and `blocks(shape)` blocks) every
    #: element of an array of any shape has exactly one owner. Where that depends on the shape, override
    #: `covers_shape`.
    covers: bool = True

    def _seal(self) -> None:
        super()._seal()
        name = type(self).__name__
        ndim = getattr(self, "ndim", None)
        if not isinstance(ndim, int) or isinstance(ndim, bool) or ndim < 1:
            raise TypeError(
                f"{name}.ndim must say how many axes its arrays have, such as ndim = 1; it is {ndim!r}"
            )
        if self.coordinates not in COORDINATES:
            raise TypeError(f"{name}.coordinates must be one of {COORDINATES}, not {self.coordinates!r}")
        if hasattr(self, "origin") != hasattr(self, "local_shape"):
            raise TypeError(f"{name} must define both origin and local_shape, or neither")
        if hasattr(self, "step") and not hasattr(self, "origin"):
            raise TypeError(f"{name} defines step without origin and local_shape")

    # The three below are the device's as well as the host's.

    def count(self, t: Any, T: Any, shape: Any) -> int:
        """How many slots thread `t` owns; never negative."""
        raise NotImplementedError(f"{type(self).__name__} must define count(self, t, T, shape)")

    def index(self, t: Any, k: Any, T: Any, shape: Any) -> Any:
        """The element in slot `k` of thread `t`: an int for one axis, else a tuple."""
        raise NotImplementedError(f"{type(self).__name__} must define index(self, t, k, T, shape)")

    def threads(self, shape: Any) -> Any:
        """Threads that a launch needs at least: an int, or for "grid" one extent per axis."""
        raise NotImplementedError(f"{type(self).__name__} must define threads(self, shape)")

    # From here on the host's only.

    def preferred_threads(self, shape: Any) -> Any:
        """Threads of a launch that is sized automatically, at least `threads(shape)` and of the same form."""
        return self.threads(shape)

    def ordered_threads(self, shape: Any, cores: int) -> Any:
        """`preferred_threads` where threads are loops that a few cores walk through one after the other."""
        return self.preferred_threads(shape)

    def blocks(self, shape: Any) -> int:
        """Blocks that a launch needs at least; 0 where the number of threads is all that counts."""
        return 0

    def covers_shape(self, shape: tuple[int, ...]) -> bool:
        """`covers`, for an array of this shape."""
        return self.covers

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Raise LaunchRefused where an array of this shape cannot be partitioned this way."""

    def check_launch(self, grid: tuple[int, ...], block: tuple[int, ...], shape: tuple[int, ...]) -> None:
        """Raise LaunchRefused where this launch would alias or miss elements."""

    def then(self, element_map: ElementMap | Any) -> Composed:
        """This partition, renumbered: a thread owns `element_map` of what it owned."""
        from partitioning.algebra import compose

        return compose(self, element_map)


def has_lattice(strategy: PartitioningStrategy) -> bool:
    """Whether a thread's elements form a lattice that `origin`, `local_shape` and perhaps `step` describe."""
    return hasattr(strategy, "origin") and hasattr(strategy, "local_shape")


def is_dense(strategy: PartitioningStrategy) -> bool:
    """Whether a thread's elements form a dense block, so that kernels may use `view.local`."""
    return has_lattice(strategy) and not hasattr(strategy, "step")
