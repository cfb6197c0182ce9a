"""The scopes of a file, and what binds each name in them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from numba_offload.lint.sources import Source

Function = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
NESTED = (*FUNCTIONS, ast.Lambda, ast.ClassDef)


@dataclass(frozen=True, eq=False)
class Binding:
    """One place that gives a name a value.

    ``how``: ``import`` (``dotted`` says what), ``function``, ``class``, ``parameter``, ``assign`` (``value`` is the whole
    value), ``with`` (``value`` is the context manager), ``loop`` (``value`` is what is iterated over), ``part`` (``value`` is
    what is taken apart), ``augmented`` or ``other``.
    """

    name: str
    how: str
    node: ast.AST
    value: ast.expr | None = None
    dotted: str = ""


@dataclass(eq=False)
class Scope:
    """A module, function, lambda or class body."""

    node: ast.AST
    parent: Scope | None
    source: Source
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    outer: set[str] = field(default_factory=set)
    children: list[Scope] = field(default_factory=list)

    @property
    def module(self) -> Scope:
        return self if self.parent is None else self.parent.module

    @property
    def body(self) -> list[ast.stmt]:
        return [] if isinstance(self.node, ast.Lambda) else self.node.body  # type: ignore[attr-defined]

    def owner(self, name: str) -> Scope | None:
        """The scope that a name means when it is used here."""
        scope: Scope | None = self
        while scope is not None:
            own = name in scope.bindings and name not in scope.outer
            if own and (scope is self or not isinstance(scope.node, ast.ClassDef)):
                return scope
            scope = scope.parent
        return None

    def found(self, name: str) -> list[Binding]:
        """What binds a name, as it is used here."""
        owner = self.owner(name)
        return owner.bindings[name] if owner is not None else []

    def local(self, name: str) -> bool:
        return name in self.bindings and name not in self.outer

    def all(self) -> Iterator[Scope]:
        """This scope and those inside it."""
        yield self
        for child in self.children:
            yield from child.all()


def own_nodes(nodes: list[ast.stmt] | ast.AST) -> Iterator[ast.AST]:
    """All nodes of statements without what is inside of nested functions and classes, in the order of the text."""
    todo = list(reversed(nodes)) if isinstance(nodes, list) else [nodes]  # type: list[ast.AST]
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, NESTED):
            todo.extend(reversed(list(ast.iter_child_nodes(node))))


def package_of(path: Path) -> tuple[str, ...]:
    """The package that holds a file, by the folders that have an ``__init__.py``."""
    parts: list[str] = []
    folder = path.absolute().parent
    while (folder / "__init__.py").exists():
        parts.insert(0, folder.name)
        folder = folder.parent
    return tuple(parts)


class _Builder(ast.NodeVisitor):
    """Fills one scope, and makes those inside it."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    def bind(self, name: str, how: str, node: ast.AST, value: ast.expr | None = None, dotted: str = "") -> None:
        target = self.scope
        if name in target.outer:
            # What 'global' and 'nonlocal' name is bound further out, at times that nobody here knows.
            target, how = (target.parent.owner(name) if target.parent else None) or target.module, "other"
        target.bindings.setdefault(name, []).append(Binding(name, how, node, value, dotted))

    def targets(self, target: ast.AST, how: str, node: ast.AST, value: ast.expr | None) -> None:
        if isinstance(target, ast.Name):
            self.bind(target.id, how, node, value)
        elif isinstance(target, ast.Tuple | ast.List):
            values = value.elts if how == "assign" and isinstance(value, ast.Tuple | ast.List) else []
            whole = len(values) == len(target.elts) and not any(
                isinstance(item, ast.Starred) for item in (*values, *target.elts)
            )
            for at, item in enumerate(target.elts):
                self.targets(item, "assign" if whole else "part", node, values[at] if whole else value)
        elif isinstance(target, ast.Starred):
            self.targets(target.value, "part", node, value)
        else:
            self.visit(target)

    def inside(self, node: ast.AST) -> None:
        child = Scope(node, self.scope, self.scope.source)
        self.scope.children.append(child)
        builder = _Builder(child)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            arguments = node.args
            names = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
            for argument in (*names, *filter(None, (arguments.vararg, arguments.kwarg))):
                builder.bind(argument.arg, "parameter", argument)
            for default in (*arguments.defaults, *filter(None, arguments.kw_defaults)):
                self.visit(default)
        if isinstance(node, ast.Lambda):
            builder.visit(node.body)
        else:
            builder.block(child.body)

    def block(self, body: list[ast.stmt]) -> None:
        for statement in body:
            for node in own_nodes(statement):
                if isinstance(node, ast.Global | ast.Nonlocal):
                    self.scope.outer.update(node.names)
        for statement in body:
            self.visit(statement)

    def _function(self, node: Function) -> None:
        for decorator in node.decorator_list:
            self.visit(decorator)
        self.bind(node.name, "function", node)
        self.inside(node)

    visit_FunctionDef = visit_AsyncFunctionDef = _function

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.inside(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.bind(node.name, "class", node)
        self.inside(node)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            top = alias.name.partition(".")[0]
            self.bind(alias.asname or top, "import", node, dotted=alias.name if alias.asname else top)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        if node.level:
            package = package_of(self.scope.source.path)
            kept = package[: len(package) - node.level + 1]
            module = ".".join((*kept, *([module] if module else [])))
        for alias in node.names:
            if alias.name == "*":
                self.scope.stars.append(module)
            else:
                dotted = f"{module}.{alias.name}" if module else alias.name
                self.bind(alias.asname or alias.name, "import", node, dotted=dotted)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            self.targets(target, "assign", node, node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)
            self.targets(node.target, "assign", node, node.value)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        self.targets(node.target, "assign", node, node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.visit(node.value)
        self.targets(node.target, "augmented", node, node.value)

    def _loop(self, node: ast.For | ast.AsyncFor) -> None:
        self.visit(node.iter)
        self.targets(node.target, "loop", node, node.iter)
        for statement in (*node.body, *node.orelse):
            self.visit(statement)

    visit_For = visit_AsyncFor = _loop

    def visit_comprehension(self, node: ast.comprehension) -> None:
        # As if in the scope around it: a name that is bound there too then counts as one of several meanings.
        self.targets(node.target, "loop", node, node.iter)
        self.generic_visit(node)

    def visit_withitem(self, node: ast.withitem) -> None:
        self.visit(node.context_expr)
        if node.optional_vars is not None:
            self.targets(node.optional_vars, "with", node, node.context_expr)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self.bind(node.name, "other", node)
        self.generic_visit(node)

    def visit_Delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            self.targets(target, "other", node, None)

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        if node.name:
            self.bind(node.name, "other", node)
        self.generic_visit(node)

    def visit_MatchStar(self, node: ast.MatchStar) -> None:
        if node.name:
            self.bind(node.name, "other", node)

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        if node.rest:
            self.bind(node.rest, "other", node)
        self.generic_visit(node)


def module_scope(source: Source) -> Scope:
    """The scope of a file with all scopes inside it."""
    scope = Scope(source.tree, None, source)
    _Builder(scope).block(source.tree.body)
    return scope
