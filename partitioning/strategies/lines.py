"""Two axes, a linear launch: whole rows, whole columns, and the squares of one colour."""

from __future__ import annotations

from partitioning.checks import integer
from partitioning.strategy import PartitioningStrategy

Pair = tuple[int, int]


class Rows(PartitioningStrategy):
    """Thread t owns the whole rows t, t + T, t + 2T ... Disjoint by residue; any thread count covers."""

    ndim = 2

    def lines(self, t: int, T: int, n: int) -> int:
        return (n - 1 - t) // T + 1 if t < n else 0

    def count(self, t: int, T: int, shape: Pair) -> int:
        return self.lines(t, T, shape[0]) * shape[1]

    def index(self, t: int, k: int, T: int, shape: Pair) -> Pair:
        return (t + k // shape[1] * T, k % shape[1])

    def threads(self, shape: Pair) -> int:
        return min(1, shape[0])

    def preferred_threads(self, shape: Pair) -> int:
        return shape[0]

    def origin(self, t: int, T: int, shape: Pair) -> Pair:
        return (t, 0)

    def local_shape(self, t: int, T: int, shape: Pair) -> Pair:
        return (self.lines(t, T, shape[0]), shape[1])

    def step(self, t: int, T: int, shape: Pair) -> Pair:
        return (T, 1)


class Columns(PartitioningStrategy):
    """Thread t owns the whole columns t, t + T, t + 2T ... Disjoint by residue; any thread count covers."""

    ndim = 2

    def lines(self, t: int, T: int, n: int) -> int:
        return (n - 1 - t) // T + 1 if t < n else 0

    def count(self, t: int, T: int, shape: Pair) -> int:
        return shape[0] * self.lines(t, T, shape[1])

    def index(self, t: int, k: int, T: int, shape: Pair) -> Pair:
        columns = self.lines(t, T, shape[1])
        return (k // columns, t + k % columns * T)

    def threads(self, shape: Pair) -> int:
        return min(1, shape[1])

    def preferred_threads(self, shape: Pair) -> int:
        return shape[1]

    def origin(self, t: int, T: int, shape: Pair) -> Pair:
        return (0, t)

    def local_shape(self, t: int, T: int, shape: Pair) -> Pair:
        return (shape[0], self.lines(t, T, shape[1]))

    def step(self, t: int, T: int, shape: Pair) -> Pair:
        return (1, T)


class RedBlack(PartitioningStrategy):
    """Thread t owns the t-th, (t+T)-th, (t+2T)-th ... element of one colour: (r + c) % 2 == colour.

    Elements are counted in row-major order. Disjoint by parity and residue. colour is 0 or 1, or
    `Runtime(...)`; the other colour's elements have no owner.
    """

    ndim = 2
    covers = False

    def __init__(self, colour: int) -> None:
        self.colour = integer(colour, "RedBlack's colour")
        if self.colour not in (0, 1):
            raise ValueError(f"RedBlack's colour is {int(self.colour)}; it must be 0 or 1")

    def squares(self, shape: Pair) -> int:
        # Colour 0 has the corner, and so the odd one out of an odd number of squares.
        return (shape[0] * shape[1] + 1 - self.colour) // 2

    def count(self, t: int, T: int, shape: Pair) -> int:
        return (self.squares(shape) - 1 - t) // T + 1 if t < self.squares(shape) else 0

    def index(self, t: int, k: int, T: int, shape: Pair) -> Pair:
        first = 2 * (t + k * T)
        # With odd rows the colours alternate along the whole flattened array; with even rows each row has
        # half, and starts with the other colour than the row above.
        odd = shape[1] % 2 == 1
        flat = first + self.colour if odd else first
        row = flat // shape[1]
        return (row, flat % shape[1] if odd else flat % shape[1] + (row + self.colour) % 2)

    def readable(self, index: Pair, shape: Pair) -> bool:
        # The other colour's elements have no owner, so no thread writes them during the launch.
        return (index[0] + index[1]) % 2 != self.colour

    def threads(self, shape: Pair) -> int:
        return min(1, self.squares(shape))

    def preferred_threads(self, shape: Pair) -> int:
        return self.squares(shape)
