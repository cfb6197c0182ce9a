"""Calls of kernels, taken apart into the arguments of each parameter."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from numba_offload.lint.project import ACCUMULATOR, PRELOAD, PRELOAD_MUT, REGION, Kernel, Project, Value
from numba_offload.lint.scopes import Scope, own_nodes

WRAPPERS = {REGION: "Region", ACCUMULATOR: "Accumulator"}


@dataclass(frozen=True, eq=False)
class Argument:
    """What a call gives to a parameter. ``array`` is what a wrapper is around, where that can be told, else the argument."""

    parameter: str
    node: ast.expr
    array: ast.expr
    wrapper: str
    strategy: ast.expr | None = None


@dataclass(frozen=True, eq=False)
class Launch:
    """A call of a kernel. Arguments that stars pass are not among ``arguments``."""

    scope: Scope
    node: ast.Call
    kernel: Kernel
    arguments: tuple[Argument, ...]


def wrapped(project: Project, scope: Scope, parameter: str, node: ast.expr) -> Argument:
    """An argument, with the Region or Accumulator that is written there or that its name stands for."""
    meant = project.meaning(scope, node)
    call = meant.node if isinstance(meant, Value) else node
    if isinstance(call, ast.Call):
        inside = meant.scope if isinstance(meant, Value) else scope
        kind = WRAPPERS.get(project.dotted(inside, call.func), "")
        by_name = {keyword.arg: keyword.value for keyword in call.keywords}
        array = call.args[0] if call.args else by_name.get("array")
        if kind and array is not None:
            strategy = call.args[1] if len(call.args) > 1 else by_name.get("strategy")
            # A name that stands for a Region of another scope: its array's name may mean another one here.
            return Argument(parameter, node, array if inside is scope else node, kind, strategy)
    return Argument(parameter, node, node, "")


def launch(project: Project, scope: Scope, node: ast.Call) -> Launch | None:
    """A call as a launch, if a kernel of the files checked is called."""
    kernel = project.kernel(scope, node.func)
    if kernel is None:
        return None
    found = []
    for parameter, argument in zip(kernel.parameters, node.args, strict=False):
        if isinstance(argument, ast.Starred):
            break
        found.append(wrapped(project, scope, parameter, argument))
    found += [wrapped(project, scope, k.arg, k.value) for k in node.keywords if k.arg in kernel.parameters]
    return Launch(scope, node, kernel, tuple(found))


def launches(project: Project, scope: Scope) -> Iterator[Launch]:
    """All launches of a scope, without those of functions inside it."""
    for node in own_nodes(scope.body):
        if isinstance(node, ast.Call) and (found := launch(project, scope, node)) is not None:
            yield found


def is_preload(project: Project, scope: Scope, node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and project.dotted(scope, node.func) in (PRELOAD, PRELOAD_MUT)
