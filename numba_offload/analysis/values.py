"""Whether what is assigned fits where it is assigned, told before code is generated."""

from __future__ import annotations

from typing import Any

from numba.core import ir, types

from numba_offload.analysis.walk import Body, reachable
from numba_offload.device.records import field_type
from numba_offload.device.types import RecordRefType, ViewType, describe_leaves
from numba_offload.diagnostics.explain_indexing import explain_assignment, explain_value, fits
from numba_offload.diagnostics.refusals import refusal
from numba_offload.targets.pipeline import TypedFunction


def check_values(root: TypedFunction, typed_functions: dict[Any, TypedFunction], typingctx: Any) -> None:
    """Raise SafetyError at the first assignment of a value that its place cannot hold."""
    for body in reachable(root, typed_functions):
        for _, stmt in body.statements():
            found = _fault(body, stmt, typingctx)
            if found is not None:
                raise refusal(body.typed.py_func.__name__, stmt.loc.filename, stmt.loc.line, *found)


def _fault(body: Body, stmt: Any, typingctx: Any) -> tuple[str, str, str] | None:
    """Argument, problem and fix."""
    if isinstance(stmt, ir.SetItem | ir.StaticSetItem):
        target, value = body.type_of(stmt.target), body.type_of(stmt.value)
        if isinstance(target, RecordRefType):
            name = stmt.index if isinstance(stmt, ir.StaticSetItem) else None
            return _field(target, name, value, typingctx)
        if not isinstance(target, ViewType):
            return None
        index = stmt.index if isinstance(stmt.index, ir.Var) else stmt.index_var
        found = explain_assignment(typingctx, target, body.type_of(index), value)
        return None if found is None else (describe_leaves(target.leaves) if target.leaves else "", *found)
    if isinstance(stmt, ir.SetAttr):
        target = body.type_of(stmt.target)
        if isinstance(target, RecordRefType):
            return _field(target, stmt.attr, body.type_of(stmt.value), typingctx)
        if isinstance(target, types.Number):
            return "", f".{stmt.attr} of a number cannot be assigned", (
                "assign the element as a whole, as in z[i] = complex(real, imag)"
            )
    return None


def _field(row: RecordRefType, name: Any, value: types.Type, typingctx: Any) -> tuple[str, str, str] | None:
    ty = field_type(row, name) if isinstance(name, str) else None
    if not isinstance(ty, types.Number | types.Boolean) or fits(typingctx, value, ty):
        return None
    argument = describe_leaves(row.leaves)
    return (argument, *explain_value(f"the field {name!r} of {argument!r}", ty, value))
