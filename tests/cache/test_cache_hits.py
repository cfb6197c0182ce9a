"""What is on disk launches without being typed or compiled, and means the same."""

from __future__ import annotations

import numpy as np
import pytest
from cached_kernels import HIT, MISS, again, counts, nothing_compiles
from records import kept

from numba_offload import Region, offload_kernel
from numba_offload.launch_facts import MAX_VARIANTS

CALLS = [("unified", name) for name in kept.calls() if name != "empty"]
CALLS += [("discrete", name) for name in ("axpy", "own", "captured", "records")]


@pytest.mark.parametrize("memory, name", CALLS)
def test_what_was_kept_computes_the_same(memory, name, folder, cpu, monkeypatch):
    monkeypatch.setenv("NUMBA_OFFLOAD_CPU_MEMORY", memory)
    kernel, args = kept.calls()[name]
    copies = kept.copied(args)
    first, second = again(kernel), again(kernel)
    first(*args)
    nothing_compiles(monkeypatch)
    second(*copies)
    for expected, actual in zip(kept.arrays_of(args), kept.arrays_of(copies), strict=True):
        np.testing.assert_array_equal(actual, expected, strict=True)
    assert counts(second) == ((1, 0, 2, 0) if name == "own" else HIT)  # and what checks the strategy
    assert second.mappings(*copies) == first.mappings(*args)
    assert second.explain(*copies) == first.explain(*args)


@pytest.mark.parametrize("memory", ["unified", "discrete"])
@pytest.mark.parametrize("name", kept.failing_calls())
def test_what_was_kept_fails_with_the_same_words(name, memory, folder, cpu, monkeypatch):
    monkeypatch.setenv("NUMBA_OFFLOAD_CPU_MEMORY", memory)
    kernel, args = kept.failing_calls()[name]
    copies = kept.copied(args)
    first, second = again(kernel), again(kernel)
    with pytest.raises(Exception) as expected:
        first(*args)
    nothing_compiles(monkeypatch)
    with pytest.raises(Exception) as actual:
        second(*copies)
    assert counts(second) == HIT
    assert type(actual.value) is type(expected.value)
    assert str(actual.value) == str(expected.value)
    assert actual.value.args == expected.value.args


def test_both_memory_models_share_code(folder, cpu, monkeypatch):
    first, second = again(kept.axpy), again(kept.axpy)
    for kernel, model in ((first, "unified"), (second, "discrete")):
        monkeypatch.setenv("NUMBA_OFFLOAD_CPU_MEMORY", model)
        _, args = kept.calls()["axpy"]
        kernel(*args)
    assert (counts(first), counts(second)) == (MISS, HIT)


def test_captured_arrays_are_read_at_each_launch(folder, cpu, monkeypatch):
    y = np.zeros(20)
    again(kept.captured)(Region(y))
    nothing_compiles(monkeypatch)
    second = again(kept.captured)
    for table in (np.ones(16), np.full(16, 2.0)):
        monkeypatch.setattr(kept, "TABLE", table)
        second(Region(y))
        np.testing.assert_array_equal(y, table[0] * kept.LIMIT)
    assert counts(second) == HIT


def test_another_kind_of_captured_array_is_another_specialisation(folder, cpu, monkeypatch):
    y = np.zeros(20)
    again(kept.captured)(Region(y))
    monkeypatch.setattr(kept, "TABLE", np.arange(16))
    second = again(kept.captured)
    second(Region(y))
    assert counts(second) == MISS
    assert y[3] == 9


def test_values_that_change_in_a_process_bring_their_own_code(folder, cpu, monkeypatch):
    def results(kernel):
        found = []
        for limit in (2, 5, 2):
            monkeypatch.setattr(kept, "LIMIT", limit)
            y = np.zeros(2)
            kernel(Region(y))
            found.append(y[1])
        return found

    first = again(kept.captured)
    assert results(first) == [2, 5, 2]
    assert counts(first) == (0, 2, 0, 2)
    nothing_compiles(monkeypatch)
    second = again(kept.captured)
    assert results(second) == [2, 5, 2]
    assert counts(second) == (2, 0, 2, 0)


def test_a_new_variant_joins_those_on_disk(folder, cpu):
    x, y = np.arange(kept.N + 5.0), np.zeros(kept.N)
    again(kept.shifted)(x, 5, Region(y))
    second = again(kept.shifted)
    with pytest.raises(IndexError):
        second(x, 6, Region(y))
    assert counts(second) == (1, 0, 0, 1)
    third = again(kept.shifted)
    with pytest.raises(IndexError):
        third(x, 6, Region(y))
    third(x, 5, Region(y))
    assert counts(third) == (1, 0, 2, 0)
    assert len(list(folder.glob("*.code"))) == 2
    assert len(list(folder.glob("*.record"))) == 1


@offload_kernel
def several(a, b, c, x, y):
    for i in y.indices():
        y[i] = x[i + a] + x[i + b] + x[i + c]


def test_the_best_variant_is_taken_once_there_are_many(folder, cpu, monkeypatch):
    n = 8
    x, y = np.arange(10.0), np.zeros(n)
    out = 100
    calls = [(0, 0, 0), (out, 0, 0), (0, out, 0), (0, out, out), (out, 0, out), (out, out, out)]
    assert len(calls) == MAX_VARIANTS
    for call in calls:
        kernel = again(several)
        try:
            kernel(*call, x, Region(y))
        except IndexError:
            assert call != calls[0]
    assert len(list(folder.glob("*.code"))) == MAX_VARIANTS
    nothing_compiles(monkeypatch)
    kernel = again(several)
    with pytest.raises(IndexError):
        kernel(0, 0, out, x, Region(y))
    assert counts(kernel) == HIT
    # One of the two that do without one check; not the one without any check, nor the one with all of them.
    ((code,),) = (made.code.values() for made in kernel._specialisations.values())
    (checked,) = (made.record.facts - code.image.assumed for made in kernel._specialisations.values())
    assert len(checked) == 2


def test_without_cache_nothing_is_looked_for(folder, cpu):
    plain = offload_kernel(several.py_func)
    plain(0, 0, 0, np.arange(10.0), Region(np.zeros(8)))
    assert counts(plain) == (0, 0, 0, 0)
    assert not folder.exists()
