"""Where a copy can begin before it is waited for, as a function's text shows it.

Hints decide nothing about correctness: a copy that has begun is waited for by whoever uses the array, and if nobody does it
was in vain. So they look at names alone, within one list of statements.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

_WRITERS = ("Region", "Accumulator")
_READING_BUILTINS = {"abs", "float", "int", "list", "max", "min", "print", "repr", "str", "sum"}
_FILLING_METHODS = {"fill", "sort", "partition", "put"}


@dataclass(frozen=True)
class Hint:
    """After the statement at ``position`` a name's array can go: ``"back"``, or ``"over"``."""

    position: int
    way: str
    name: str
    next: Any
    """The statement that uses it next; None: the function ends."""
    certain: bool
    """The name is bound."""


def hints(statements: Sequence[Any], whole_function: bool) -> list[Hint]:
    """The hints for a list of statements; ``whole_function``: nothing of the function comes after it."""
    mentions = [{n.id for n in ast.walk(s) if isinstance(n, ast.Name)} for s in statements]

    def following(name: str, after: int) -> int | None:
        return next((k for k in range(after + 1, len(statements)) if name in mentions[k]), None)

    found = []
    for position, statement in enumerate(statements):
        simple = isinstance(statement, ast.Expr | ast.Assign | ast.AugAssign)
        for name in sorted(_written_by_launches(statement)):
            if not simple and _binds(statement, name):
                continue
            later = following(name, position)
            if later is None:
                if whole_function and position + 1 < len(statements):
                    found.append(Hint(position, "back", name, None, simple))
            elif later > position + 1 and _host_reads(statements[later], name):
                found.append(Hint(position, "back", name, statements[later], simple))
        for name in sorted(_finished(statement)):
            later = following(name, position)
            if later is not None and later > position + 1 and _may_launch_with(statements[later], name):
                found.append(Hint(position, "over", name, statements[later], True))
    return found


def _calls(node: Any) -> Iterator[ast.Call]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            return
        if isinstance(inner, ast.Call):
            yield inner


def _array_of(call: ast.Call) -> str | None:
    """The name of the array in ``Region(name, ...)``."""
    function = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if function in _WRITERS and call.args and isinstance(call.args[0], ast.Name):
        return call.args[0].id
    return None


def _written_by_launches(statement: Any) -> set[str]:
    inner = (_array_of(call) for outer in _calls(statement) for call in outer.args if isinstance(call, ast.Call))
    return {name for name in inner if name is not None}


def _binds(statement: Any, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name and not isinstance(n.ctx, ast.Load) for n in ast.walk(statement))


def _header(statement: Any) -> Any:
    """What of a statement is evaluated first, and surely."""
    if isinstance(statement, ast.If | ast.While):
        return statement.test
    if isinstance(statement, ast.For):
        return statement.iter
    simple = ast.Expr | ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Return | ast.Assert
    return statement if isinstance(statement, simple) else None


def _host_reads(statement: Any, name: str) -> bool:
    """Whether a statement reads an array's elements on the host, before anything else is done with it."""
    header = _header(statement)
    if header is None:
        return False
    seen = False
    for parent in ast.walk(header):
        for child in ast.iter_child_nodes(parent):
            if isinstance(child, ast.Name) and child.id == name:
                if not _reads(parent, child):
                    return False
                seen = True
    return seen


def _reads(parent: Any, name: ast.Name) -> bool:
    if not isinstance(name.ctx, ast.Load):
        return False
    if isinstance(parent, ast.Call):
        function = parent.func
        if isinstance(function, ast.Attribute):
            return isinstance(function.value, ast.Name) and function.value.id in ("np", "numpy")
        return isinstance(function, ast.Name) and function.id in _READING_BUILTINS
    if isinstance(parent, ast.Subscript):
        return parent.value is name and isinstance(parent.ctx, ast.Load)
    return isinstance(parent, ast.Attribute | ast.BinOp | ast.Compare | ast.FormattedValue | ast.Return)


def _finished(statement: Any) -> set[str]:
    """Names whose arrays have got their content by a statement."""
    found = set()
    if isinstance(statement, ast.Assign | ast.AugAssign | ast.AnnAssign):
        targets: list[Any] = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for target in targets:
            base = target.value if isinstance(target, ast.Subscript) else target
            if isinstance(base, ast.Name):
                found.add(base.id)
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        if isinstance(call.func, ast.Attribute):
            if call.func.attr in _FILLING_METHODS and isinstance(call.func.value, ast.Name):
                found.add(call.func.value.id)
            if call.func.attr == "copyto" and call.args and isinstance(call.args[0], ast.Name):
                found.add(call.args[0].id)
    return found


def _may_launch_with(statement: Any, name: str) -> bool:
    """Whether a statement has a call that takes an array as it is, or in a Region: a launch, perhaps."""
    if not isinstance(statement, ast.Expr | ast.For | ast.While | ast.With):
        return False
    for call in _calls(statement):
        for argument in call.args:
            if isinstance(argument, ast.Name) and argument.id == name:
                return True
            if isinstance(argument, ast.Call) and _array_of(argument) == name:
                return True
    return False
