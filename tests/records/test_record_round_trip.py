"""A specialisation and its code, written as text and read again, launch as the ones they were made from."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import kept
import numpy as np
import pytest

from numba_offload import TargetError, use_target
from numba_offload.analysis.affine import Expression
from numba_offload.execution import execute
from numba_offload.explanation import explanation, mappings
from numba_offload.failures import failure
from numba_offload.record_data import record_from_data, record_to_data
from numba_offload.targets.base import ErrorReport
from numba_offload.targets.image_data import image_from_data, image_to_data
from numba_offload.targets.sites import LostException, Payload, RaiseSite
from numba_offload.targets.toolchain import Toolchain


@pytest.fixture(params=["unified", "discrete"], autouse=True)
def cpu(request, monkeypatch):
    monkeypatch.setenv("NUMBA_OFFLOAD_CPU_MEMORY", request.param)
    with use_target("cpu"):
        yield


def nothing_compiles(monkeypatch):
    def compile_function(self, *args):
        raise AssertionError(f"{args[0].__name__} is compiled")

    monkeypatch.setattr(Toolchain, "compile_function", compile_function)


@pytest.mark.parametrize("name", kept.calls())
def test_what_was_loaded_computes_the_same(name, monkeypatch):
    kernel, args = kept.calls()[name]
    again = kept.copied(args)
    kernel(*args)
    arguments, made = kernel._prepare(again, {})
    read = kept.through_text(made, arguments.key)
    nothing_compiles(monkeypatch)
    execute(None, arguments, read)
    for expected, actual in zip(kept.arrays_of(args), kept.arrays_of(again), strict=True):
        np.testing.assert_array_equal(actual, expected, strict=True)
    assert mappings(arguments, read) == kernel.mappings(*again)
    assert explanation(arguments, read) == kernel.explain(*again)
    assert read.record == made.record


@pytest.mark.parametrize("name", kept.failing_calls())
def test_what_was_loaded_fails_with_the_same_words(name, monkeypatch):
    kernel, args = kept.failing_calls()[name]
    again = kept.copied(args)
    with pytest.raises(Exception) as expected:
        kernel(*args)
    arguments, made = kernel._prepare(again, {})
    read = kept.through_text(made, arguments.key)
    nothing_compiles(monkeypatch)
    with pytest.raises(Exception) as actual:
        execute(None, arguments, read)
    assert type(actual.value) is type(expected.value)
    assert str(actual.value) == str(expected.value)
    assert actual.value.args == expected.value.args
    for one, other in zip(kept.arrays_of(args), kept.arrays_of(again), strict=True):
        np.testing.assert_array_equal(one, other)


def test_variants_are_chosen_by_what_the_host_settles():
    n = 64
    variants = {}
    for shift in (0, 5):
        x, y = np.arange(n + 4.0), kept.Region(np.zeros(n))
        if shift == 0:
            kept.shifted(x, shift, y)
        else:
            with pytest.raises(IndexError):
                kept.shifted(x, shift, y)
        arguments, made = kept.shifted._prepare((x, shift, y), {})
        read = kept.through_text(made, arguments.key)
        if shift == 0:
            variants[shift] = execute(None, arguments, read).code.image
        else:
            with pytest.raises(IndexError):
                execute(None, arguments, read)
            (code,) = read.code.values()
            variants[shift] = code.image
    assert variants[5].assumed < variants[0].assumed <= made.record.facts
    assert variants[5].may_fail and not variants[0].may_fail


def test_no_code_and_no_source_is_told():
    kernel, args = kept.calls()["axpy"]
    arguments, made = kernel._prepare(args, {})
    read = kept.through_text(made, arguments.key)
    read.images.images.clear()
    with pytest.raises(TargetError, match="'axpy': there is no code for cpu"):
        execute(None, arguments, read)


def test_code_that_assumes_more_than_was_settled_is_refused():
    kernel, args = kept.calls()["axpy"]
    kernel(*args)
    arguments, made = kernel._prepare(args, {})
    read = kept.through_text(made, arguments.key)
    read.images.find = lambda target, settled: read.images.images[0]
    assert read.images.images[0].assumed
    with pytest.raises(TargetError, match="assumes what this launch has not settled"):
        read.compiled(SimpleNamespace(name="cpu", arch="host"), frozenset())


def test_all_that_may_be_settled_can_be_assumed_at_once():
    for kernel, args in kept.calls().values():
        _, made = kernel._prepare(args, {})
        with_all = {code.image.assumed for code in made.code.values()}
        assert all(assumed <= made.record.facts for assumed in with_all)


def test_an_exception_that_cannot_be_imported_is_told_by_name():
    class Local(Exception):
        pass

    kernel, args = kept.calls()["axpy"]
    kernel(*args)
    image = next(iter(kernel._prepare(args, {})[1].code.values())).image
    sites = {7: RaiseSite(Local, ("bad", Payload(0, "i"), 1.5))}
    data = image_to_data(replace(image, sites=sites))
    read = image_from_data(json.loads(json.dumps(data)), image.data)
    assert isinstance(read.sites[7].exception, LostException)
    assert image_to_data(read) == data
    error = failure("k", ErrorReport(7, 0, (42, 0, 0), (0, 0, 0), (1, 1, 1)), read.sites)
    assert "Local('bad', 42, 1.5) was raised [kernel k, thread (0, 0, 0), block (0, 0, 0)]" in str(error)


def test_a_part_that_many_expressions_share_is_written_once():
    kernel, args = kept.calls()["axpy"]
    record = kernel._prepare(args, {})[1].record
    node = Expression("owned", ("y", 0))
    for _ in range(60):
        node = Expression("+", (node, node))
    access = replace(record.accesses[0], indices=(node,))
    data = record_to_data(replace(record, accesses=(access, *record.accesses[1:])))
    assert len(data["nodes"]) < 100
    assert len(record_from_data(data).accesses) == len(record.accesses)
