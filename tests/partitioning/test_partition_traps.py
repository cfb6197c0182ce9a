"""The known way to get each strategy wrong, as a test that ours is right and that the check would see it."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from partitioning import (
    BlockStriped1D,
    Chunked1D,
    Columns,
    EvenSplit1D,
    GridStride1D,
    LaunchRefused,
    Linear1D,
    Linear2D,
    Linear3D,
    PartitioningStrategy,
    PartitionRefused,
    PerBlock1D,
    Permuted,
    RedBlack,
    Rows,
    Runtime,
    Segments,
    Strided1D,
    Tiles2D,
    Tiles3D,
    enumerate_launch,
    find_counterexample,
    ownership,
)

HUGE = 2**62


def owned(strategy: PartitioningStrategy, t: Any, T: Any, shape: tuple[int, ...]) -> list[Any]:
    return [strategy.index(t, k, T, shape) for k in range(strategy.count(t, T, shape))]


def test_linear_1d_takes_linearised_threads_so_a_2d_block_cannot_alias() -> None:
    assert Linear1D.coordinates == "linear"
    # An 8 x 4 block linearised: 32 threads, the surplus owns nothing.
    assert enumerate_launch(Linear1D(), 10, 32).covered


def test_grid_stride_takes_its_stride_from_the_launch_in_64_bits() -> None:
    assert owned(GridStride1D(), 1, 4, (11,)) == [1, 5, 9]
    assert owned(GridStride1D(), 7, 3 * 2**31, (2**33 + 8,)) == [7, 7 + 3 * 2**31]


def test_chunked_has_a_ragged_tail() -> None:
    assert owned(Chunked1D(4), 2, 3, (10,)) == [8, 9]
    assert owned(Chunked1D(4), 3, 4, (10,)) == []
    assert Chunked1D(4).threads((10,)) == 3


def test_chunk_starts_do_not_wrap_around_into_another_chunk() -> None:
    # 4 * 2**62 is 0 modulo 2**64: thread 4 would own element 0 too.
    assert enumerate_launch(Chunked1D(HUGE), 10, 9).covered


def test_block_striped_is_coalesced_with_a_ragged_tail() -> None:
    strategy = BlockStriped1D(2)
    assert owned(strategy, (1, 2), (2, 4), (15,)) == [10, 14]
    assert owned(strategy, (1, 3), (2, 4), (15,)) == [11]
    assert enumerate_launch(BlockStriped1D(HUGE), 10, (9, 4)).covered


@pytest.mark.parametrize("n, T", [(10, 4), (3, 7), (0, 3), (12, 1), (5_000_000_000, 7)])
def test_even_split_cuts_where_t_n_over_T_does(n: int, T: int) -> None:
    for t in range(T):
        start = EvenSplit1D().origin(t, T, (n,))
        assert start == t * n // T
        assert start + EvenSplit1D().count(t, T, (n,)) == (t + 1) * n // T


def test_even_split_does_not_multiply_t_by_n() -> None:
    n = 2**62
    # t * n leaves int64 from t = 2 on; the report would say so.
    strategy = EvenSplit1D()
    assert find_counterexample(EvenSplitNaive(), n, 3) is not None
    cuts = [strategy.origin(t, 3, (n,)) for t in range(4)]
    assert cuts == [t * n // 3 for t in range(4)]


class EvenSplitNaive(PartitioningStrategy):
    ndim = 1

    def count(self, t: int, T: int, shape: tuple[int, ...]) -> int:
        return min(2, (t + 1) * shape[0] // T - t * shape[0] // T)

    def index(self, t: int, k: int, T: int, shape: tuple[int, ...]) -> int:
        return t * shape[0] // T + k

    def threads(self, shape: tuple[int, ...]) -> int:
        return shape[0]


def test_even_split_refuses_launches_whose_cuts_overflow() -> None:
    EvenSplit1D().check_launch((2**20, 1, 1), (1024, 1, 1), (10,))
    with pytest.raises(LaunchRefused, match="4294967296 threads"):
        EvenSplit1D().check_launch((2**22, 1, 1), (1024, 1, 1), (10,))


def test_strided_owns_offset_plus_multiples() -> None:
    assert sorted(ownership(Strided1D(2, 3), 12, 9)) == [2, 5, 8, 11]
    assert Strided1D(2, 3).threads((12,)) == 4
    assert Strided1D(12, 3).threads((12,)) == 0
    assert enumerate_launch(Strided1D(1, HUGE), 10, 9).slots == 1


def test_strided1d_is_shown_as_it_is_constructed() -> None:
    assert repr(Strided1D(1, step=3)) == "Strided1D(offset=1, step=3)"
    shown = repr(Strided1D(Runtime(1), Runtime(3)))
    assert shown == "Strided1D(offset=Runtime(1), step=Runtime(3))"
    assert eval(shown) == Strided1D(Runtime(1), Runtime(3))


@pytest.mark.parametrize("offset, step", [(0, 0), (0, -1), (-1, 1)])
def test_strided_refuses_step_0_and_negative_numbers(offset: int, step: int) -> None:
    with pytest.raises(ValueError, match=r"Strided1D's (step|offset) is (0|-1)"):
        Strided1D(offset, step)


class FlatGuard(PartitioningStrategy):
    """Linear2D as it is usually got wrong: the guard is on the flattened number, not on each axis."""

    ndim = 2
    coordinates = "grid"

    def count(self, t: Any, T: Any, shape: Any) -> int:
        return 1 if t[0] * shape[1] + t[1] < shape[0] * shape[1] else 0

    def index(self, t: Any, k: int, T: Any, shape: Any) -> Any:
        flat = t[0] * shape[1] + t[1]
        return (flat // shape[1], flat % shape[1])

    def threads(self, shape: Any) -> Any:
        return shape


def test_without_a_column_guard_8_by_4_threads_on_4_by_4_alias_12_elements() -> None:
    aliased = [e for e, owners in ownership(FlatGuard(), (4, 4), (4, 8)).items() if len(owners) > 1]
    assert len(aliased) == 12
    with pytest.raises(PartitionRefused, match=r"threads \(0, 4\) and \(1, 0\) both own element \(1, 0\)"):
        enumerate_launch(FlatGuard(), (4, 4), (4, 8))


def test_linear_2d_and_3d_guard_every_axis() -> None:
    assert enumerate_launch(Linear2D(), (4, 4), (4, 8)).covered
    assert enumerate_launch(Linear2D(), (4, 4), (8, 4)).covered
    for T in [(3, 2, 2), (2, 3, 2), (2, 2, 3)]:
        assert enumerate_launch(Linear3D(), (2, 2, 2), T).covered


class OverlappingTiles(Tiles2D):
    """Tiles of h x w whose origins lie one element too close."""

    def origin(self, t: Any, T: Any, shape: Any) -> Any:
        return (t[0] * self.h, t[1] * (self.w - 1))

    def index(self, t: Any, k: int, T: Any, shape: Any) -> Any:
        width = self.piece_length(t[1], self.w, shape[1])
        return (t[0] * self.h + k // width, t[1] * (self.w - 1) + k % width)


def test_a_tile_stride_below_the_tile_extent_aliases() -> None:
    with pytest.raises(PartitionRefused, match=r"both own element \(0, 2\)"):
        enumerate_launch(OverlappingTiles(2, 3), (4, 6), (2, 2))


def test_tiles_are_clipped_at_the_edges() -> None:
    strategy = Tiles2D(2, 4)
    assert strategy.threads((5, 6)) == (3, 2)
    assert strategy.local_shape((2, 1), (3, 2), (5, 6)) == (1, 2)
    assert owned(strategy, (2, 1), (3, 2), (5, 6)) == [(4, 4), (4, 5)]
    assert owned(Tiles3D(2, 2, 2), (1, 0, 0), (2, 1, 1), (3, 1, 2)) == [(2, 0, 0), (2, 0, 1)]
    assert enumerate_launch(Tiles2D(HUGE, HUGE), (3, 3), (6, 6)).covered


def test_rows_and_columns_go_to_threads_in_turn() -> None:
    assert owned(Rows(), 1, 2, (4, 2)) == [(1, 0), (1, 1), (3, 0), (3, 1)]
    assert owned(Columns(), 1, 2, (2, 4)) == [(0, 1), (0, 3), (1, 1), (1, 3)]
    assert Rows().preferred_threads((4, 2)) == 4
    assert Columns().preferred_threads((2, 5)) == 5


@pytest.mark.parametrize("shape", [(5, 5), (4, 4), (5, 4), (4, 5), (1, 7), (7, 1), (1, 1), (0, 3), (3, 0)])
@pytest.mark.parametrize("colour", [0, 1])
@pytest.mark.parametrize("T", [1, 2, 3, 30])
def test_red_black_owns_exactly_its_colour(shape: tuple[int, int], colour: int, T: int) -> None:
    expected = {(r, c) for r in range(shape[0]) for c in range(shape[1]) if (r + c) % 2 == colour}
    assert set(ownership(RedBlack(colour), shape, T)) == expected
    assert RedBlack(colour).preferred_threads(shape) == len(expected)
    in_order = [RedBlack(colour).index(0, k, 1, shape) for k in range(len(expected))]
    assert in_order == sorted(expected)


def test_red_black_does_not_claim_to_cover() -> None:
    assert not RedBlack(0).covers_shape((1, 1))


@pytest.mark.parametrize("colour", [2, -1])
def test_red_black_has_two_colours(colour: int) -> None:
    with pytest.raises(ValueError, match=f"colour is {colour}; it must be 0 or 1"):
        RedBlack(colour)


def test_segments_own_what_lies_between_offsets() -> None:
    strategy = Segments([1, 3, 3, 6])
    assert [owned(strategy, t, 5, (7,)) for t in range(5)] == [[1, 2], [], [3, 4, 5], [], []]
    assert strategy.threads((7,)) == 3


@pytest.mark.parametrize(
    "offsets, message",
    [
        ([-1, 3], r"offsets\[0\] is -1"),
        ([0, 5, 4, 9], r"offsets\[2\] is 4, below offsets\[1\] = 5"),
        ([], "at least one offset"),
    ],
)
def test_segments_refuse_each_fault_with_its_position(offsets: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Segments(offsets)


def test_segments_are_held_to_the_array_at_launch() -> None:
    strategy = Segments([0, 5, 9])
    strategy.check_shape((9,))
    with pytest.raises(LaunchRefused, match=r"offsets\[2\] is 9, beyond the 8 elements"):
        strategy.check_shape((8,))


def test_segments_cover_only_from_0_to_n() -> None:
    assert Segments([0, 4, 9]).covers_shape((9,))
    assert not Segments([0, 4, 9]).covers_shape((10,))
    assert not Segments([1, 4, 9]).covers_shape((9,))


def test_permuted_names_both_positions_of_a_duplicate() -> None:
    with pytest.raises(ValueError, match=r"indices\[1\] and indices\[4\] are both 7"):
        Permuted([3, 7, 5, 1, 7, 3])


def test_permuted_refuses_what_is_out_of_range() -> None:
    with pytest.raises(ValueError, match=r"indices\[2\] is -1"):
        Permuted([3, 2, -1])
    with pytest.raises(LaunchRefused, match=r"indices\[1\] is 9, outside the 9 elements"):
        enumerate_launch(Permuted([3, 9, 0]), 9, 3)


def test_permuted_covers_an_array_of_its_own_length() -> None:
    assert enumerate_launch(Permuted([2, 0, 1]), 3, 3).covered
    assert Permuted([2, 0, 1]).covers_shape((3,))
    assert not Permuted([2, 0, 1]).covers_shape((4,))
    assert enumerate_launch(Permuted([]), 0, 3).covered


def test_per_block_gives_element_b_to_lane_0_of_block_b() -> None:
    assert sorted(ownership(PerBlock1D(), 3, (5, 4)).items()) == [(b, [((b, 0), 0)]) for b in range(3)]
    assert PerBlock1D().blocks((3,)) == 3
    # Enough threads, but too few blocks: not a launch that it claims to cover.
    assert not enumerate_launch(PerBlock1D(), 3, (2, 4)).covered


def test_the_copy_is_what_counts() -> None:
    numpy = pytest.importorskip("numpy")
    indices = numpy.array([2, 0, 1])
    offsets = [0, 2, 3]
    permuted, segments = Permuted(indices), Segments(offsets)
    indices[0] = 0
    offsets[1] = 99
    assert list(permuted.indices) == [2, 0, 1]
    assert list(segments.offsets) == [0, 2, 3]
    with pytest.raises(TypeError, match="cannot be changed"):
        permuted.indices[0] = 0
    # Nor by way of NumPy, which would share an array's memory.
    numpy.asarray(permuted.indices)[0] = 0
    assert list(permuted.indices) == [2, 0, 1]


def test_numpy_and_plain_python_find_the_same_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    def faults() -> list[str]:
        messages = []
        for make in (
            lambda: Permuted([4, 1, 2, 1, 4]),
            lambda: Permuted([4, -1, -2]),
            lambda: Segments([0, 3, 2, 1]),
            lambda: Permuted([4, 0]).check_shape((4,)),
        ):
            with pytest.raises(ValueError) as caught:
                make()
            messages.append(str(caught.value))
        return messages

    pytest.importorskip("numpy")
    with_numpy = faults()
    monkeypatch.delitem(sys.modules, "numpy")
    assert faults() == with_numpy
