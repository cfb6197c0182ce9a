"""What a kernel's body does with each of its parameters, as far as its text tells."""

from __future__ import annotations

import ast
from enum import Flag, auto

from numba_offload.lint.project import Defined, Project
from numba_offload.lint.scopes import Function, Scope

SHAPE = {"shape", "size", "ndim", "itemsize", "strides", "dtype", "nbytes"}
REDUCTIONS = {"sum", "prod", "min", "max", "mean", "any", "all"}
_DEEPEST = 5


class Use(Flag):
    """``ELEMENTS``: elements are read, so it is an array. ``REGION``: it has what only Regions have. ``UNKNOWN``: more than
    can be told."""

    NONE = 0
    ELEMENTS = auto()
    WRITTEN = auto()
    REGION = auto()
    LOCAL = auto()
    UPDATED = auto()
    UNKNOWN = auto()


def parameter_use(project: Project, function: Scope, name: str, depth: int = 0) -> Use:
    """What a function - its inner scope is given - does with a parameter."""
    if len(function.bindings.get(name, ())) != 1 or depth > _DEEPEST:
        return Use.UNKNOWN
    use = Use.NONE
    for node in ast.walk(function.node):
        if isinstance(node, ast.Name) and node.id == name:
            use |= _one(project, function, node, depth)
    return use


def _one(project: Project, function: Scope, name: ast.Name, depth: int) -> Use:
    parents = function.source.parents
    parent = parents[name]
    if isinstance(parent, ast.Attribute):
        if parent.attr in SHAPE:
            return Use.NONE
        if parent.attr in ("indices", "origin"):
            return Use.REGION
        if parent.attr == "local":
            return Use.REGION | Use.LOCAL
        if parent.attr == "update":
            return Use.UPDATED
        return Use.ELEMENTS if parent.attr in REDUCTIONS else Use.UNKNOWN
    if isinstance(parent, ast.Subscript) and parent.value is name:
        if isinstance(parent.ctx, ast.Load):
            return Use.ELEMENTS | _field_written(parents, parent)
        twice = isinstance(parents[parent], ast.AugAssign)
        return Use.WRITTEN | Use.ELEMENTS if twice else Use.WRITTEN
    if isinstance(parent, ast.For) and parent.iter is name:
        return Use.ELEMENTS
    if isinstance(parent, ast.Call) and name in parent.args:
        called = project.meaning(function, parent.func)
        if called == "builtins.len":
            return Use.NONE
        if isinstance(called, str) and called.startswith("numpy.") and called.rpartition(".")[2] in REDUCTIONS:
            return Use.ELEMENTS
        if isinstance(called, Defined) and not any(isinstance(argument, ast.Starred) for argument in parent.args):
            return _passed(project, called.node, parent.args.index(name), depth)
    return Use.UNKNOWN


def _field_written(parents: dict[ast.AST, ast.AST], node: ast.AST) -> Use:
    """Whether a part of an element is assigned: ``p[i].mass = ...``."""
    while isinstance(parent := parents.get(node), ast.Attribute | ast.Subscript) and parent.value is node:
        if not isinstance(parent.ctx, ast.Load):
            return Use.WRITTEN
        node = parent
    return Use.NONE


def _passed(project: Project, node: Function, position: int, depth: int) -> Use:
    names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
    if position >= len(names):
        return Use.UNKNOWN
    return parameter_use(project, project.scope_of(node), names[position], depth + 1)


def reads_first(function: Scope, name: str) -> bool:
    """Whether a function's text reads elements of a parameter before the first statement that assigns one, or in it."""
    loads, stores = [], []
    for node in ast.walk(function.node):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == name:
            statement = next(above for above in function.source.above(node) if isinstance(above, ast.stmt))
            if isinstance(node.ctx, ast.Load):
                loads.append(statement.lineno)
            else:
                stores.append(statement.lineno)
                if isinstance(statement, ast.AugAssign):
                    loads.append(statement.lineno)
    return bool(loads) and bool(stores) and min(loads) <= min(stores)
