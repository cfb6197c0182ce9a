"""Cases from the field, 1 to 14: arrays in and out."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from numba_offload import (
    AliasError,
    Chunked1D,
    LaunchError,
    Linear1D,
    Region,
    SafetyError,
    Strided1D,
    Tiles2D,
    UnsupportedArrayError,
    offload_kernel,
    profile,
)


@offload_kernel
def copy(x, y):
    for i in y.indices():
        y[i] = x[i]


@offload_kernel
def add_one(y):
    for i in y.indices():
        y[i] += 1


@offload_kernel
def double(x, y):
    for i in y.indices():
        y[i] = 2 * x[i]


@offload_kernel
def sum_of_two(a, b, y):
    for i in y.indices():
        y[i] = a[i] + b[i]


# ---------------------------------------------------------------------------------------------- 1: strided destination


def test_case_01_only_the_view_is_written(target):
    big = np.arange(12.0).reshape(3, 4)
    expected = big.copy()
    expected[:2, :2] += 1
    add_one(Region(big[:2, :2]))
    assert np.array_equal(big, expected)


@pytest.mark.parametrize(
    "part", [np.s_[:, 1], np.s_[1], np.s_[::2, ::3], np.s_[1:, 1:3], np.s_[2:, 3:], np.s_[::-1, -2:0:-1]], ids=str
)
def test_case_01_more_destinations(target, part):
    big = np.arange(20.0).reshape(4, 5)
    x = -np.arange(1.0, big[part].size + 1).reshape(big[part].shape)
    expected = big.copy()
    expected[part] = x
    copy(x, Region(big[part]))
    assert np.array_equal(big, expected)


# ------------------------------------------------------------------------------------ 2: any view, in, out and updated

VIEWS = {
    "x[::2]": lambda x: x[::2],
    "x[::-1]": lambda x: x[::-1],
    "x[:, 1:3]": lambda x: x[:, 1:3],
    "x.T[::2]": lambda x: x.T[::2],
    "x[..., None]": lambda x: x[..., None],
}


def views():
    return pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS.keys())


@views()
def test_case_02_as_input(target, view):
    x = view(np.arange(30.0).reshape(5, 6) ** 3 / 7)
    y = np.zeros(x.shape)
    double(x, Region(y))
    assert np.array_equal(y, 2 * x)


@views()
def test_case_02_as_output(target, view):
    base = np.arange(30.0).reshape(5, 6)
    expected = base.copy()
    x = np.sqrt(np.arange(view(base).size)).reshape(view(base).shape)
    view(expected)[...] = 2 * x
    double(x, Region(view(base)))
    assert np.array_equal(base, expected)


@views()
def test_case_02_as_both(target, view):
    base = np.arange(30.0).reshape(5, 6) / 3
    expected = base.copy()
    view(expected)[...] += 1
    add_one(Region(view(base)))
    assert np.array_equal(base, expected)


# --------------------------------------------------------------------------------------------------------- 3: zero size


@pytest.mark.parametrize("shape", [(0,), (0, 4), (4, 0), (0, 0, 3)])
def test_case_03_nothing_to_do_launches_nothing(target, shape):
    y = np.zeros(shape)
    with profile() as counted:
        copy(np.zeros(shape), Region(y))
        add_one[2, 64](Region(y))
    assert (counted.launches, counted.h2d_bytes, counted.d2h_bytes) == (0, 0, 0)
    assert y.shape == shape


def test_case_03_an_empty_input_beside_a_full_output(target):
    @offload_kernel
    def length(x, y):
        for i in y.indices():
            y[i] = x.size + x.shape[0]

    y = np.full(5, 7)
    length(np.zeros((3, 0)), Region(y))
    assert np.array_equal(y, np.full(5, 3))


def test_case_03_an_empty_region_beside_a_full_one(target):
    @offload_kernel
    def both(y, z):
        for i in y.indices():
            y[i] += 1
        for i in z.indices():
            z[i] += 1

    y, z = np.zeros(5), np.zeros(0)
    both(Region(y), Region(z))
    assert np.array_equal(y, np.ones(5))


def test_case_03_an_index_into_an_empty_array_is_out_of_range(target):
    y = np.zeros(3)
    with pytest.raises(IndexError, match="axis 0 with size 0"):
        copy(np.zeros(0), Region(y))


def test_case_03_a_region_whose_strategy_owns_nothing(target):
    y = np.full(3, 7.0)
    add_one(Region(y, Strided1D(5, 2)))
    assert np.array_equal(y, np.full(3, 7.0))


def test_case_03_typing_errors_are_still_reported(target):
    @offload_kernel
    def wrong(x, y):
        x[0] = 1.0

    with pytest.raises(SafetyError, match="'x'"):
        wrong(np.zeros(0), Region(np.zeros(0)))


# -------------------------------------------------------------------------------------------------------------- 4: 0-d


def test_case_04_an_array_of_no_axes_is_updated(target):
    z = np.array(0.0)
    add_one(Region(z))
    assert z == 1.0
    assert z.ndim == 0


def test_case_04_part_of_an_array_as_one_of_no_axes(target):
    base = np.arange(5.0)
    add_one(Region(base[2, ...]))
    add_one(Region(base[4:]))
    assert base.tolist() == [0, 1, 3, 3, 5]


def test_case_04_an_input_of_no_axes_is_an_array_and_a_numpy_scalar_a_value(target):
    @offload_kernel
    def from_array(x, y):
        for i in y.indices():
            y[i] = x[()]

    @offload_kernel
    def from_value(x, y):
        for i in y.indices():
            y[i] = x

    y = np.zeros(3)
    from_array(np.array(2.5), Region(y))
    assert np.array_equal(y, np.full(3, 2.5))
    from_value(np.float64(3.5), Region(y))
    assert np.array_equal(y, np.full(3, 3.5))
    assert from_value.mappings(np.float64(3.5), Region(y))["x"] == "literal"
    assert from_array.mappings(np.array(2.5), Region(y))["x"] == "to"


# --------------------------------------------------------------------------------------------------- 5: read-only input


def read_only(tmp_path):
    frozen = np.arange(12.0).reshape(4, 3)
    frozen.flags.writeable = False
    np.arange(12.0).tofile(tmp_path / "numbers")
    mapped = np.memmap(tmp_path / "numbers", "f8", mode="r", shape=(4, 3))
    return {
        "frozen": frozen,
        "broadcast": np.broadcast_to(np.arange(3.0), (4, 3)),
        "memmap": mapped,
        "view of frozen": frozen[::-1],
    }


@pytest.mark.parametrize("kind", ["frozen", "broadcast", "memmap", "view of frozen"])
def test_case_05_what_cannot_be_written_is_an_input(target, tmp_path, kind):
    x = read_only(tmp_path)[kind]
    y = np.zeros((4, 3))
    double(x, Region(y))
    assert np.array_equal(y, 2 * np.asarray(x))


@pytest.mark.parametrize("kind", ["frozen", "broadcast", "memmap", "view of frozen"])
def test_case_05_a_kernel_that_writes_it_is_refused(target, tmp_path, kind):
    x = read_only(tmp_path)[kind]
    before = np.array(x)
    with profile() as counted, pytest.raises(LaunchError, match="'y'"):
        add_one(Region(x))
    assert np.array_equal(x, before)
    assert counted.h2d_count == counted.launches == 0


def test_case_05_a_region_that_is_only_read_may_be_read_only(target):
    @offload_kernel
    def read_region(x, y):
        for i in x.indices():
            y[i] = x[i]

    frozen = np.arange(5.0)
    frozen.flags.writeable = False
    y = np.zeros(5)
    read_region(Region(frozen), Region(y))
    assert np.array_equal(y, frozen)


def test_case_05_a_writable_memory_map_is_an_output(target, tmp_path):
    np.zeros(6).tofile(tmp_path / "numbers")
    mapped = np.memmap(tmp_path / "numbers", "f8", mode="r+")
    add_one(Region(mapped))
    mapped.flush()
    assert np.array_equal(np.fromfile(tmp_path / "numbers"), np.ones(6))


# ------------------------------------------------------------------------------------------------------------ 6: aliases

OVERLAPS = {
    "itself": lambda a: (a, Region(a)),
    "shifted": lambda a: (a[1:], Region(a[:-1])),
    "other type": lambda a: (a, Region(a.view("u8"))),
    "bytes": lambda a: (a[:1], Region(a.view("u1"))),
    "reversed": lambda a: (a, Region(a[::-1])),
    "one element": lambda a: (a[-1:], Region(a[::9])),
}


@pytest.mark.parametrize("make", OVERLAPS.values(), ids=OVERLAPS.keys())
def test_case_06_an_overlap_with_what_is_written(target, make):
    a = np.arange(10.0)
    with profile() as counted, pytest.raises(AliasError, match="'x'.*'y'|'y'.*'x'"):
        copy(*make(a))
    assert np.array_equal(a, np.arange(10.0))
    assert counted.h2d_count == counted.launches == 0


def test_case_06_two_regions_that_overlap(target):
    a = np.arange(10.0)

    @offload_kernel
    def both(y, z):
        for i in y.indices():
            y[i] = 0
        for i in z.indices():
            z[i] = 0

    with pytest.raises(AliasError, match="'y'.*'z'|'z'.*'y'"):
        both(Region(a[:6]), Region(a[5:]))
    assert np.array_equal(a, np.arange(10.0))
    both(Region(a[:5]), Region(a[5:]))
    assert not a.any()


def test_case_06_read_only_uses_share_one_copy(target):
    a, y = np.arange(1000.0), np.zeros(1000)
    with profile() as counted:
        sum_of_two(a, a, Region(y))
    assert np.array_equal(y, 2 * a)
    assert counted.h2d_bytes == (a.nbytes if target.separate else 0)


def test_case_06_overlapping_views_that_are_only_read(target):
    a, y = np.arange(1000.0), np.zeros(999)
    with profile() as counted:
        sum_of_two(a[1:], a[:-1], Region(y))
    assert np.array_equal(y, a[1:] + a[:-1])
    assert counted.h2d_bytes == (a.nbytes if target.separate else 0)


def test_case_06_a_leaf_of_a_tuple_aliases_too(target):
    @offload_kernel
    def scale(pair, y):
        for i in y.indices():
            y[i] = pair[0][i] * pair[1]

    a = np.arange(10.0)
    with pytest.raises(AliasError, match=r"pair\[0\]"):
        scale((a, 2.0), Region(a))


def test_case_06_an_array_that_the_kernel_does_not_touch_may_overlap(target):
    @offload_kernel
    def size_of(x, y):
        for i in y.indices():
            y[i] = x.size

    a = np.zeros(10)
    size_of(a, Region(a))
    assert np.array_equal(a, np.full(10, 10.0))


# -------------------------------------------------------------------------------------------------- 7: unusable arrays


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (np.zeros(4, ">i4"), ">i4"),
        (np.zeros(4, object), "object"),
        (np.zeros(4, np.longdouble), str(np.dtype(np.longdouble))),
        (np.ma.masked_array(np.zeros(4), [0, 1, 0, 0]), "float64"),
        ([1.0, 2.0, 3.0, 4.0], "list"),
        (np.zeros(4, np.float16), "float16"),
        (np.zeros(4, "U3"), "<U3"),
        (np.zeros(4, [("a", "f8"), ("b", ">i4")]), "b"),
    ],
    ids=[">i4", "object", "longdouble", "masked", "list", "float16", "str", "field of >i4"],
)
def test_case_07_what_a_kernel_does_not_take(target, value, says):
    y = np.zeros(4)
    with profile() as counted, pytest.raises(UnsupportedArrayError, match=f"(?s)'x'.*{says}"):
        copy(value, Region(y))
    assert counted.h2d_count == counted.launches == 0
    assert not y.any()


@pytest.mark.parametrize("dtype", [">i4", object, np.longdouble, np.float16])
def test_case_07_as_a_region(target, dtype):
    y = np.zeros(4, dtype)
    with pytest.raises(UnsupportedArrayError, match=rf"'y'.*{np.dtype(dtype)}"):
        add_one(Region(y))


# ------------------------------------------------------------------------------------------------------- 8: structures

FIELDS = [("tag", "u1"), ("mass", "f8"), ("id", "i2"), ("spin", "f4")]


@offload_kernel
def heavier(r):
    for i in r.indices():
        r[i].mass = r[i].mass * 2 + r[i].id


@offload_kernel
def read_fields(r, y):
    for i in y.indices():
        y[i] = r[i].mass + r[i].id + r[i]["spin"] + r[i].tag


def rows(align, n=9):
    dtype = np.dtype(FIELDS, align=align)
    out = np.full(n * dtype.itemsize, 0xC3, "u1").view(dtype)
    out["tag"], out["mass"], out["id"], out["spin"] = np.arange(n), np.arange(n) / 4, -np.arange(n), 0.5
    return out


@pytest.mark.parametrize("align", [False, True], ids=["packed", "aligned"])
def test_case_08_fields_are_read_exactly(target, align):
    r = rows(align)
    y = np.zeros(9)
    read_fields(r, Region(y))
    assert np.array_equal(y, r["mass"] + r["id"] + r["spin"] + r["tag"])


@pytest.mark.parametrize("step", [1, 2, -1])
@pytest.mark.parametrize("align", [False, True], ids=["packed", "aligned"])
def test_case_08_writing_a_field_leaves_the_rest_alone(target, align, step):
    r = rows(align)
    expected = r.view("u1").copy().view(r.dtype)
    expected["mass"][::step] = expected["mass"][::step] * 2 + expected["id"][::step]
    heavier(Region(r[::step]))
    assert r.tobytes() == expected.tobytes()


def test_case_08_a_field_as_an_array(target):
    r = rows(False)
    aligned = rows(True)
    expected = aligned.view("u1").copy().view(aligned.dtype)
    expected["mass"] = np.arange(9)
    copy(np.arange(9.0), Region(aligned["mass"]))
    assert aligned.tobytes() == expected.tobytes()
    with pytest.raises(UnsupportedArrayError, match="'y'.*aligned"):
        copy(np.arange(9.0), Region(r["mass"]))


# ----------------------------------------------------------------------------------------------------------- 9: orders


@pytest.mark.parametrize("orders", ["FF", "FC", "CF"])
@pytest.mark.parametrize("strategy", [None, Tiles2D(2, 3)], ids=repr)
def test_case_09_the_callers_own_array_is_updated(target, orders, strategy):
    x = np.asarray(np.arange(35.0).reshape(5, 7), order=orders[0])
    y = np.zeros((5, 7), order=orders[1])
    alias = y.T
    double(x, Region(y, strategy))
    assert np.array_equal(alias.T, 2 * x)
    assert y.flags["F_CONTIGUOUS"] == (orders[1] == "F")


# --------------------------------------------------------------------------------------------------- 10: bool, complex


def test_case_10_bools_stay_0_or_1(target):
    @offload_kernel
    def is_large(x, y):
        for i in y.indices():
            y[i] = x[i] > 3

    @offload_kernel
    def flip(y):
        for i in y.indices():
            y[i] = not y[i]

    y = np.zeros(8, bool)
    is_large(np.arange(8), Region(y))
    flip(Region(y[::2]))
    assert y.view("u1").tolist() == [1, 0, 1, 0, 0, 1, 0, 1]


@pytest.mark.parametrize("dtype", ["c8", "c16"])
@pytest.mark.parametrize("alpha", [1 + 2j, np.complex64(-3j), 2], ids=repr)
def test_case_10_complex_arrays_and_scalars(target, dtype, alpha):
    @offload_kernel(contract=False)
    def scale(alpha, x, y):
        for i in y.indices():
            y[i] = alpha * x[i]

    x = (np.arange(9) - 4j * np.arange(9)).astype(dtype)
    y = np.zeros(9, dtype)
    scale(alpha, x, Region(y))
    assert np.array_equal(y, alpha * x)


@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_case_10_the_real_part_as_a_region(target, dtype):
    z = (np.arange(9) + 1j * np.arange(9)).astype(dtype)
    expected = z.copy()
    expected.real += 1
    add_one(Region(z.real))
    assert np.array_equal(z, expected)
    copy(z.imag.copy(), Region(z.real[::-1]))
    assert np.array_equal(z.real, expected.imag[::-1])
    assert np.array_equal(z.imag, expected.imag)


# ---------------------------------------------------------------------------------------------- 11: partly written output


@offload_kernel
def write_even(y):
    for i in y.indices():
        if i % 2 == 0:
            y[i] = 1


def test_case_11_what_is_not_written_keeps_its_value(target):
    out = np.full(11, 7.0)
    write_even(Region(out))
    assert out.tolist() == [1, 7] * 5 + [1]
    assert write_even.mappings(Region(out)) == {"y": "tofrom"}


def test_case_11_a_strategy_that_does_not_cover(target):
    out = np.full(11, 7.0)
    x = np.zeros(11)
    assert copy.mappings(x, Region(out, Strided1D(0, 2)))["y"] == "tofrom"
    copy(x, Region(out, Strided1D(0, 2)))
    assert out.tolist() == [0, 7] * 5 + [0]


def test_case_11_part_of_a_block(target):
    @offload_kernel
    def first_of_block(y):
        block = y.local
        block[0] = 1

    out = np.full(12, 7.0)
    first_of_block(Region(out, Chunked1D(4)))
    assert out.tolist() == [1, 7, 7, 7] * 3
    assert first_of_block.mappings(Region(out, Chunked1D(4))) == {"y": "tofrom"}


# -------------------------------------------------------------------------------------- 12: not on every path: tofrom


@offload_kernel
def on_one_branch(x, y):
    for i in y.indices():
        if x[i] > 0:
            y[i] = x[i]


@offload_kernel
def in_a_loop(x, y):
    for i in y.indices():
        for k in range(x[i]):
            y[i] = k


@offload_kernel
def behind_a_return(x, y):
    if x[0] > 0:
        return
    for i in y.indices():
        y[i] = x[i]


@offload_kernel
def behind_a_return_inside(x, y):
    for i in y.indices():
        if x[i] > 2:
            return
        y[i] = x[i]


@offload_kernel
def behind_a_continue(x, y):
    for i in y.indices():
        if x[i] > 2:
            continue
        y[i] = x[i]


@offload_kernel
def while_true(x, y):
    n = x[0]
    while n > 0:
        for i in y.indices():
            y[i] = n
        n -= 1


@offload_kernel
def read_before(x, y):
    for i in y.indices():
        old = y[i]
        y[i] = x[i]
        if x[i] < 0:
            y[i] = old


@offload_kernel
def in_one_of_two_loops(x, y):
    if len(x) > 3:
        for i in y.indices():
            y[i] = x[i]
    else:
        for i in y.indices():
            if i > 0:
                y[i] = x[i]


PARTIAL = [
    on_one_branch, in_a_loop, behind_a_return, behind_a_return_inside, behind_a_continue, while_true, read_before,
    in_one_of_two_loops,
]


def as_python(kernel, x, y, threads):
    """The kernel run by CPython, thread after thread, on a stand-in for its Region."""

    class Stub:
        def __init__(self, mine):
            self.mine = mine

        def indices(self):
            return iter(self.mine)

        def __getitem__(self, i):
            return y[i]

        def __setitem__(self, i, value):
            y[i] = value

    for t in range(threads):
        kernel.py_func(x, Stub([i for i in range(len(y)) if i % threads == t]))


@pytest.mark.parametrize("kernel", PARTIAL, ids=lambda k: k.__name__)
@pytest.mark.parametrize("first", [0, 1])
def test_case_12_it_is_tofrom_and_the_rest_keeps_its_value(target, kernel, first):
    x = np.array([first, -1, 3, 0, 2, 5, 1])
    y = np.full(7, 77)
    expected = y.copy()
    assert kernel.mappings(x, Region(y))["y"] == "tofrom"
    as_python(kernel, x, expected, 7)
    kernel(x, Region(y))
    assert np.array_equal(y, expected)


def test_case_12_every_path_writes(target):
    @offload_kernel
    def either(x, y):
        for i in y.indices():
            if x[i] > 0:
                y[i] = 1
            elif x[i] < 0:
                y[i] = -1
            else:
                raise ValueError("zero")

    x = np.array([3.0, -2.0])
    y = np.zeros(2)
    assert either.mappings(x, Region(y))["y"] == "from"
    either(x, Region(y))
    assert y.tolist() == [1, -1]


# ------------------------------------------------------------------------------------------------------ 13: bytes moved


def test_case_13_what_moves_is_what_must(target):
    x = np.ones(8 * 2**20)
    y = np.zeros(512)

    @offload_kernel
    def sums(x, y):
        for i in y.indices():
            y[i] = x[i] + x[-1]

    with profile() as counted:
        sums(x, Region(y))
    assert np.array_equal(y, np.full(512, 2.0))
    assert counted.h2d_bytes == (64 * 2**20 if target.separate else 0)
    assert counted.d2h_bytes == (4096 if target.separate else 0)
    assert counted.h2d_count == counted.d2h_count == (1 if target.separate else 0)


# ----------------------------------------------------------------------------------------- 14: the result is as of the call


def test_case_14_the_input_changes_right_after_the_call(target):
    x, y = np.arange(100_000.0), np.zeros(100_000)
    double(x, Region(y))
    x[:] = -1
    assert np.array_equal(y, 2 * np.arange(100_000.0))


def test_case_14_the_last_reference_is_dropped(target):
    y = np.zeros(1000)
    double(np.arange(1000.0)[::-1], Region(y))
    gc.collect()
    assert np.array_equal(y, 2 * np.arange(1000.0)[::-1])
    base = np.zeros(2000)
    add_one(Region(base[::2], Linear1D()))
    view = base[::2]
    del base
    gc.collect()
    assert np.array_equal(view, np.ones(1000))


def test_case_14_the_output_changes_between_calls(target):
    y = np.zeros(100)
    for k in range(5):
        y[:] = k
        add_one(Region(y))
        assert np.array_equal(y, np.full(100, k + 1))
