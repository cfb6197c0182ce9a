"""Who owns what: injective maps from (thread, slot) to element. Needs neither Numba nor NumPy."""

from partitioning.checks import Runtime
from partitioning.enumeration import Report, enumerate_launch, find_counterexample, ownership
from partitioning.errors import LaunchRefused, PartitionRefused
from partitioning.findings import (
    Counterexample,
    Fault,
    Finding,
    LatticeMismatch,
    Missing,
    NegativeCount,
    OutOfRange,
)
from partitioning.strategies import (
    BlockStriped1D,
    Chunked1D,
    EvenSplit1D,
    GridStride1D,
    Linear1D,
    Linear2D,
    Linear3D,
    Strided1D,
    Tiles2D,
    Tiles3D,
)
from partitioning.strategy import PartitioningStrategy, has_lattice, is_dense

__all__ = [
    "BlockStriped1D",
    "Chunked1D",
    "Counterexample",
    "EvenSplit1D",
    "Fault",
    "Finding",
    "GridStride1D",
    "LatticeMismatch",
    "LaunchRefused",
    "Linear1D",
    "Linear2D",
    "Linear3D",
    "Missing",
    "NegativeCount",
    "OutOfRange",
    "PartitionRefused",
    "PartitioningStrategy",
    "Report",
    "Runtime",
    "Strided1D",
    "Tiles2D",
    "Tiles3D",
    "enumerate_launch",
    "find_counterexample",
    "has_lattice",
    "is_dense",
    "ownership",
]
