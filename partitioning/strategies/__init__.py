"""The strategies that come with the package, by the shape of what a thread owns."""

from partitioning.strategies.chunks import BlockStriped1D, Chunked1D, EvenSplit1D
from partitioning.strategies.grid import Linear2D, Linear3D, Tiles2D, Tiles3D
from partitioning.strategies.linear import GridStride1D, Linear1D, Strided1D

__all__ = [
    "BlockStriped1D",
    "Chunked1D",
    "EvenSplit1D",
    "GridStride1D",
    "Linear1D",
    "Linear2D",
    "Linear3D",
    "Strided1D",
    "Tiles2D",
    "Tiles3D",
]
