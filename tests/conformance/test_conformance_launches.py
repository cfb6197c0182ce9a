"""What a launch does around the kernel: its shape, its maps and the reasons for them, the bytes it moves."""

from __future__ import annotations

import kernels
import numpy as np
import pytest

from numba_offload import (
    AliasError,
    Chunked1D,
    GridStride1D,
    LaunchError,
    RedBlack,
    Region,
    SafetyError,
    Strided1D,
    UnsupportedArrayError,
    profile,
)

X = np.arange(1000.0)


def output(n=1000):
    return np.zeros(n)


@pytest.mark.parametrize(
    ("kernel", "args", "expected"),
    [
        (kernels.copy, (X, Region(output())), {"x": "to", "y": "from"}),
        (kernels.add_into, (X, Region(output())), {"x": "to", "y": "tofrom"}),
        (kernels.fill, (Region(output()), 2.0), {"y": "from", "value": "literal"}),
        (kernels.even_only, (Region(output()),), {"y": "tofrom"}),
        (kernels.copy, (X, Region(output(), GridStride1D())), {"x": "to", "y": "from"}),
        (kernels.copy, (X, Region(output(), Strided1D(0, 2))), {"x": "to", "y": "tofrom"}),
        (kernels.copy, (np.zeros((4, 5)), Region(np.zeros((4, 5)), RedBlack(0))), {"x": "to", "y": "tofrom"}),
        (kernels.saxpy, (2.0, X, Region(output())), {"alpha": "literal", "x": "to", "y": "tofrom"}),
        (kernels.untouched, (X, Region(output()), X[:9]), {"x": "none", "y": "from", "z": "none"}),
        (kernels.both, (X, Region(output()), Region(output())), {"x": "to", "y": "from", "z": "from"}),
        (kernels.break_out, (Region(output()), 5), {"y": "tofrom", "limit": "literal"}),
        (kernels.scan_block, (Region(output(), Chunked1D(4)),), {"y": "tofrom"}),
        (kernels.call_views, (X, Region(output())), {"x": "to", "y": "from"}),
        (kernels.call_with_region, (Region(output()), 1.0), {"y": "from", "value": "literal"}),
        (
            kernels.move,
            (kernels.Particles(Region(output()), X, 2.0), 0.5),
            {"p.position": "tofrom", "p.velocity": "to", "p.mass": "literal", "dt": "literal"},
        ),
        (
            kernels.nested_tuple,
            ((X, (Region(output()), 3.0)),),
            {"t[0]": "to", "t[1][0]": "from", "t[1][1]": "literal"},
        ),
        (kernels.complex_scalar, (1j, X + 0j, Region(X + 0j)), {"alpha": "literal", "x": "to", "y": "tofrom"}),
    ],
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_maps(target, kernel, args, expected):
    assert kernel.mappings(*args) == expected


def test_asking_for_maps_runs_nothing(target):
    y = output()
    with profile() as counted:
        kernels.fill.mappings(Region(y), 1.0)
        kernels.fill.explain(Region(y), 1.0)
    assert not y.any()
    assert (counted.launches, counted.h2d_count, counted.d2h_count) == (0, 0, 0)


def test_explanations_name_arguments_maps_and_lines(target):
    text = kernels.saxpy.explain(2.0, X, Region(output()))
    first = kernels.saxpy.py_func.__code__.co_firstlineno
    assert "saxpy" in text
    assert "x: to" in text
    assert "y: tofrom" in text
    assert "alpha: literal" in text
    assert f"line {first + 3}" in text


def test_each_argument_moves_once_and_only_where_its_map_says(target):
    y = output()
    with profile() as counted:
        kernels.copy(X, Region(y))
    moved = (1, X.nbytes, 1, y.nbytes) if target.separate else (0, 0, 0, 0)
    assert (counted.h2d_count, counted.h2d_bytes, counted.d2h_count, counted.d2h_bytes) == moved
    assert counted.launches == 1


def test_an_update_moves_both_ways(target):
    y = output()
    with profile() as counted:
        kernels.saxpy(2.0, X, Region(y))
    moved = (X.nbytes + y.nbytes, y.nbytes) if target.separate else (0, 0)
    assert (counted.h2d_bytes, counted.d2h_bytes) == moved


def test_what_is_never_touched_does_not_move(target):
    y = output()
    with profile() as counted:
        kernels.untouched(X, Region(y), X[:9])
    assert np.array_equal(y, np.full(1000, 1009.0))
    assert counted.h2d_bytes == 0
    assert counted.d2h_bytes == (y.nbytes if target.separate else 0)


def test_one_array_read_twice_moves_once(target):
    y = output()
    with profile() as counted:
        kernels.add_pair((X, X), Region(y))
    assert np.array_equal(y, 2 * X)
    assert counted.h2d_bytes == (X.nbytes if target.separate else 0)


def test_only_a_views_own_elements_come_back(target):
    base = np.arange(3000.0)
    with profile() as counted:
        kernels.copy(X, Region(base[::3]))
    if target.separate:
        assert counted.d2h_bytes == X.nbytes
    expected = np.arange(3000.0)
    expected[::3] = X
    assert np.array_equal(base, expected)


@pytest.mark.parametrize(
    "configuration",
    [(0, 64), (-1, 64), (1, 0), (1, -64), (1.5, 64), (1, 64.0), ("1", 64), (True, 64), ((), 64), ((1, 1, 1, 1), 64), (None, 1)],
    ids=repr,
)
def test_a_configuration_that_makes_no_sense_is_a_value_error(target, configuration):
    y = output(10)
    with pytest.raises(ValueError, match=r"blocks|threads"):
        kernels.increment[configuration](Region(y))
    assert not y.any()


@pytest.mark.parametrize("configuration", [5, (5,), (1, 2, 3, 4)], ids=repr)
def test_a_configuration_of_the_wrong_length(target, configuration):
    with pytest.raises(ValueError, match=r"blocks, threads"):
        kernels.increment[configuration](Region(output(10)))


@pytest.mark.parametrize("configuration", [([2, 1], [32, 2]), (np.int64(1), np.int32(64)), ((2,), (64,))], ids=repr)
def test_lists_and_numpy_integers_are_extents(target, configuration):
    y = output(60)
    kernels.increment[configuration](Region(y))
    assert np.array_equal(y, np.ones(60))


def test_a_kernel_without_a_region_needs_a_configuration(target):
    with pytest.raises(LaunchError, match=r"kernel 'only_reads'.*Region"):
        kernels.only_reads(X, 1e9)
    kernels.only_reads[2, 32](X, 1e9)
    with pytest.raises(ValueError, match="above the limit"):
        kernels.only_reads[2, 32](X, -1.0)


@pytest.mark.parametrize(
    "make",
    [
        lambda a: (a, Region(a)),
        lambda a: (a[1:], Region(a[:-1])),
        lambda a: (a[::-1], Region(a)),
        lambda a: (a[:600:2], Region(a[200:500])),
    ],
    ids=["same", "shifted", "reversed", "strided"],
)
def test_an_overlap_with_what_is_written_is_refused(target, make):
    a = np.arange(1000.0)
    with profile() as counted, pytest.raises(AliasError, match=r"'x'.*'y'|'y'.*'x'"):
        kernels.copy(*make(a))
    assert np.array_equal(a, np.arange(1000.0))
    assert counted.h2d_count == counted.d2h_count == counted.launches == 0


def test_a_broadcast_array_is_not_written(target):
    with pytest.raises(LaunchError, match=r"'y'.*broadcast"):
        kernels.increment(Region(np.broadcast_to(np.zeros(3), (4, 3))))


@pytest.mark.parametrize("dtype", [">i4", "O", "g", "G", "S5", "U5", "f2", "V3"])
def test_dtypes_that_kernels_do_not_take(target, dtype):
    x, y = np.zeros(4, dtype), output(4)
    with profile() as counted, pytest.raises(UnsupportedArrayError, match=r"'x'.*dtype"):
        kernels.copy(x, Region(y))
    with pytest.raises(UnsupportedArrayError, match=r"'y'.*dtype"):
        kernels.fill(Region(x), 1)
    assert counted.h2d_count == counted.launches == 0


def test_a_misaligned_array_is_refused(target):
    x = np.zeros(33, "u1")[1:].view("f8")
    with pytest.raises(UnsupportedArrayError, match=r"'x'.*aligned"):
        kernels.copy(x, Region(output(4)))


def test_owned_indices_serve_regions_partitioned_alike(target):
    y, z = output(20), output(20)
    kernels.both(X[:20], Region(y, Chunked1D(3)), Region(z, Chunked1D(3)))
    assert np.array_equal(y, z)


@pytest.mark.parametrize(
    ("n", "strategy", "match"),
    [(19, Chunked1D(3), "shape"), (21, Chunked1D(3), "shape"), (20, Chunked1D(4), "'z'"), (20, None, "'z'")],
    ids=["shorter", "longer", "other parameter", "other strategy"],
)
def test_owned_indices_do_not_serve_other_regions(target, n, strategy, match):
    y, z = output(20), output(n)
    with pytest.raises((LaunchError, SafetyError), match=match):
        kernels.both(X[:20], Region(y, Chunked1D(3)), Region(z, strategy))
    assert not y.any()
    assert not z.any()
