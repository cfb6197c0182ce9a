"""Random host programs mean the same as they stand, with their transfers optimised, and in plain NumPy."""

from __future__ import annotations

import itertools
import linecache
import os
import warnings
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings

from numba_offload import optimize_transfers, use_target
from numba_offload.mapping import early
from numba_offload.targets.registry import current_target

from .programs import programs
from .world import KERNELS, NUMPY_KERNELS, named, world

EXAMPLES = int(os.environ.get("NUMBA_OFFLOAD_PROGRAMS", "300"))
"""Thousands for a long test."""
_numbers = itertools.count()


def _made(source: str, names: dict[str, Any]) -> Any:
    filename = f"<program {next(_numbers)}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    namespace = dict(names)
    exec(compile(source, filename, "exec"), namespace)
    return namespace["program"]


def _outcome(program: Any) -> list[Any]:
    """Everything that can be seen of a run: what it noted, returned or raised, what is written where."""
    w = world()
    seen: list[Any] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = program(w)
            if hasattr(result, "send"):
                # Between two steps of a generator its caller uses the arrays.
                for step in result:
                    seen += [step, w.peek()]
                    w.poke()
            else:
                seen.append(result)
        except Exception as error:
            seen.append(type(error).__name__)
            if isinstance(error, ValueError):
                seen.append("beyond the limit" in str(error))
    arrays = (w.a, w.b, w.c, w.big, w.m, w.number, w.ns.f, w.box[0], w.table["x"], NAMES["captured"])
    return [*seen, w.out, w.sink.getvalue(), *(array.tolist() for array in arrays)]


NAMES = named(KERNELS)


@pytest.fixture(autouse=True)
def early_copies_of_small_arrays(monkeypatch):
    monkeypatch.setattr(early, "LEAST_BYTES", 1)


def _check(source: str) -> None:
    plain = _outcome(_made(source, named(NUMPY_KERNELS, lambda array: array)))
    naive = _outcome(_made(source, NAMES))
    assert repr(naive) == repr(plain)
    function = _made(source, NAMES)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        optimised = optimize_transfers(function)
    event("left as it is" if warned else "optimised")
    # What the first call finds out lets copies of the second begin early.
    assert repr(_outcome(optimised)) == repr(plain)
    assert repr(_outcome(optimised)) == repr(plain)
    device = current_target().device
    assert not device.present.residents
    assert device.pool.bytes_in_use == 0


def _many(count: int) -> settings:
    return settings(max_examples=count, deadline=None, suppress_health_check=list(HealthCheck))


@_many(EXAMPLES)
@given(programs())
def test_optimised_programs_mean_the_same(source):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMBA_OFFLOAD_CPU_MEMORY", "discrete")
        with use_target("cpu"):
            _check(source)


@pytest.mark.cuda
@_many(EXAMPLES)
@given(programs())
def test_optimised_programs_mean_the_same_on_an_nvidia_gpu(source):
    with use_target("cuda"):
        _check(source)
