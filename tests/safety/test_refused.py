"""Kernels that must not compile: each with its error, and with the argument, the line and the fix that it must name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
from refused_kernels import TABLE, Refused

from numba_offload import SafetyError, offload_kernel


def marked_line(function: Callable[..., Any]) -> int:
    lines, first = inspect.getsourcelines(function)
    marked = [first + k for k, text in enumerate(lines) if text.rstrip().endswith("# <- here")]
    assert len(marked) == 1, f"{function.__name__} has {len(marked)} marked lines"
    return marked[0]


@pytest.mark.parametrize("case", TABLE, ids=lambda case: case.function.__name__)
def test_is_refused_with_argument_line_and_fix(case: Refused) -> None:
    with pytest.raises(SafetyError) as caught:
        offload_kernel(case.function)(*case.arguments())
    text = str(caught.value)
    assert f"{inspect.getsourcefile(case.marked_in)}:{marked_line(case.marked_in)}" in text
    assert "\nFix: " in text
    assert f"argument {case.named!r}" in text if case.named else "argument" not in text.splitlines()[0]
    assert case.says in text
    assert "Failed in" not in text, "Numba's own wording came through"
