"""Data that is no record or image is refused with one kind of error, wherever it is wrong."""

from __future__ import annotations

import contextlib
import copy
import json

import kept
import pytest

from numba_offload import use_target
from numba_offload.errors import BundleError
from numba_offload.record_data import record_from_data, record_to_data
from numba_offload.specialisation import loaded
from numba_offload.targets.image_data import image_from_data, image_to_data

JUNK = (None, True, -1, 10**30, 1.5, "", "\udc00", [], ["x"], {}, {"x": 1}, [[]], [None] * 5)


def places(data, path=()):
    """The path to every value inside plain data."""
    yield path
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield from places(value, (*path, key))


def changed(data, path, value):
    if not path:
        return value
    made = copy.deepcopy(data)
    inner = made
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return made


def removed(data, path):
    made = copy.deepcopy(data)
    inner = made
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return made


def read_or_refuse(read, write, data):
    """Whatever is read must be what was written."""
    try:
        made = read(data)
    except BundleError as error:
        assert len(str(error)) < 1000
        return False
    assert json.loads(json.dumps(write(made))) is not None
    return True


@pytest.mark.parametrize("name", ["blur", "mixed", "shared", "permuted", "united", "captured"])
def test_every_part_of_a_record_is_checked(name):
    kernel, args = kept.calls()[name]
    data = record_to_data(kernel._prepare(args, {})[1].record)
    refused = 0
    for path in places(data):
        for junk in JUNK:
            refused += not read_or_refuse(record_from_data, record_to_data, changed(data, path, junk))
        if path:
            refused += not read_or_refuse(record_from_data, record_to_data, removed(data, path))
    assert refused > 100


def image_of(kernel, args):
    """The code of a call on the CPU, which may fail."""
    with use_target("cpu"), contextlib.suppress(Exception):
        kernel(*args)
    return next(iter(kernel._prepare(args, {})[1].code.values())).image


CALLS = {"blur": kept.calls()["blur"], **kept.failing_calls()}


@pytest.mark.parametrize("name", CALLS)
def test_every_part_of_an_image_is_checked(name):
    image = image_of(*CALLS[name])
    data = image_to_data(image)

    def read(data):
        return image_from_data(data, image.data)

    refused = 0
    for path in places(data):
        for junk in JUNK:
            refused += not read_or_refuse(read, image_to_data, changed(data, path, junk))
        if path:
            refused += not read_or_refuse(read, image_to_data, removed(data, path))
    assert refused > 50
    assert read(json.loads(json.dumps(data))) == image


def test_an_image_without_code_is_refused():
    image = image_of(*kept.calls()["axpy"])
    with pytest.raises(BundleError, match="no code"):
        image_from_data(image_to_data(image), b"")


@pytest.mark.parametrize("form", ["format", "another kind"])
def test_other_formats_are_refused(form):
    kernel, args = kept.calls()["axpy"]
    data = record_to_data(kernel._prepare(args, {})[1].record)
    if form == "format":
        with pytest.raises(BundleError, match="the format of a record is 2; expected one of 1"):
            record_from_data({**data, "format": 2})
    else:
        with pytest.raises(BundleError, match="expected a dictionary with the keys"):
            record_from_data([data])


def test_expressions_refer_to_what_was_read_before_them():
    kernel, args = kept.calls()["axpy"]
    data = record_to_data(kernel._prepare(args, {})[1].record)
    for nodes in ([["+", 0, 0]], [["const", 1], ["-", 0, 1]], [["const", 1]] + [["+", k, k] for k in range(1000)]):
        with pytest.raises(BundleError, match="nodes"):
            record_from_data({**data, "nodes": nodes, "accesses": [], "facts": []})


def test_a_record_of_another_call_is_refused():
    kernel, args = kept.calls()["axpy"]
    other, other_args = kept.calls()["strided"]
    record = kernel._prepare(args, {})[1].record
    assert other is kernel
    for wrong in (kept.calls()["permuted"], (other, other_args)):
        key = wrong[0]._prepare(wrong[1], {})[0].key
        with pytest.raises(BundleError, match="'axpy': its record is of a call with other arguments"):
            loaded(record, key, kept.Kept([]))
