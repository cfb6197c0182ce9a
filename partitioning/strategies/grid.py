"""Two and three axes, one thread coordinate per axis: single elements and tiles."""

from __future__ import annotations

from partitioning.checks import at_least
from partitioning.strategies.clipping import Clipped
from partitioning.strategy import PartitioningStrategy

Pair = tuple[int, int]
Triple = tuple[int, int, int]


class Linear2D(PartitioningStrategy):
    """Thread (r, c) owns element (r, c). Disjoint because each coordinate is guarded on its own axis.

    (A guard on the flattened number alone would let a thread past the last column own an element of the next
    row.)
    """

    ndim = 2
    coordinates = "grid"

    def count(self, t: Pair, T: Pair, shape: Pair) -> int:
        return 1 if t[0] < shape[0] and t[1] < shape[1] else 0

    def index(self, t: Pair, k: int, T: Pair, shape: Pair) -> Pair:
        return (t[0], t[1])

    def threads(self, shape: Pair) -> Pair:
        return (shape[0], shape[1])

    def origin(self, t: Pair, T: Pair, shape: Pair) -> Pair:
        return (t[0], t[1])

    def local_shape(self, t: Pair, T: Pair, shape: Pair) -> Pair:
        return (1 if t[0] < shape[0] else 0, 1 if t[1] < shape[1] else 0)


class Linear3D(PartitioningStrategy):
    """Thread (p, r, c) owns element (p, r, c), guarded on every axis."""

    ndim = 3
    coordinates = "grid"

    def count(self, t: Triple, T: Triple, shape: Triple) -> int:
        return 1 if t[0] < shape[0] and t[1] < shape[1] and t[2] < shape[2] else 0

    def index(self, t: Triple, k: int, T: Triple, shape: Triple) -> Triple:
        return (t[0], t[1], t[2])

    def threads(self, shape: Triple) -> Triple:
        return (shape[0], shape[1], shape[2])

    def origin(self, t: Triple, T: Triple, shape: Triple) -> Triple:
        return (t[0], t[1], t[2])

    def local_shape(self, t: Triple, T: Triple, shape: Triple) -> Triple:
        return (1 if t[0] < shape[0] else 0, 1 if t[1] < shape[1] else 0, 1 if t[2] < shape[2] else 0)


class Tiles2D(Clipped):
    """Thread (r, c) owns the tile of h x w elements at (r*h, c*w), clipped at the edges of the array.

    Disjoint because origins lie exactly one tile apart. h, w >= 1, each an integer or `Runtime(...)`.
    """

    ndim = 2
    coordinates = "grid"

    def __init__(self, h: int, w: int) -> None:
        self.h = at_least(h, 1, "Tiles2D's height h")
        self.w = at_least(w, 1, "Tiles2D's width w")

    def count(self, t: Pair, T: Pair, shape: Pair) -> int:
        return self.piece_length(t[0], self.h, shape[0]) * self.piece_length(t[1], self.w, shape[1])

    def index(self, t: Pair, k: int, T: Pair, shape: Pair) -> Pair:
        width = self.piece_length(t[1], self.w, shape[1])
        return (t[0] * self.h + k // width, t[1] * self.w + k % width)

    def threads(self, shape: Pair) -> Pair:
        return (self.pieces(self.h, shape[0]), self.pieces(self.w, shape[1]))

    def origin(self, t: Pair, T: Pair, shape: Pair) -> Pair:
        return (self.piece_start(t[0], self.h, shape[0]), self.piece_start(t[1], self.w, shape[1]))

    def local_shape(self, t: Pair, T: Pair, shape: Pair) -> Pair:
        return (self.piece_length(t[0], self.h, shape[0]), self.piece_length(t[1], self.w, shape[1]))


class Tiles3D(Clipped):
    """Thread (p, r, c) owns the d x h x w tile at (p*d, r*h, c*w), clipped at the edges of the array."""

    ndim = 3
    coordinates = "grid"

    def __init__(self, d: int, h: int, w: int) -> None:
        self.d = at_least(d, 1, "Tiles3D's depth d")
        self.h = at_least(h, 1, "Tiles3D's height h")
        self.w = at_least(w, 1, "Tiles3D's width w")

    def count(self, t: Triple, T: Triple, shape: Triple) -> int:
        depth = self.piece_length(t[0], self.d, shape[0])
        return depth * self.piece_length(t[1], self.h, shape[1]) * self.piece_length(t[2], self.w, shape[2])

    def index(self, t: Triple, k: int, T: Triple, shape: Triple) -> Triple:
        height = self.piece_length(t[1], self.h, shape[1])
        width = self.piece_length(t[2], self.w, shape[2])
        line = k // width
        return (t[0] * self.d + line // height, t[1] * self.h + line % height, t[2] * self.w + k % width)

    def threads(self, shape: Triple) -> Triple:
        return (
            self.pieces(self.d, shape[0]),
            self.pieces(self.h, shape[1]),
            self.pieces(self.w, shape[2]),
        )

    def origin(self, t: Triple, T: Triple, shape: Triple) -> Triple:
        return (
            self.piece_start(t[0], self.d, shape[0]),
            self.piece_start(t[1], self.h, shape[1]),
            self.piece_start(t[2], self.w, shape[2]),
        )

    def local_shape(self, t: Triple, T: Triple, shape: Triple) -> Triple:
        return (
            self.piece_length(t[0], self.d, shape[0]),
            self.piece_length(t[1], self.h, shape[1]),
            self.piece_length(t[2], self.w, shape[2]),
        )
