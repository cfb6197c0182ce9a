"""One axis, elements dealt out one at a time."""

from __future__ import annotations

from partitioning.checks import at_least
from partitioning.strategy import PartitioningStrategy


class Linear1D(PartitioningStrategy):
    """Thread t owns element t, if there is one. Disjoint because the map is the identity."""

    ndim = 1

    def count(self, t: int, T: int, shape: tuple[int, ...]) -> int:
        return 1 if t < shape[0] else 0

    def index(self, t: int, k: int, T: int, shape: tuple[int, ...]) -> int:
        return t + k

    def threads(self, shape: tuple[int, ...]) -> int:
        return shape[0]

    def origin(self, t: int, T: int, shape: tuple[int, ...]) -> int:
        return t

    def local_shape(self, t: int, T: int, shape: tuple[int, ...]) -> int:
        return 1 if t < shape[0] else 0


class GridStride1D(PartitioningStrategy):
    """Thread t owns elements t, t + T, t + 2T ... Disjoint by residue modulo T; any thread count covers."""

    ndim = 1

    def count(self, t: int, T: int, shape: tuple[int, ...]) -> int:
        return (shape[0] - 1 - t) // T + 1 if t < shape[0] else 0

    def index(self, t: int, k: int, T: int, shape: tuple[int, ...]) -> int:
        return t + k * T

    def threads(self, shape: tuple[int, ...]) -> int:
        return min(1, shape[0])

    def preferred_threads(self, shape: tuple[int, ...]) -> int:
        return shape[0]

    def origin(self, t: int, T: int, shape: tuple[int, ...]) -> int:
        return t

    def local_shape(self, t: int, T: int, shape: tuple[int, ...]) -> int:
        if t >= shape[0]:
            return 0
        # With a thread for every element, the usual launch, there is nothing to divide.
        return 1 if shape[0] <= T else (shape[0] - 1 - t) // T + 1

    def step(self, t: int, T: int, shape: tuple[int, ...]) -> int:
        return T


class Strided1D(PartitioningStrategy):
    """Thread t owns element offset + t * step, if there is one; the elements between have no owner.

    offset >= 0 and step >= 1 are integers, or `Runtime(...)` to pass them at launch.
    """

    ndim = 1
    covers = False

    def __init__(self, offset: int, step: int) -> None:
        self.offset = at_least(offset, 0, "Strided1D's offset")
        # Not `step`: that is the lattice method's name.
        self.stride = at_least(step, 1, "Strided1D's step")

    def __repr__(self) -> str:
        # As it is constructed.
        return super().__repr__().replace("stride=", "step=")

    def count(self, t: int, T: int, shape: tuple[int, ...]) -> int:
        # The product is avoided until the element is known to exist: offset + t * stride may exceed int64.
        return 1 if self.offset < shape[0] and t <= (shape[0] - 1 - self.offset) // self.stride else 0

    def index(self, t: int, k: int, T: int, shape: tuple[int, ...]) -> int:
        return self.offset + t * self.stride + k

    def threads(self, shape: tuple[int, ...]) -> int:
        return (shape[0] - 1 - self.offset) // self.stride + 1 if self.offset < shape[0] else 0

    def origin(self, t: int, T: int, shape: tuple[int, ...]) -> int:
        return self.offset + t * self.stride if self.count(t, T, shape) > 0 else shape[0]

    def local_shape(self, t: int, T: int, shape: tuple[int, ...]) -> int:
        return self.count(t, T, shape)
