"""Where an index in a kernel comes from: what is surely a plain integer, and which names are parts of one owned index."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from numba_offload.lint.project import Project
from numba_offload.lint.scopes import Binding, Scope

_INTEGERS = {"builtins." + name for name in ("int", "min", "max", "len", "abs", "round", "sum", "pow", "bool")}
_DEEPEST = 10


@dataclass(frozen=True, eq=False)
class Component:
    """A name that a loop over ``indices()`` of several axes binds: which of how many."""

    loop: ast.For
    position: int
    total: int


class Indices:
    """Answers for one kernel; its inner scope is given."""

    def __init__(self, project: Project, kernel: Scope) -> None:
        self.project = project
        self.kernel = kernel

    def _bindings(self, name: str) -> list[Binding]:
        return self.kernel.bindings.get(name, []) if self.kernel.local(name) else []

    def plain(self, node: ast.expr, depth: int = 0) -> str:
        """What makes an index no owned one for sure, in words that follow 'which is'; empty if nothing does."""
        if depth > _DEEPEST:
            return ""
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return "a constant"
        if isinstance(node, ast.Slice):
            return "a slice"
        if isinstance(node, ast.Compare):
            return "a comparison"
        if isinstance(node, ast.BinOp):
            tuples = (ast.Tuple, ast.Subscript, ast.Call)
            return "" if isinstance(node.left, tuples) and isinstance(node.right, tuples) else "arithmetic"
        if isinstance(node, ast.UnaryOp):
            return "arithmetic"
        if isinstance(node, ast.Call):
            called = self.project.dotted(self.kernel, node.func)
            return "a plain integer" if called in _INTEGERS else ""
        if isinstance(node, ast.IfExp):
            return self.plain(node.body, depth + 1) or self.plain(node.orelse, depth + 1)
        if isinstance(node, ast.Attribute) and node.attr in ("size", "ndim", "itemsize"):
            return "a plain integer"
        if isinstance(node, ast.Subscript):
            return self._item(node)
        return self._name(node, depth) if isinstance(node, ast.Name) else ""

    def _item(self, node: ast.Subscript) -> str:
        inner = node.value
        if isinstance(inner, ast.Attribute) and inner.attr == "shape":
            return "a plain integer"
        binding = self._bindings(inner.id) if isinstance(inner, ast.Name) else []
        if [b.how for b in binding] == ["parameter"]:
            return f"an element of {inner.id}"  # type: ignore[attr-defined]
        return ""

    def _name(self, node: ast.Name, depth: int) -> str:
        bindings = self._bindings(node.id)
        reasons = [self._bound(binding, depth) for binding in bindings]
        return reasons[0] if reasons and all(reasons) else ""

    def _bound(self, binding: Binding, depth: int) -> str:
        if binding.how == "parameter":
            return "an argument of the kernel"
        if binding.how == "augmented":
            return "arithmetic"
        if binding.how == "assign" and binding.value is not None:
            return self.plain(binding.value, depth + 1)
        if binding.how in ("loop", "part") and isinstance(binding.value, ast.Call) and isinstance(binding.node, ast.For):
            called = self.project.dotted(self.kernel, binding.value.func)
            if called == "builtins.range" and isinstance(binding.node.target, ast.Name):
                return "the counter of a range"
            target = binding.node.target
            if called == "builtins.enumerate" and isinstance(target, ast.Tuple) and _is_name(target.elts[0], binding.name):
                return "the counter of an enumeration"
        return ""

    def loop_of(self, name: str) -> ast.For | None:
        """The loop over owned indices that alone binds a name."""
        bindings = self._bindings(name)
        if len(bindings) != 1:
            return None
        loop = bindings[0].node
        return loop if isinstance(loop, ast.For) and bindings[0].how in ("loop", "part") and _over_indices(loop.iter) else None

    def component(self, name: str) -> Component | None:
        """A name as a part of an owned index, if that is all that it ever is."""
        loop = self.loop_of(name)
        if loop is None or not isinstance(loop.target, ast.Tuple):
            return None
        places = [at for at, item in enumerate(loop.target.elts) if _is_name(item, name)]
        if len(places) != 1 or not all(isinstance(item, ast.Name) for item in loop.target.elts):
            return None
        return Component(loop, places[0], len(loop.target.elts))


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _over_indices(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "indices" and not node.args
