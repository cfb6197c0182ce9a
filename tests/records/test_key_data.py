"""The key of a call as plain data: equal for equal keys, different for different ones, and the same after JSON."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import kept
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numba_offload import (
    Accumulator,
    Chunked1D,
    Linear1D,
    NotPlainError,
    PartitioningStrategy,
    Permuted,
    Region,
    Runtime,
    Segments,
    Strided1D,
    Tiles2D,
)
from numba_offload.arguments import Arguments, add_argument
from numba_offload.key_data import key_to_data
from partitioning.element_maps import reverse, roll

Pair = namedtuple("Pair", "a b")
Other = namedtuple("Other", "a b")


class Scaled(PartitioningStrategy):
    """Constants of every type."""

    ndim = 1

    def __init__(self, k):
        self.k = k

    def count(self, t, T, shape):
        return 1 if t < shape[0] else 0

    def index(self, t, k, T, shape):
        return t

    def threads(self, shape):
        return shape[0]


def key_of(value):
    out = Arguments()
    add_argument(out, "x", value)
    return out.key


def structs():
    plain = st.sampled_from(["?", "i1", "u2", "i4", "f4", "f8", "c8", "M8[s]", "m8[ns]"])
    names = st.lists(st.sampled_from("abcd"), min_size=1, max_size=3, unique=True)

    def build(inner):
        formats = st.one_of(inner, st.tuples(inner, st.sampled_from([(2,), (2, 3)])))
        fields = names.flatmap(lambda ns: st.tuples(st.just(ns), st.lists(formats, min_size=len(ns), max_size=len(ns))))
        return st.tuples(fields, st.booleans()).map(
            lambda drawn: np.dtype({"names": drawn[0][0], "formats": drawn[0][1]}, align=drawn[1])
        )

    return st.one_of(plain.map(np.dtype), build(plain), build(build(plain)))


def arrays():
    shapes = st.sampled_from([(), (3,), (2, 3), (2, 3, 4)])
    layout = st.sampled_from(["C", "F", "part"])

    def make(drawn):
        dtype, shape, how = drawn
        array = np.zeros(shape, dtype, order="F" if how == "F" else "C")
        return array[..., ::2] if how == "part" and shape else array

    return st.tuples(structs(), shapes, layout).map(make).filter(lambda a: a.flags.aligned)


PARTITIONS = [
    Linear1D(), Chunked1D(3), Chunked1D(4), Chunked1D(Runtime(3)), Chunked1D(Runtime(4)), Strided1D(1, 3), Strided1D(3, 1),
    Segments([0, 1, 3]), Permuted([2, 1, 0]), Linear1D().then(reverse()), Linear1D().then(roll(1)),
    Linear1D().then(roll(Runtime(2))), Scaled(1), Scaled(1.0), Scaled(True), Scaled(0.0), Scaled(-0.0), Scaled(0),
    Scaled(float("nan")), Scaled(float("inf")), Scaled(2**62), kept.EveryOther(1),
]  # fmt: skip


def arguments():
    numbers = st.sampled_from([
        1, 2**63, True, 1.0, 1j, None, np.float32(1), np.float64(1), np.int8(1), np.uint64(1), np.bool_(True), np.complex64(1),
        np.datetime64(1, "s"), np.datetime64(1, "ns"), np.timedelta64(1, "ns"), np.timedelta64(1, "s"),
    ])  # fmt: skip
    regions = st.sampled_from(PARTITIONS).map(lambda p: Region(np.zeros(3), p))
    others = st.sampled_from([
        Region(np.zeros((4, 4)), Tiles2D(2, 2)), Region(np.zeros((4, 4)), Tiles2D(2, 1)), Region(np.zeros((4, 4))),
        Accumulator(np.zeros(3), "+"), Accumulator(np.zeros(3), "max"), Accumulator(np.zeros(3, "i8"), "+"),
    ])  # fmt: skip
    leaves = st.one_of(numbers, arrays(), regions, others)
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3).map(tuple), st.tuples(inner, inner).map(lambda p: Pair(*p)),
            st.tuples(inner, inner).map(lambda p: Other(*p)),
        ),
        max_leaves=4,
    )  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(arguments(), arguments())
def test_descriptions_are_equal_exactly_where_keys_are(one, other):
    keys = key_of(one), key_of(other)
    data = [key_to_data(key) for key in keys]
    assert (data[0] == data[1]) == (keys[0] == keys[1])
    assert json.loads(json.dumps(data)) == data
    assert (json.dumps(data[0]) == json.dumps(data[1])) == (keys[0] == keys[1])


def test_every_two_partitions_are_told_apart():
    keys = [key_of(Region(np.zeros(3), p)) for p in PARTITIONS]
    for (k, one), (m, other) in itertools.combinations(enumerate(keys), 2):
        assert (one == other) == (json.dumps(key_to_data(one)) == json.dumps(key_to_data(other))), (PARTITIONS[k], PARTITIONS[m])
    same = [k for k, key in enumerate(keys) if keys.count(key) > 1]
    assert [repr(PARTITIONS[k]) for k in same] == ["Chunked1D(k=Runtime(3))", "Chunked1D(k=Runtime(4))"]


def test_offsets_and_sizes_of_records_count():
    formats = {"names": ["a", "b"], "formats": ["f4", "f4"]}
    dtypes = [
        np.dtype(formats),
        np.dtype({**formats, "offsets": [4, 0]}),
        np.dtype({**formats, "itemsize": 12}),
        np.dtype({**formats, "names": ["a", "c"]}),
        np.dtype({**formats, "formats": ["f4", "i4"]}),
        np.dtype(formats, align=True),
    ]
    texts = {json.dumps(key_to_data(key_of(np.zeros(2, dtype)))) for dtype in dtypes}
    assert len(texts) == len(dtypes)


def made_in(folder: Path, body: str, value: int = 2) -> str:
    """The description of a Region with a strategy whose source is given, as another process tells it."""
    (folder / "theirs.py").write_text(
        "from numba_offload import PartitioningStrategy, offload_function\n"
        f"VALUE = {value}\n"
        "@offload_function\n"
        "def helper(t):\n    return t * VALUE\n"
        "class Theirs(PartitioningStrategy):\n"
        "    ndim = 1\n    covers = False\n    once = 1\n"
        "    def threads(self, shape):\n        return shape[0]\n"
        "    def count(self, t, T, shape):\n        return 1 if helper(t) < shape[0] else 0\n" + body
    )
    script = (
        "import json, numpy as np\n"
        "from theirs import Theirs\n"
        "from numba_offload import Region\n"
        "from numba_offload.arguments import Arguments, add_argument\n"
        "from numba_offload.key_data import key_to_data\n"
        "out = Arguments(); add_argument(out, 'x', Region(np.zeros(9), Theirs()))\n"
        "print(json.dumps(key_to_data(out.key)))\n"
    )
    ran = subprocess.run([sys.executable, "-B", "-c", script], cwd=folder, capture_output=True, text=True, check=True,
                         env={"PYTHONPATH": f"{folder}:{Path(__file__).parents[2]}", "PYTHONHASHSEED": "random"})  # fmt: skip
    return ran.stdout


INDEX = "    def index(self, t, k, T, shape):\n        return helper(t) * self.once\n"


def test_another_version_of_a_strategy_is_another_strategy(tmp_path):
    first = made_in(tmp_path, INDEX)
    assert made_in(tmp_path, INDEX) == first
    assert made_in(tmp_path, "\n\n" + INDEX) == first
    assert made_in(tmp_path, INDEX, value=3) != first
    assert made_in(tmp_path, INDEX.replace("helper(t)", "t")) != first
    assert made_in(tmp_path, "    once = 2\n" + INDEX) != first
    assert made_in(tmp_path, INDEX + "    def unused(self):\n        return {}\n") == first


def test_what_has_no_form_is_named():
    thing = object()

    class Odd(Scaled):
        def index(self, t, k, T, shape):
            return t + thing

    with pytest.raises(NotPlainError, match="'thing' \\(of type object\\) has no form"):
        key_to_data(key_of(Region(np.zeros(3), Odd(1))))


def test_records_inside_of_another_alignment():
    """NumPy says that they are equal, but arrays of the one may lie where those of the other do not."""
    promised = np.dtype([("a", "u1"), ("b", "f8")], align=True)
    packed = np.dtype({"names": ["a", "b"], "formats": ["u1", "f8"], "offsets": [0, 8], "itemsize": 16})
    arrays = [
        np.zeros(2, np.dtype({"names": ["z", "r"], "formats": ["u1", inner], "offsets": [0, 8], "itemsize": 24}, align=True))
        for inner in (promised, packed)
    ]
    one, other = (key_of(array) for array in arrays)
    assert arrays[0].dtype == arrays[1].dtype and arrays[1].dtype.isalignedstruct
    assert one != other and key_to_data(one) != key_to_data(other)
