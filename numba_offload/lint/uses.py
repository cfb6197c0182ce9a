"""What a host program does with the places of its arrays, statement by statement."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

import numpy as np

from numba_offload.lint.arrays import SHARING, Place, place_of, view_of
from numba_offload.lint.launches import Argument, Launch, is_preload, launch, wrapped
from numba_offload.lint.parameters import SHAPE
from numba_offload.lint.project import ACCUMULATOR, REGION, Project
from numba_offload.lint.scopes import FUNCTIONS, Scope

READING_METHODS = {
    *("sum", "prod", "min", "max", "mean", "std", "var", "any", "all", "argmin", "argmax", "argsort", "cumsum", "cumprod"),
    *("dot", "copy", "astype", "tolist", "tobytes", "tofile", "item", "nonzero", "round", "clip", "conj", "conjugate"),
    *("trace", "searchsorted", "take", "choose", "compress", "repeat", "flatten", "dump", "dumps", "format", "ptp"),
}
WRITING_METHODS = {"fill", "sort", "partition", "put", "itemset", "setflags", "resize", "setfield"}
_WRITING_FUNCTIONS = {"copyto", "put", "place", "putmask", "fill_diagonal", "put_along_axis", "shuffle"}
_SHAPE_FUNCTIONS = {"shape", "ndim", "size", "zeros_like", "empty_like", "ones_like", "shares_memory", "may_share_memory"}
_SHAPE_BUILTINS = {"len", "isinstance", "id", "type", "hasattr", "range", "issubclass", "callable"}
_REACHING_BUILTINS = {"exec", "eval", "setattr", "getattr", "delattr", "next", "vars", "globals", "locals", "map", "filter"}
_QUIET_MODULES = {"builtins", "numpy", "math", "cmath", "time", "numba_offload", "partitioning"}


@dataclass(frozen=True, eq=False)
class HostUse:
    """One use. ``how``:

    ``use`` the host reads or writes the content; ``call`` it is given to code that is not known; ``bind`` the name gets
    another value, ``rename`` that of the name ``source``; ``kernel`` it is a kernel's argument; ``wrap`` it becomes a Region
    or Accumulator beside a launch; ``preload``; ``unknown`` (no place) code that is not known runs; ``leave`` (no place) the
    function hands over to its caller. ``later``: in a function that is only defined here.
    """

    node: ast.AST
    place: Place
    how: str
    reads: bool = False
    writes: bool = False
    source: Place = ()
    launch: Launch | None = None
    argument: Argument | None = None
    later: bool = False


@dataclass
class _Collector:
    project: Project
    scope: Scope
    uses: list[HostUse] = field(default_factory=list)

    def note(self, node: ast.AST, place: Place, how: str, reads: bool = False, writes: bool = False, **more: object) -> None:
        self.uses.append(HostUse(node, place, how, reads, writes, **more))  # type: ignore[arg-type]

    # ---------------------------------------------------------------------------------------------------- statements

    def block(self, body: list[ast.stmt]) -> None:
        for statement in body:
            self.statement(statement)

    def statement(self, node: ast.AST) -> None:
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            for decorator in node.decorator_list:
                self.read(decorator)
            self.later(node)
        elif isinstance(node, ast.Assign):
            handed = all(_is_handed_on(target) for target in node.targets)
            self.expression(node.value, "alias" if handed else "read")
            for target in node.targets:
                self.target(target, node.value)
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self.expression(node.value, "alias" if _is_handed_on(node.target) else "read")
                self.target(node.target, node.value)
        elif isinstance(node, ast.AugAssign):
            self.read(node.value)
            view = view_of(node.target)
            if view is not None:
                self.all_read(view.parts)
                self.note(node.target, view.place, "use", True, True)
            else:
                self.read(node.target)
        elif isinstance(node, ast.For | ast.AsyncFor):
            self.read(node.iter)
            self.target(node.target, None)
            self.block([*node.body, *node.orelse])
        elif isinstance(node, ast.Delete):
            for target in node.targets:
                self.target(target, None)
        else:
            for child in ast.iter_child_nodes(node):
                self.anything(child)

    def anything(self, node: ast.AST) -> None:
        if isinstance(node, ast.expr):
            self.read(node)
        elif isinstance(node, ast.withitem):
            self.expression(node.context_expr, "alias")
            if node.optional_vars is not None:
                self.target(node.optional_vars, None)
        elif isinstance(node, ast.stmt):
            self.statement(node)
        else:
            for child in ast.iter_child_nodes(node):
                self.anything(child)

    def target(self, node: ast.expr, value: ast.expr | None) -> None:
        if isinstance(node, ast.Tuple | ast.List):
            values = value.elts if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(node.elts) else None
            for at, item in enumerate(node.elts):
                self.target(item, values[at] if values else None)
            return
        if isinstance(node, ast.Starred):
            node = node.value
        place = place_of(node)
        if place is not None:
            if isinstance(value, ast.Name):
                self.note(node, place, "rename", source=(value.id,))
            else:
                self.note(node, place, "bind")
            if place[-1].startswith("["):
                # A field of a structured array, perhaps.
                self.note(node, place[:-1], "use", writes=True)
            return
        view = view_of(node)
        if view is not None:
            self.all_read(view.parts)
            self.note(node, view.place, "use", writes=True)
        else:
            for child in ast.iter_child_nodes(node):
                self.anything(child)

    def later(self, node: ast.AST) -> None:
        """Names in a function that runs when nobody can say."""
        if isinstance(node, FUNCTIONS) and self.project.is_device_code(self.project.scope_of(node)):
            return
        for child in ast.walk(node):
            if isinstance(child, ast.Name) and self.scope.local(child.id):
                self.note(node, (child.id,), "call", True, True, later=True)

    # --------------------------------------------------------------------------------------------------- expressions

    def read(self, node: ast.expr) -> None:
        self.expression(node, "read")

    def all_read(self, nodes: tuple[ast.expr, ...] | list[ast.expr]) -> None:
        for node in nodes:
            self.read(node)

    def expression(self, node: ast.expr, mode: str) -> None:
        """``mode``: ``read`` its content is needed; ``alias`` it is handed on; ``free`` only what is known without it."""
        view = view_of(node)
        if view is not None:
            self.all_read(view.parts)
            if mode == "read":
                self.note(node, view.place, "use", reads=True)
        elif isinstance(node, ast.Call):
            self.call(node, mode)
        elif isinstance(node, ast.Attribute):
            self.expression(node.value, "free" if node.attr in SHAPE | {"flags"} else "read")
        elif isinstance(node, ast.Lambda):
            self.later(node)
        elif isinstance(node, ast.IfExp):
            self.read(node.test)
            self.expression(node.body, mode)
            self.expression(node.orelse, mode)
        elif isinstance(node, ast.NamedExpr):
            self.expression(node.value, mode)
            self.target(node.target, node.value)
        elif isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Starred):
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr):
                    self.expression(child, mode)
        elif isinstance(node, ast.Compare) and all(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):
            for side in (node.left, *node.comparators):
                self.expression(side, "free")
        elif isinstance(node, ast.Yield | ast.YieldFrom | ast.Await):
            self.note(node, (), "leave")
            if node.value is not None:
                self.read(node.value)
        elif isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
            for generator in node.generators:
                self.read(generator.iter)
                self.target(generator.target, None)
                self.all_read(generator.ifs)
            for name in ("elt", "key", "value"):
                if hasattr(node, name):
                    self.read(getattr(node, name))
        else:
            for child in ast.iter_child_nodes(node):
                self.anything(child)

    def call(self, node: ast.Call, mode: str) -> None:
        started = launch(self.project, self.scope, node)
        if started is not None:
            self.launch(started)
            return
        dotted = self.project.dotted(self.scope, node.func)
        top, _, _ = dotted.partition(".")
        name = dotted.rpartition(".")[2]
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        if is_preload(self.project, self.scope, node):
            for argument in node.args:
                self.placed(argument, "preload")
        elif dotted in (REGION, ACCUMULATOR):
            for argument in arguments[:1]:
                self.placed(argument, "wrap")
        elif top == "numpy":
            self.numpy(node, name, mode)
        elif top in _QUIET_MODULES and name not in _REACHING_BUILTINS | {"offload_call"}:
            for argument in arguments:
                self.expression(argument, "free" if top == "builtins" and name in _SHAPE_BUILTINS else "read")
        elif isinstance(node.func, ast.Attribute) and not dotted:
            self.method(node, node.func, arguments)
        else:
            self.expression(node.func, "free")
            self.given_away(node, arguments)

    def placed(self, node: ast.expr, how: str) -> None:
        view = view_of(node)
        if view is None:
            self.expression(node, "alias")
        else:
            self.all_read(view.parts)
            self.note(node, view.place, how)

    def given_away(self, node: ast.Call, arguments: list[ast.expr]) -> None:
        for argument in arguments:
            inner = argument.value if isinstance(argument, ast.Starred) else argument
            view = view_of(inner)
            if view is None:
                self.read(inner)
            else:
                self.all_read(view.parts)
                self.note(inner, view.place, "call", True, True)
        self.note(node, (), "unknown")

    def numpy(self, node: ast.Call, name: str, mode: str) -> None:
        function = getattr(np, name, None)
        inputs = function.nin if isinstance(function, np.ufunc) else len(node.args)
        writes_first = name in _WRITING_FUNCTIONS or name == "at"
        for at, argument in enumerate(node.args):
            if at >= inputs or (writes_first and at == 0):
                self.written(argument)
            elif name in _SHAPE_FUNCTIONS:
                self.expression(argument, "free")
            else:
                self.expression(argument, mode if name in SHARING else "read")
        for keyword in node.keywords:
            if keyword.arg == "out":
                self.written(keyword.value)
            else:
                self.read(keyword.value)

    def written(self, node: ast.expr) -> None:
        for each in node.elts if isinstance(node, ast.Tuple) else [node]:
            view = view_of(each)
            if view is not None:
                self.all_read(view.parts)
                self.note(each, view.place, "use", writes=True)
            else:
                self.read(each)

    def method(self, node: ast.Call, function: ast.Attribute, arguments: list[ast.expr]) -> None:
        view = view_of(function.value)
        if function.attr in ("mappings", "explain") and self.project.kernel(self.scope, function.value) is not None:
            for argument in arguments:
                self.expression(argument, "free")
        elif function.attr in READING_METHODS:
            self.read(function.value)
            for argument in node.args:
                self.read(argument)
            for keyword in node.keywords:
                (self.written if keyword.arg == "out" else self.read)(keyword.value)
        elif function.attr in WRITING_METHODS:
            self.written(function.value)
            self.all_read(arguments)
        elif function.attr == "release" and view is not None and not arguments:
            return
        else:
            if view is None:
                self.read(function.value)
            else:
                self.all_read(view.parts)
                self.note(function.value, view.place, "call", True, True)
            self.given_away(node, arguments)

    def launch(self, started: Launch) -> None:
        self.expression(started.node.func, "free")
        known = {argument.node: argument for argument in started.arguments}
        for node in (*started.node.args, *(keyword.value for keyword in started.node.keywords)):
            argument = known.get(node)
            if argument is None:
                self.read(node)
            else:
                self.argument(started, argument)

    def argument(self, started: Launch, argument: Argument) -> None:
        view = view_of(argument.array)
        if view is not None:
            self.all_read(view.parts)
            self.note(argument.node, view.place, "kernel", launch=started, argument=argument)
        elif isinstance(argument.array, ast.Tuple):
            for item in argument.array.elts:
                self.argument(started, wrapped(self.project, self.scope, "", item))
        else:
            self.read(argument.array)


def _is_handed_on(target: ast.expr) -> bool:
    """Whether assigning to it copies nothing."""
    if isinstance(target, ast.Tuple | ast.List):
        return all(_is_handed_on(item) for item in target.elts)
    return place_of(target.value if isinstance(target, ast.Starred) else target) is not None


def host_uses(project: Project, scope: Scope) -> list[HostUse]:
    """All uses in a scope, in the order of its statements."""
    collector = _Collector(project, scope)
    collector.block(scope.body)
    return collector.uses
