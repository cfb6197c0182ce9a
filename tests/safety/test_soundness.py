"""Programs that once got past the analyses, each with its right answer. A new hole found is one more test here."""



from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np
import pytest
from numba import literal_unroll, njit
from numba.core.errors import NumbaError
from numba.extending import overload

from numba_offload import (
    Chunked1D,
    LaunchError,
    PartitioningStrategy,
    Region,
    SafetyError,
    offload_function,
    offload_kernel,
)


@pytest.fixture(autouse=True)
def separate_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Device buffers start out poisoned: a wrong intent shows in the result."""
    monkeypatch.setenv("NUMBA_OFFLOAD_CPU_MEMORY", "discrete")


def zeros(n: Any = 4) -> np.ndarray:
    return np.zeros(n)


# ---------------------------------------------------- an index that no iteration assigned must not reach a write


def test_a_loop_over_a_tuple_does_not_make_its_items_owned() -> None:
    @offload_kernel
    def k(y):
        for i in y.indices():
            pass
        for j in (i,):
            y[j] = 1.0

    with pytest.raises(SafetyError, match="'y'"):
        k[1, 9](Region(zeros()))


def test_an_index_handed_on_by_star_is_checked() -> None:
    @offload_function
    def put(y, i):
        y[i] = 1.0

    @offload_kernel
    def k(y):
        for i in y.indices():
            pass
        put(y, *(i,))

    with pytest.raises(SafetyError, match="passed on"):
        k[1, 9](Region(zeros()))


def test_components_of_two_indices_in_a_tuple_of_tuples() -> None:
    @offload_kernel
    def k(y):
        for i, _ in y.indices():
            row = i
        for _, j in y.indices():
            for p in ((row, j), (row, j)):
                y[p] = 1.0

    with pytest.raises(SafetyError, match="one unpacking"):
        k(Region(zeros((3, 3))))


def test_a_generator_hides_no_index() -> None:
    @njit
    def generate(y):
        for i in y.indices():
            pass
        yield i

    @offload_kernel
    def k(y):
        for i in generate(y):
            y[i] = 1.0

    with pytest.raises(SafetyError, match="generators"):
        k[1, 9](Region(zeros()))


def test_recursion_is_refused_clearly() -> None:
    @offload_function
    def down(y, i, n):
        if n > 0:
            for j in y.indices():
                pass
            down(y, j, n - 1)
        else:
            y[i] = 1.0

    @offload_kernel
    def k(y):
        for i in y.indices():
            down(y, i, 1)

    with pytest.raises(SafetyError, match="calls itself"):
        k(Region(zeros()))


# -------------------------------------------------------------------- no code is out of the analyses' sight


def users_operation(y, i):
    raise NotImplementedError


@overload(users_operation, strict=False)
def _users_operation(y, i):
    def impl(y, i):
        y[i] = 5.0

    return impl


def test_an_overload_of_the_users_is_looked_into() -> None:
    @offload_kernel
    def right(y):
        for i in y.indices():
            users_operation(y, i)

    @offload_kernel
    def wrong(y):
        for _ in y.indices():
            users_operation(y, 0)

    y = zeros()
    assert right.mappings(Region(y)) == {"y": "tofrom"}
    right(Region(y))
    assert (y == 5.0).all()
    with pytest.raises(SafetyError, match="plain integer"):
        wrong(Region(y))


def test_a_function_handed_to_a_builtin_is_not_a_way_round() -> None:
    @offload_function
    def write_first(a, b):
        a[0] = 1.0
        return b

    @offload_kernel
    def k(y):
        functools.reduce(write_first, (y, y, y))

    with pytest.raises(SafetyError, match="'y'"):
        k(Region(zeros()))


def test_operators_as_functions() -> None:
    @offload_kernel
    def k(x, y):
        for i in y.indices():
            operator.setitem(x, i, 1.0)

    with pytest.raises(SafetyError, match="'x'"):
        k(zeros(), Region(zeros()))


@pytest.mark.filterwarnings("ignore::numba.core.errors.NumbaExperimentalFeatureWarning")
def test_a_variable_holds_one_function() -> None:
    @offload_function
    def one(y, i):
        y[i] = 1.0

    @offload_function
    def two(y, i):
        y[i] = 2.0

    @offload_kernel
    def k(y, n):
        chosen = one if n > 2 else two
        for i in y.indices():
            pass
        chosen(y, i)

    with pytest.raises(NumbaError):
        k(Region(zeros()), 3)


# ----------------------------------------------------------------- "from" only where nothing can be read before


def test_a_nested_tuple_carries_a_region_into_a_callee() -> None:
    @offload_function
    def get(t, i):
        return t[0][0][i]

    @offload_kernel
    def k(y):
        for i in y.indices():
            y[i] = get(((y,),), i) + 1.0

    y = np.arange(4.0)
    k(Region(y))
    assert y.tolist() == [1, 2, 3, 4]


def test_star_arguments_carry_a_region_into_a_callee() -> None:
    @offload_function
    def get(y, i):
        return y[i]

    @offload_kernel
    def k(y):
        for i in y.indices():
            y[i] = get(*(y, i)) + 1.0

    y = np.arange(4.0)
    k(Region(y))
    assert y.tolist() == [1, 2, 3, 4]


def test_a_block_shows_elements_that_are_not_assigned_yet() -> None:
    @offload_kernel
    def k(y):
        for i in y.indices():
            y[i] = 1.0
            block = y.local
            y[i] = block[block.size - 1]

    y = np.arange(8.0)
    k(Region(y, Chunked1D(4)))
    assert y.tolist() == [3, 3, 3, 1, 7, 7, 7, 1]


def test_another_owned_element_is_read() -> None:
    @offload_kernel
    def k(y, z):
        for i in y.indices():
            for j in z.indices():
                y[i] = 1.0
                z[j] += y[j]

    y, z = np.arange(4.0), np.zeros(4)
    k(Region(y, Chunked1D(2)), Region(z, Chunked1D(2)))
    assert y.tolist() == [1, 1, 1, 1]
    assert z.tolist() == [2, 2, 2, 4]


def test_a_callee_gives_back_a_block() -> None:
    @offload_function
    def assign(y, i):
        y[i] = 1.0
        return y.local

    @offload_kernel
    def k(y):
        for i in y.indices():
            block = assign(y, i)
            y[i] = block[block.size - 1]

    y = np.arange(8.0)
    k(Region(y, Chunked1D(4)))
    assert y.tolist() == [3, 3, 3, 1, 7, 7, 7, 1]


def test_a_callee_assigns_on_its_second_turn() -> None:
    @offload_function
    def late(y, i):
        for turn in range(2):
            if turn == 0:
                old = y[i]
            y[i] = 1.0
        return old

    @offload_kernel
    def k(y):
        for i in y.indices():
            y[i] = late(y, i)

    y = np.arange(4.0)
    k(Region(y))
    assert y.tolist() == [0, 1, 2, 3]


def test_a_failing_thread_leaves_the_hosts_arrays() -> None:
    @offload_kernel
    def k(x, y):
        for i in y.indices():
            y[i] = x[i + 1]

    y = np.full(4, 7.0)
    with pytest.raises(IndexError, match=r"index 4.*axis 0.*size 4.*line"):
        k(np.ones(4), Region(y))
    assert (y == 7.0).all()


# ------------------------------------------------------------------------- a check left out must be a check passed


def test_bounds_of_a_range_that_overflow() -> None:
    @offload_kernel
    def k(y, x, a, b):
        for i in y.indices():
            total = 0.0
            for q in range(a * b, 5):
                total += x[q]
            y[i] = total

    with pytest.raises(IndexError, match="index 3"):
        k(Region(zeros()), np.ones(3), 2**32, 2**32)


def test_an_index_of_a_region_without_elements() -> None:
    @offload_kernel
    def k(empty, y, x):
        for i in empty.indices():
            pass
        for j in y.indices():
            y[j] = x[i]

    with pytest.raises(IndexError, match="size 0"):
        k(Region(zeros(0)), Region(zeros()), zeros(0))


# ------------------------------------------------------------------------------------------ strategies of users


def test_a_strategy_is_checked_as_it_was_compiled() -> None:
    stride = 0

    class Strided(PartitioningStrategy):
        ndim = 1
        covers = False

        def count(self, t, T, shape):
            return 1 if t * stride < shape[0] else 0

        def index(self, t, k, T, shape):
            return t * stride

        def threads(self, shape):
            return shape[0]

    @offload_kernel
    def k(y):
        for i in y.indices():
            y[i] = y[i] + 1.0

    k(Region(zeros(1), Strided()))
    stride = 1
    y = zeros(8)
    with pytest.raises(LaunchError, match="has changed since it was first used"):
        k(Region(y, Strided()))
    assert not y.any()


# ------------------------------------------------------------------------------- safe programs that must stay legal


def test_unrolled_loops_and_closures_and_defaults() -> None:
    @offload_function
    def put(y, i, value=2.0):
        y[i] = value

    @offload_kernel
    def k(y, z):
        def inner(i):
            put(y, i)

        for i in y.indices():
            inner(i)
        for v in literal_unroll((y, z)):
            for i in v.indices():
                v[i] += 1.0

    y, z = zeros(), zeros(6)
    k(Region(y), Region(z))
    assert (y == 3.0).all()
    assert (z == 1.0).all()


def test_an_index_in_a_tuple_of_one() -> None:
    @offload_kernel
    def k(y):
        for i in y.indices():
            y[i,] = 1.0

    y = zeros()
    assert k.mappings(Region(y)) == {"y": "from"}
    k(Region(y))
    assert (y == 1.0).all()


def test_a_variable_that_some_path_leaves_undefined_beside_a_loop_over_two_axes() -> None:
    @offload_kernel
    def k(y):
        for i, j in y.indices():
            for q in range(3):
                last = q
            y[i, j] = last + 10 * i + j

    y = zeros((2, 3))
    k(Region(y))
    assert y.tolist() == [[2, 3, 4], [12, 13, 14]]


def test_rows_in_packed_rows() -> None:
    inner = [("q", "f8"), ("w", "i2")]
    packed = np.dtype([("c", "i1"), ("n", inner), ("v", "f8", (2,))])

    @offload_kernel
    def k(x, y):
        for i in y.indices():
            y[i].n.q = 2.0 * x[i].n.q
            y[i].v[1] = x[i].v[0]

    x, y = np.zeros(3, packed), np.zeros(3, packed)
    x["n"]["q"], x["v"] = [1, 2, 3], 5
    k(x, Region(y))
    assert y["n"]["q"].tolist() == [2, 4, 6]
    assert y["v"].tolist() == [[0, 5]] * 3


def test_an_index_through_a_callee() -> None:
    @offload_function
    def same(i):
        return i

    @offload_kernel
    def k(y):
        for i in y.indices():
            y[same(i)] = 1.0

    y = zeros()
    k(Region(y))
    assert (y == 1.0).all()
