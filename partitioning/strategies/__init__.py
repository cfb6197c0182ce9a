"""The strategies that come with the package, by the shape of what a thread owns."""

from partitioning.strategies.blocks import PerBlock1D
from partitioning.strategies.chunks import BlockStriped1D, Chunked1D, EvenSplit1D
from partitioning.strategies.grid import Linear2D, Linear3D, Tiles2D, Tiles3D
from partitioning.strategies.indexed import Permuted, Segments
from partitioning.strategies.linear import GridStride1D, Linear1D, Strided1D
from partitioning.strategies.lines import Columns, RedBlack, Rows

__all__ = [
    "BlockStriped1D",
    "Chunked1D",
    "Columns",
    "EvenSplit1D",
    "GridStride1D",
    "Linear1D",
    "Linear2D",
    "Linear3D",
    "PerBlock1D",
    "Permuted",
    "RedBlack",
    "Rows",
    "Segments",
    "Strided1D",
    "Tiles2D",
    "Tiles3D",
]
