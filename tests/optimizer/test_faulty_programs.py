"""Random host programs on a device of which one allocation or copy fails: they end as plain Python would with an error there."""

from __future__ import annotations

import ast
import re
from typing import Any

import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

from numba_offload import optimize_transfers, use_target
from numba_offload.errors import DeviceMemoryError, TargetError
from numba_offload.mapping import early
from numba_offload.targets.registry import current_target

from .faults import METHODS, Faults, assert_nothing_left
from .programs import programs
from .test_soundness import EXAMPLES, _made, _many, _outcome
from .world import KERNELS, NUMPY_KERNELS, named


class _Marker(ast.NodeTransformer):
    """``marks.append(0)`` before each statement of a function, and at the end of each loop's body."""

    def marked(self, function: ast.FunctionDef) -> None:
        function.body = self._block(function.body)

    def _block(self, body: list[ast.stmt], loop: bool = False) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for statement in body:
            if not isinstance(statement, ast.Global | ast.Nonlocal):
                out.append(_mark())
            out.append(self.visit(statement))
        return [*out, _mark()] if loop and not isinstance(body[-1], ast.Return | ast.Raise | ast.Break) else out

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        return node

    def generic_visit(self, node: ast.AST) -> Any:
        for field in ("body", "orelse", "finalbody"):
            if isinstance(node, ast.stmt | ast.match_case | ast.ExceptHandler) and getattr(node, field, None):
                setattr(node, field, self._block(getattr(node, field), field == "body" and isinstance(node, ast.For | ast.While)))
        for inner in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            self.visit(inner)
        return node


def _mark() -> ast.stmt:
    return ast.parse("marks.append(0)").body[0]


def _marked(source: str) -> str:
    tree = ast.parse(source)
    (function,) = tree.body
    assert isinstance(function, ast.FunctionDef)
    _Marker().marked(function)
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


class _Stop(list):
    """The model's marks: the error comes where the program had its own."""

    def __init__(self, limit: int, error: type[Exception]) -> None:
        self.limit = limit
        self.error = error

    def append(self, value: Any) -> None:
        super().append(value)
        if len(self) == self.limit:
            raise self.error("injected")


def _noting(generator: Any, errors: list[BaseException]) -> Any:
    try:
        yield from generator
    except Exception as error:
        errors.append(error)
        raise


def _check(source: str, kind: str, at: int) -> None:
    source = _marked(source)
    marks: list[int] = []
    function = optimize_transfers(_made(source, {**named(KERNELS), "marks": marks}))
    assume(function.reason is None)
    _outcome(function)  # what it tells of early copies
    marks.clear()

    class Injected(Exception):
        def __init__(self, text: str) -> None:
            super().__init__(text)
            reached.append(len(marks))

    reached: list[int] = []
    errors: list[BaseException] = []

    def program(w: Any) -> Any:
        try:
            result = function(w)
        except Exception as error:
            errors.append(error)
            raise
        return _noting(result, errors) if hasattr(result, "send") else result

    faults = Faults(kind, at, error=Injected)
    faults.until = faults.at + (2 if kind in ("allocation", "back") else 1)
    present = current_target().device.present
    forget, lost = present.forget, []

    def forgetting(wanted: Any) -> Any:
        found = forget(wanted)
        lost.extend(found)
        return found

    with faults.armed(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(present, "forget", forgetting)
        got = _outcome(program)
    assert_nothing_left()
    error = DeviceMemoryError if kind == "allocation" else TargetError

    def model(limit: int) -> list[Any]:
        names = {**named(NUMPY_KERNELS, lambda array: array), "marks": _Stop(limit, error)}
        return _outcome(_made(source, names))

    plain = repr(model(-1))
    if not reached or repr(got) == plain:
        event("no fault" if not reached else "no error")
        assert repr(got) == plain
    elif lost:
        event("a loss")
        told = [*map(str, errors), *map(str, got)]
        assert any(re.search(r"copying '.*back from the device failed: injected.*is lost|TargetError", text) for text in told)
    else:
        event("an error")
        assert repr(got) == repr(model(reached[-1]))


@_many(EXAMPLES)
@given(programs(), st.sampled_from(sorted(METHODS)), st.integers(0, 6))
def test_programs_on_a_device_that_fails_once(source, kind, at):
    assume("continue" not in source)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMBA_OFFLOAD_CPU_MEMORY", "discrete")
        patch.setattr(early, "LEAST_BYTES", 1)
        with use_target("cpu"):
            _check(source, kind, at)
