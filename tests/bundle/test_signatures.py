"""The types of a call as text: read, and shown."""

from __future__ import annotations

from collections import namedtuple

import kept
import numpy as np
import pytest

from numba_offload import BundleError
from numba_offload.arguments import Arguments, add_argument
from numba_offload.bundle.content import call_types
from numba_offload.bundle.signatures import example_arguments, shown_signature

ROW = np.dtype([("id", "i2"), ("pos", "f4", (3,)), ("when", "M8[s]")], align=True)
Pair = namedtuple("Pair", "scale rows")
NAMES = {"ROW": ROW, "Pair": Pair, "EveryOther": kept.EveryOther, "other": 3}


def types_of(args):
    arguments = Arguments()
    for k, value in enumerate(args):
        add_argument(arguments, f"a{k}", value)
    return call_types(arguments.key)


@pytest.mark.parametrize(
    "text",
    [
        "f8",
        "i8, u1, f4, c8, bool, None",
        "M8[ns], m8[s]",
        "f8[::1]",
        "f8[:]",
        "f8[:, ::1], f8[:, :], f8[::, ::1], f8[::, ::, ::1]",
        "f8[()]",
        "M8[ns][::1]",
        "Region(f8[::1])",
        "Region(i4[:, :, :])",
        "Region(f8[::1], GridStride1D())",
        "Region(f8[::1], Chunked1D(k=8))",
        "Region(f8[::1], Chunked1D(k=Runtime(...)))",
        "Region(f8[::1], Strided1D(offset=1, step=3))",
        "Region(f8[::1], Segments(offsets=...)), Region(f8[::1], Permuted(indices=...))",
        "Region(f8[:, ::1], Tiles2D(h=4, w=5))",
        "Region(f8[::1], Chunked1D(k=8).then(Reverse1D()))",
        "Region(f8[::1], EveryOther(first=1))",
        'Accumulator(i8[::1], "+"), Accumulator(f8[::1], "max")',
        "(f8, (f8[::1], i8), (), (None,))",
        "Pair(scale=f8, rows=f8[::1])",
        "",
    ],
)
def test_what_is_shown_can_be_written(text):
    shown = shown_signature(types_of(example_arguments(text, NAMES)))
    assert shown.replace("k=Runtime", "Runtime").replace("k=", "") == text.replace("k=Runtime", "Runtime").replace("k=", "")


@pytest.mark.parametrize(
    "text, shown",
    [
        ("float64, int32, bool_, complex128", "f8, i4, bool, c16"),
        ("b1, float, int, uint8[:]", "bool, f8, i8, u1[:]"),
        ("ROW[::1]", "{id: i2, pos: (f4, (3,)), when: M8[s]}[::1]"),
        ("Region(f8[::1], Chunked1D(8).then(reverse()))", "Region(f8[::1], Chunked1D(k=8).then(Reverse1D()))"),
        ("Region(f8[::1], Segments([0, 1]))", "Region(f8[::1], Segments(offsets=...))"),
        ("Pair(f8, rows=ROW[:]),", None),
        ("Region(f8[:, ::1], Linear2D()),\n  f8", "Region(f8[:, ::1]), f8"),
        ('"M8[ns]"', None),
    ],
)
def test_other_ways_to_write_types(text, shown):
    try:
        found = shown_signature(types_of(example_arguments(text, NAMES)))
    except BundleError:
        assert shown is None and text.startswith('"')
        return
    assert shown is None or found == shown


@pytest.mark.parametrize("name", kept.calls())
def test_every_kind_of_call_can_be_shown(name):
    _, args = kept.calls()[name]
    shown = shown_signature(types_of(args))
    assert "\n" not in shown and "<" not in shown


def test_layouts_are_those_of_the_arrays():
    for array, axes in [
        (np.ones((3, 4)), ":, ::1"),
        (np.ones((3, 4))[:, :2], "::, ::1"),
        (np.ones((3, 4)).T, ":, :"),
        (np.ones(4)[::-1], ":"),
    ]:
        assert shown_signature(types_of([array])) == f"f8[{axes}]"


def test_numbers_of_python_and_numpy_are_the_same():
    one = types_of([1.0, True, 2, 1j, 2**63])
    assert types_of([np.float64(1), np.bool_(True), np.int64(2), np.complex128(1j), np.uint64(2**63)]) == one
    assert types_of([np.float32(1), np.uint8(1), np.int32(2)]) != one[:3]


@pytest.mark.parametrize(
    "text, told",
    [
        ("f8, f9[:]", "'f9': neither NumPy's name"),
        ("f8 f8", "no list of types"),
        ("f8)(", "no list of types"),
        ("x=f8", "no list of types"),
        ("f8[1]", "'1': an axis is written as"),
        ("f8[0:3]", "an axis is written as"),
        ("f8[::2]", "an axis is written as"),
        ("f8[::1, :]", "an array is written as"),
        ("f8[::1, ::1]", "an array is written as"),
        ("f8[:, ::, ::1]", "an array is written as"),
        ("Region()", "'Region.*: takes 1 to 2 arguments"),
        ("Region(array=f8[:])", "takes 1 to 2 arguments"),
        ("Region(f8)", "'f8': expected an array's type"),
        ("Region(f8[:], 8)", "'8': expected a strategy"),
        ("Region(f8[:], Chunked1D)", "expected a strategy"),
        ("Region(f8[:], Chunked1D(0))", "Chunked1D"),
        ("Region(f8[:], Chunked1D())", "k"),
        ("Region(f8[:], enumerate_launch(1))", "expected a strategy"),
        ("Region(f8[:], Linear2D())", "2 axes"),
        ("Region(f8[:], Chunked1D(8).count(1))", "expected a strategy"),
        ("Region(f8[:], Chunked1D(__import__('os')))", "expected a strategy"),
        ("Region(f8[:, :, :, :])", "no default partition"),
        ('Accumulator(f8[:], "*")', "the operation is one of"),
        ("Accumulator(f8[:], other)", "other|malformed"),
        ("Pair(f8)", "rows"),
        ("other(f8)", "expected Region, Accumulator"),
        ("other", "'other': neither"),
        ("ROW", "a row has no form as an argument"),
        ("zzz[::1]", "'zzz': neither"),
        ("f8[:][:]", "neither NumPy's name"),
        ("8", "'8': neither NumPy's name"),
        ("f8.T", "neither NumPy's name"),
        ("M8[zz]", "zz"),
        ("(" * 200 + ")" * 200, "no list of types|signature"),
    ],
)
def test_what_is_no_type_is_refused(text, told):
    with pytest.raises(BundleError, match=told):
        example_arguments(text, NAMES)
