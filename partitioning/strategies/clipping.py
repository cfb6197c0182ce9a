"""Arithmetic shared by strategies that cut an axis into pieces of one size, the last of them clipped."""

from __future__ import annotations

from partitioning.strategy import PartitioningStrategy


class Clipped(PartitioningStrategy):
    """Pieces [i * extent, (i + 1) * extent) of [0, n), clipped to n. Methods, so that they compile too.

    The piece is compared with the number of pieces before it is multiplied: `i * extent` then stays below n,
    and cannot wrap around int64 into another thread's piece, however large extent and launch are.
    """

    def pieces(self, extent: int, n: int) -> int:
        # Floor division: no pieces for n = 0, and no n + extent that could overflow.
        return (n - 1) // extent + 1

    def piece_start(self, i: int, extent: int, n: int) -> int:
        return i * extent if i < (n - 1) // extent + 1 else n

    def piece_length(self, i: int, extent: int, n: int) -> int:
        return min(extent, n - self.piece_start(i, extent, n))
