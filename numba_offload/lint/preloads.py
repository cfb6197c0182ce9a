"""The preloads of a host program: what each holds, under which name, and over which of its statements."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from numba_offload.lint.arrays import View, view_of
from numba_offload.lint.launches import is_preload
from numba_offload.lint.parameters import SHAPE
from numba_offload.lint.programs import HostProgram
from numba_offload.lint.project import PRELOAD_MUT
from numba_offload.lint.scopes import own_nodes


@dataclass(frozen=True, eq=False)
class Preload:
    """One array of one preload. ``region``: the nodes that surely run while it is held. ``handle`` may be empty."""

    call: ast.Call
    node: ast.expr
    view: View
    mutable: bool
    handle: str
    statement: ast.stmt
    region: frozenset[ast.AST]
    released: bool
    """Whether it is plain where the hold ends."""

    @property
    def verb(self) -> str:
        return "preload_mut" if self.mutable else "preload"


def preloads(program: HostProgram) -> Iterator[Preload]:
    """The preloads of 'with' statements, and those that a name is given."""
    if not program.stages:
        return
    for node in own_nodes(program.scope.body):
        if isinstance(node, ast.With):
            for at, item in enumerate(node.items):
                if isinstance(item.context_expr, ast.Call) and is_preload(program.project, program.scope, item.context_expr):
                    later = [other.context_expr for other in node.items[at + 1 :]]
                    yield from _made(program, item.context_expr, item.optional_vars, node, [*later, *node.body], True)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and len(node.targets) == 1:
            block, at = program.siblings(node)
            if is_preload(program.project, program.scope, node.value):
                yield from _made(program, node.value, node.targets[0], node, list(block[at + 1 :]), False)


def _made(
    program: HostProgram, call: ast.Call, target: ast.expr | None, statement: ast.stmt, held: list[ast.AST], ends: bool
) -> Iterator[Preload]:
    mutable = program.project.dotted(program.scope, call.func) == PRELOAD_MUT
    several = target.elts if isinstance(target, ast.Tuple | ast.List) else []
    for at, argument in enumerate(call.args):
        view = view_of(argument)
        if view is None:
            continue
        name = target if len(call.args) == 1 else several[at] if len(several) == len(call.args) else None
        handle = name.id if isinstance(name, ast.Name) else ""
        if not ends and (not handle or len(program.scope.bindings.get(handle, ())) != 1):
            continue
        region, released = _held(program, handle, held)
        yield Preload(call, argument, view, mutable, handle, statement, region, released or ends)


def _held(program: HostProgram, handle: str, held: list[ast.AST]) -> tuple[frozenset[ast.AST], bool]:
    """The nodes up to the release, or up to where the handle goes to code that may release it."""
    nodes: list[ast.AST] = []
    parents = program.scope.source.parents
    for outer in held:
        for node in own_nodes(outer):
            if isinstance(node, ast.Name) and node.id == handle and handle:
                parent = parents[node]
                if isinstance(parent, ast.Attribute) and parent.attr == "release":
                    # In the order of the text, also of a 'finally'.
                    return frozenset(n for n in nodes if _before(n, node)), True
                if isinstance(parent, ast.withitem):
                    body = parents[parent].body  # type: ignore[attr-defined]
                    inner = (inside for statement in body for inside in own_nodes(statement))
                    return frozenset([*nodes, *inner]), True
                if not _stays(program, node):
                    return frozenset(n for n in nodes if _before(n, node)), False
            nodes.append(node)
    return frozenset(nodes), False


def _before(node: ast.AST, other: ast.AST) -> bool:
    return getattr(node, "lineno", 0) < other.lineno  # type: ignore[attr-defined]


def _stays(program: HostProgram, name: ast.Name) -> bool:
    """Whether a mention of a handle leaves it held: a launch, or its shape."""
    for above in program.scope.source.above(name):
        if isinstance(above, ast.Call) and program.project.kernel(program.scope, above.func) is not None:
            return True
        if isinstance(above, ast.stmt):
            break
    parent = program.scope.source.parents[name]
    return isinstance(parent, ast.Attribute) and parent.attr in SHAPE
