"""The suite's data: initialisation functions with their call counter, and the mesh with ghost layers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

SEED = 4793
RAND_MAX = 2**31 - 1
_DEGREE, _SEPARATION = 31, 3
"""glibc's TYPE_3 generator: each word is the sum of those 31 and 3 places earlier."""
_DISCARDED = 10 * _DEGREE


def glibc_rand(count: int, seed: int = SEED) -> list[int]:
    """The first ``count`` results of C's ``rand()`` after ``srand(seed)``, as glibc computes them."""
    word = seed or 1
    words = [word]
    for _ in range(_DEGREE - 1):
        # glibc computes this on signed 32-bit integers; for a seed below 2**31 the remainder is the same.
        word = 16807 * word % RAND_MAX
        words.append(word)
    # The state array is circular: the first three sums find seed words where later ones find sums.
    words.extend(words[:_SEPARATION])
    for i in range(len(words), len(words) + _DISCARDED + count):
        words.append((words[i - _DEGREE] + words[i - _SEPARATION]) & 0xFFFFFFFF)
    return [word >> 1 for word in words[len(words) - count :]]


@lru_cache(maxsize=2)
def _random_values(count: int) -> np.ndarray:
    values = np.array(glibc_rand(count), dtype=np.float64) / RAND_MAX
    values.flags.writeable = False
    return values


class Initialiser:
    """One benchmark's set-up. Every call advances a counter, which selects the factor."""

    def __init__(self) -> None:
        self.calls = 0

    def _next_factor(self) -> float:
        factor = 0.1 if self.calls % 2 else 0.2
        self.calls += 1
        return factor

    def ramp(self, *shape: int) -> np.ndarray:
        """An array that varies slowly around the factor of this call."""
        factor = self._next_factor()
        i = np.arange(math.prod(shape), dtype=np.float64).reshape(shape)
        return factor * (i + 1.1) / (i + 1.12345)

    def scalar(self) -> float:
        """The first element of a ramp."""
        return self._next_factor() * 1.1 / 1.12345

    def constant(self, value: float, *shape: int) -> np.ndarray:
        """A float64 array of one value."""
        self._next_factor()
        return np.full(shape, value, dtype=np.float64)

    def random(self, count: int) -> np.ndarray:
        """Uniform numbers in [0, 1] from the C library's generator."""
        self._next_factor()
        return _random_values(count).copy()

    def overwritten(self) -> None:
        """An array that the suite fills with a constant and then with mesh data: only its call counts."""
        self._next_factor()


@dataclass(frozen=True)
class Domain:
    """A structured mesh of ``nodes`` nodes per axis; two ghost node layers on the left and one on the right.

    Indices are flat: ``i + j * jp + k * kp``. In two dimensions ``kp`` is 0.
    """

    nodes: int
    dimensions: int

    @classmethod
    def of_size(cls, size: int, dimensions: int) -> Domain:
        """The mesh the suite chooses for about ``size`` zones."""
        root = 1.0 / dimensions
        return cls(int(size**root + dimensions**root), dimensions)

    @property
    def first(self) -> int:
        """The coordinate of the first real node on every axis."""
        return 2

    @property
    def last(self) -> int:
        """The coordinate of the last real node on every axis; zones end one before."""
        return self.first + self.nodes - 1

    @property
    def jp(self) -> int:
        return self.nodes + 3

    @property
    def kp(self) -> int:
        return self.jp**2 if self.dimensions == 3 else 0

    @property
    def all_nodes(self) -> int:
        return self.jp**self.dimensions

    @property
    def real_zones(self) -> int:
        return (self.nodes - 1) ** self.dimensions

    @property
    def first_zone(self) -> int:
        """The first zone with one ghost layer included (the suite's ``fpz``)."""
        return (self.first - 1) * (1 + self.jp + self.kp)

    @property
    def last_zone(self) -> int:
        """The last zone with one ghost layer included (the suite's ``lpz``)."""
        return self.last * (1 + self.jp + self.kp)

    def zone_list(self) -> np.ndarray:
        """The real zones, int64, the first axis fastest."""
        axis = np.arange(self.first, self.last, dtype=np.int64)
        zones = axis[:, None] * self.jp + axis
        if self.dimensions == 3:
            zones = axis[:, None, None] * self.kp + zones
        return zones.flatten()

    def positions(self, *spacing: float) -> tuple[np.ndarray, ...]:
        """One coordinate array per axis over all nodes; the ghost corner is at the origin."""
        axis = np.arange(self.jp, dtype=np.float64)
        grids = np.meshgrid(*[axis] * self.dimensions, indexing="ij")
        return tuple((grid * step).flatten() for grid, step in zip(reversed(grids), spacing, strict=True))
