"""One element to a block of threads."""

from __future__ import annotations

from partitioning.strategy import PartitioningStrategy


class PerBlock1D(PartitioningStrategy):
    """Thread 0 of block b owns element b, where the block writes what it has reduced. Disjoint by block."""

    ndim = 1
    coordinates = "block"

    def count(self, t: tuple[int, int], T: tuple[int, int], shape: tuple[int, ...]) -> int:
        return 1 if t[1] == 0 and t[0] < shape[0] else 0

    def index(self, t: tuple[int, int], k: int, T: tuple[int, int], shape: tuple[int, ...]) -> int:
        return t[0] + k

    def threads(self, shape: tuple[int, ...]) -> int:
        return shape[0]

    def blocks(self, shape: tuple[int, ...]) -> int:
        return shape[0]

    def origin(self, t: tuple[int, int], T: tuple[int, int], shape: tuple[int, ...]) -> int:
        return t[0]

    def local_shape(self, t: tuple[int, int], T: tuple[int, int], shape: tuple[int, ...]) -> int:
        return 1 if t[1] == 0 and t[0] < shape[0] else 0
