"""One axis, several elements to a thread."""

from __future__ import annotations

from partitioning.checks import at_least
from partitioning.errors import LaunchRefused
from partitioning.strategies.clipping import Clipped
from partitioning.strategy import PartitioningStrategy

# t * (n % T) stays within int64 below this many threads: floor(sqrt(2**63)).
MOST_EVEN_SPLITS = 3_037_000_499


class Chunked1D(Clipped):
    """Thread t owns the k elements [t*k, t*k + k), clipped to the array. Disjoint: chunks are intervals.

    k >= 1 is an integer, or `Runtime(k)` to pass it at launch.
    """

    ndim = 1

    def __init__(self, k: int) -> None:
        self.k = at_least(k, 1, "Chunked1D's chunk size k")

    def count(self, t: int, T: int, shape: tuple[int, ...]) -> int:
        return self.piece_length(t, self.k, shape[0])

    def index(self, t: int, k: int, T: int, shape: tuple[int, ...]) -> int:
        return t * self.k + k

    def threads(self, shape: tuple[int, ...]) -> int:
        return self.pieces(self.k, shape[0])

    def origin(self, t: int, T: int, shape: tuple[int, ...]) -> int:
        return self.piece_start(t, self.k, shape[0])

    def local_shape(self, t: int, T: int, shape: tuple[int, ...]) -> int:
        return self.piece_length(t, self.k, shape[0])


class BlockStriped1D(PartitioningStrategy):
    """Block b of B threads owns B*k elements in a row, a lane every B-th: b*B*k + j*B + lane for j < k.

    Neighbouring lanes touch neighbouring elements at every step, so accesses coalesce. Disjoint by mixed
    radix: block, step and lane are the digits of the element's number. k >= 1, or `Runtime(k)`.
    """

    ndim = 1
    coordinates = "block"

    def __init__(self, k: int) -> None:
        self.k = at_least(k, 1, "BlockStriped1D's count k")

    def stripes(self, lane: int, size: int, n: int) -> int:
        # How many elements have this lane as their last digit.
        return (n - 1 - lane) // size + 1 if lane < n else 0

    def count(self, t: tuple[int, int], T: tuple[int, int], shape: tuple[int, ...]) -> int:
        stripes = self.stripes(t[1], T[1], shape[0])
        # As in Clipped: compare before multiplying.
        return min(self.k, stripes - t[0] * self.k) if t[0] < (stripes - 1) // self.k + 1 else 0

    def index(self, t: tuple[int, int], k: int, T: tuple[int, int], shape: tuple[int, ...]) -> int:
        return (t[0] * self.k + k) * T[1] + t[1]

    def threads(self, shape: tuple[int, ...]) -> int:
        return (shape[0] - 1) // self.k + 1

    def origin(self, t: tuple[int, int], T: tuple[int, int], shape: tuple[int, ...]) -> int:
        return t[0] * self.k * T[1] + t[1] if self.count(t, T, shape) > 0 else shape[0]

    def local_shape(self, t: tuple[int, int], T: tuple[int, int], shape: tuple[int, ...]) -> int:
        return self.count(t, T, shape)

    def step(self, t: tuple[int, int], T: tuple[int, int], shape: tuple[int, ...]) -> int:
        return T[1]


class EvenSplit1D(PartitioningStrategy):
    """Thread t owns [t*n // T, (t+1)*n // T): sizes differ by one at most. Disjoint: cuts are monotone."""

    ndim = 1

    def cut(self, t: int, T: int, n: int) -> int:
        # t*n // T with n = q*T + r. The product t*n itself overflows for large arrays; t*q is at most n.
        return t * (n // T) + t * (n % T) // T

    def count(self, t: int, T: int, shape: tuple[int, ...]) -> int:
        return self.cut(t + 1, T, shape[0]) - self.cut(t, T, shape[0])

    def index(self, t: int, k: int, T: int, shape: tuple[int, ...]) -> int:
        return self.cut(t, T, shape[0]) + k

    def threads(self, shape: tuple[int, ...]) -> int:
        return min(1, shape[0])

    def preferred_threads(self, shape: tuple[int, ...]) -> int:
        return min(shape[0], MOST_EVEN_SPLITS)

    def ordered_threads(self, shape: tuple[int, ...], cores: int) -> int:
        # Each cut costs divisions; a core is best given one long run.
        return min(shape[0], cores)

    def origin(self, t: int, T: int, shape: tuple[int, ...]) -> int:
        return self.cut(t, T, shape[0])

    def local_shape(self, t: int, T: int, shape: tuple[int, ...]) -> int:
        return self.count(t, T, shape)

    def check_launch(self, grid: tuple[int, ...], block: tuple[int, ...], shape: tuple[int, ...]) -> None:
        launched = 1
        for extent in (*grid, *block):
            launched *= extent
        if launched > MOST_EVEN_SPLITS:
            raise LaunchRefused(
                f"EvenSplit1D cannot split between {launched} threads: beyond {MOST_EVEN_SPLITS} its cuts"
                f" overflow 64 bits; launch fewer threads (each takes several elements)"
            )
