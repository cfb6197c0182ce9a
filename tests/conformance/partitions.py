"""Every strategy with an array shape for it, and which elements its threads own, worked out apart from the package."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from numba_offload import (
    BlockStriped1D,
    Chunked1D,
    Columns,
    EvenSplit1D,
    GridStride1D,
    Linear1D,
    Linear2D,
    Linear3D,
    PartitioningStrategy,
    PerBlock1D,
    Permuted,
    RedBlack,
    Rows,
    Segments,
    Strided1D,
    Tiles2D,
    Tiles3D,
)
from partitioning import Runtime, reverse, roll, transpose

EVERYTHING = "everything"


@dataclass(frozen=True)
class Partition:
    """A strategy, the shape of an array it fits, and a mask of what has an owner."""

    name: str
    strategy: PartitioningStrategy
    shape: tuple[int, ...]
    owned: Any = EVERYTHING

    def mask(self) -> np.ndarray:
        """True where an element has an owner."""
        if isinstance(self.owned, str):
            return np.ones(self.shape, bool)
        return self.owned(np.indices(self.shape))


ALL = (
    Partition("Linear1D", Linear1D(), (37,)),
    Partition("GridStride1D", GridStride1D(), (37,)),
    Partition("Chunked1D", Chunked1D(5), (37,)),
    Partition("Chunked1D-runtime", Chunked1D(Runtime(6)), (37,)),
    Partition("BlockStriped1D", BlockStriped1D(3), (1000,)),
    Partition("EvenSplit1D", EvenSplit1D(), (37,)),
    Partition("Strided1D", Strided1D(2, 3), (37,), lambda at: (at[0] >= 2) & ((at[0] - 2) % 3 == 0)),
    Partition("Strided1D-runtime", Strided1D(Runtime(1), Runtime(4)), (37,), lambda at: (at[0] - 1) % 4 == 0),
    Partition("PerBlock1D", PerBlock1D(), (37,)),
    Partition("Segments", Segments([0, 4, 4, 20, 37]), (37,)),
    Partition("Segments-part", Segments([3, 10, 30]), (37,), lambda at: (at[0] >= 3) & (at[0] < 30)),
    Partition("Permuted", Permuted(np.random.default_rng(1).permutation(37)), (37,)),
    Partition("Permuted-part", Permuted([30, 2, 17]), (37,), lambda at: np.isin(at[0], [2, 17, 30])),
    Partition("Linear2D", Linear2D(), (7, 11)),
    Partition("Tiles2D", Tiles2D(2, 4), (7, 11)),
    Partition("Tiles2D-runtime", Tiles2D(Runtime(3), 4), (7, 11)),
    Partition("Rows", Rows(), (7, 11)),
    Partition("Columns", Columns(), (7, 11)),
    Partition("RedBlack-0", RedBlack(0), (7, 11), lambda at: (at[0] + at[1]) % 2 == 0),
    Partition("RedBlack-1", RedBlack(1), (7, 10), lambda at: (at[0] + at[1]) % 2 == 1),
    Partition("Linear3D", Linear3D(), (3, 5, 7)),
    Partition("Tiles3D", Tiles3D(2, 2, 3), (3, 5, 7)),
    Partition("Linear1D-reversed", Linear1D().then(reverse()), (37,)),
    Partition("GridStride1D-rolled", GridStride1D().then(roll(5)), (37,)),
    Partition("Linear2D-transposed", Linear2D().then(transpose()), (7, 11)),
    Partition("Rows-reversed", Rows().then(reverse(0)), (7, 11)),
)

#: The partitions whose strategy is each class once, without element maps or run-time parameters.
PLAIN = tuple(p for p in ALL if "-" not in p.name)
