"""How each argument of small kernels is mapped, and that `explain` says why with line numbers."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from intent_kernels import TABLE, Expected

from numba_offload import Accumulator, Region, offload_kernel
from numba_offload.targets.context import device_source


@pytest.mark.parametrize("case", TABLE, ids=lambda case: case.function.__name__)
def test_maps(case: Expected) -> None:
    assert case.maps == offload_kernel(case.function).mappings(*case.arguments()), case.why


@pytest.mark.parametrize("case", TABLE, ids=lambda case: case.function.__name__)
def test_explanation_names_lines_of_this_file(case: Expected) -> None:
    kernel = offload_kernel(case.function)
    text = kernel.explain(*case.arguments())
    lines, first = inspect.getsourcelines(case.function)
    for name, how in case.maps.items():
        assert f"  {name}: {how}" in text
    accessed = [how for how in case.maps.values() if how not in ("none", "literal")]
    assert text.count("line ") >= len(accessed)
    called = [case.function.__globals__.get(name) for name in case.function.__code__.co_names]
    if not any(device_source(value) is not None for value in called):
        mentioned = [int(part.split(":")[0].split(" ")[0]) for part in text.split("line ")[1:]]
        assert all(first <= line < first + len(lines) for line in mentioned), text


@pytest.mark.parametrize("case", TABLE, ids=lambda case: case.function.__name__)
def test_separate_memory_gives_what_shared_memory_gives(case: Expected, monkeypatch: pytest.MonkeyPatch) -> None:
    """Device buffers start out poisoned, so a `from` or `none` that should have been more shows in the result."""
    kernel = offload_kernel(case.function)
    results = []
    for model in ("unified", "discrete"):
        monkeypatch.setenv("NUMBA_OFFLOAD_CPU_MEMORY", model)
        arguments = case.arguments()
        kernel(*arguments)
        results.append([a.tobytes() for a in arrays_in(arguments)])
    assert results[0] == results[1]


def arrays_in(values: Any) -> list[np.ndarray]:
    if isinstance(values, np.ndarray):
        return [values]
    if isinstance(values, Region | Accumulator):
        return [np.asarray(values.array)]
    return [a for v in values for a in arrays_in(v)] if isinstance(values, tuple) else []
