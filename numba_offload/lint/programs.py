"""One scope of a host program with all that the rules ask of it."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cached_property
from weakref import WeakKeyDictionary

from numba_offload.lint.arrays import Aliases, Place
from numba_offload.lint.launches import Launch, is_preload, launches
from numba_offload.lint.project import OPTIMIZE, PRELOAD, PRELOAD_MUT, Defined, Project
from numba_offload.lint.scopes import FUNCTIONS, Function, Scope, own_nodes
from numba_offload.lint.uses import HostUse, host_uses

Loop = ast.For | ast.AsyncFor | ast.While
LOOPS = (ast.For, ast.AsyncFor, ast.While)
_ENDS = (ast.Break, ast.Return, ast.Raise)
_DEVICE_MODULES = {"cupy", "torch", "jax", "numba", "pycuda"}


_HANDLE_PARAMETERS: WeakKeyDictionary[Project, set[tuple[Function, str]]] = WeakKeyDictionary()


class HostProgram:
    """The statements of a module or a function, without those of functions inside it."""

    def __init__(self, project: Project, scope: Scope) -> None:
        self.project = project
        self.scope = scope

    @cached_property
    def launches(self) -> list[Launch]:
        return list(launches(self.project, self.scope))

    @cached_property
    def aliases(self) -> Aliases:
        return Aliases(self.project, self.scope)

    @cached_property
    def uses(self) -> list[HostUse]:
        return host_uses(self.project, self.scope)

    @property
    def function(self) -> Function | None:
        return self.scope.node if isinstance(self.scope.node, FUNCTIONS) else None

    @cached_property
    def optimised(self) -> bool:
        """Whether ``optimize_transfers`` rewrites it, or a function around it."""
        scope: Scope | None = self.scope
        while scope is not None and scope.parent is not None:
            if self.project.decorated(scope.parent, scope.node, OPTIMIZE):
                return True
            scope = scope.parent
        return False

    @cached_property
    def stages(self) -> bool:
        """Whether it preloads anything; cheaper to say than what."""
        return any(is_preload(self.project, self.scope, node) for node in own_nodes(self.scope.body))

    @cached_property
    def preloaded(self) -> set[Place]:
        """The classes that the scope preloads anywhere."""
        return {self.aliases.of(use.place) for use in self.uses if use.how == "preload"}

    # ---------------------------------------------------------------------------------------------------------- places

    def within(self, nodes: Iterable[ast.AST]) -> list[HostUse]:
        """The uses at nodes or inside of them."""
        inside = {node for outer in nodes for node in own_nodes(outer)}
        return [use for use in self.uses if use.node in inside]

    def loop_around(self, node: ast.AST) -> Loop | None:
        """The innermost loop that repeats a node, unless it leaves the loop at once."""
        inner = node
        above = list(self.scope.source.above(node))
        for outer in above:
            if outer is self.scope.node:
                return None
            if isinstance(outer, ast.AsyncFor):
                return None  # other code runs in between
            if isinstance(outer, LOOPS) and (inner in outer.body or inner is getattr(outer, "test", None)):
                chain = [node, *above[: above.index(outer)]]
                return None if self._ends_after(chain, outer) or _at_most_once(outer, self) else outer
            inner = outer
        return None

    def _ends_after(self, chain: list[ast.AST], loop: Loop) -> bool:
        """Whether every way on from a node leaves the loop: a statement beside it, or beside one around it, does."""
        for inner, outer in zip(chain, [*chain[1:], loop], strict=True):
            for block in _blocks(outer):
                if inner in block and any(isinstance(later, _ENDS) for later in block[block.index(inner) :]):
                    return True
        return False

    def repeated(self, loop: Loop) -> list[HostUse]:
        """What happens in every iteration of a loop."""
        header = [loop.test] if isinstance(loop, ast.While) else [loop.target]
        return self.within([*header, *loop.body])

    def siblings(self, statement: ast.AST) -> tuple[list[ast.stmt], int]:
        """The block that a statement stands in, and its position there."""
        parent = self.scope.source.parents[statement]
        for block in _blocks(parent):
            if statement in block:
                return block, block.index(statement)  # type: ignore[arg-type]
        return [], 0

    # ---------------------------------------------------------------------------------------------------------- answers

    def steady(self, place: Place, parts: Iterable[ast.expr], loop: Loop) -> bool:
        """Whether a place, or a part of it, is the same array in every iteration, or one of several that change places."""
        nodes = [node for statement in (*loop.body, *_targets(loop)) for node in own_nodes(statement)]
        bound = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
        for part in parts:
            for node in ast.walk(part):
                if isinstance(node, ast.Call | ast.Await | ast.NamedExpr) or (isinstance(node, ast.Name) and node.id in bound):
                    return False
                if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
                    return False
        changes = [use for use in self.repeated(loop) if use.how in ("bind", "rename")]
        names, todo = {place}, [place]
        while todo:
            name = todo.pop()
            for use in changes:
                if use.place != name[: len(use.place)]:
                    continue
                if use.how == "bind" or use.place != name:
                    return False
                if use.source not in names:
                    names.add(use.source)
                    todo.append(use.source)
        return True

    def touched(self, uses: Iterable[HostUse], known: Place) -> tuple[bool, bool]:
        """Whether the host may read, and write, a class of arrays in what the uses are of."""
        reads = writes = False
        for use in uses:
            hidden = use.how == "leave" or (use.how == "unknown" and self.aliases.shared(known))
            if hidden:
                return True, True
            if (use.reads or use.writes) and self.aliases.touches(use.place, known):
                reads, writes = reads or use.reads, writes or use.writes
        return reads, writes

    def is_on_device(self, place: Place) -> bool:
        """Whether a name may stand for what is on a device already: a handle, another library's array, an object of a class."""
        for binding in self.scope.found(place[0]):
            if isinstance(binding.value, ast.Call):
                if ast.unparse(binding.value.func).rpartition(".")[2][:1].isupper():
                    return True
                called = self.project.dotted(self.scope, binding.value.func)
                if called.partition(".")[0] in _DEVICE_MODULES or called in (PRELOAD, PRELOAD_MUT):
                    return True
        return len(place) == 1 and self.function is not None and (self.function, place[0]) in handle_parameters(self.project)


def handle_parameters(project: Project) -> set[tuple[Function, str]]:
    """The parameters of host functions that some call in the files gives a handle."""
    found = _HANDLE_PARAMETERS.get(project)
    if found is None:
        found = _HANDLE_PARAMETERS[project] = set(_handed(project))
    return found


def _handed(project: Project) -> Iterable[tuple[Function, str]]:
    for scope in project.host_scopes():
        for node in own_nodes(scope.body):
            if not isinstance(node, ast.Call):
                continue
            given = [(at, value) for at, value in enumerate(node.args) if _is_handle(project, scope, value)]
            named = [(keyword.arg, keyword.value) for keyword in node.keywords if _is_handle(project, scope, keyword.value)]
            called = project.meaning(scope, node.func) if given or named else None
            if isinstance(called, Defined):
                names = [argument.arg for argument in (*called.node.args.posonlyargs, *called.node.args.args)]
                yield from ((called.node, names[at]) for at, _ in given if at < len(names))
                yield from ((called.node, name) for name, _ in named if name is not None)


def _is_handle(project: Project, scope: Scope, node: ast.expr) -> bool:
    if not isinstance(node, ast.Name):
        return False
    values = [binding.value for binding in scope.found(node.id)]
    return any(isinstance(v, ast.Call) and project.dotted(scope, v.func) in (PRELOAD, PRELOAD_MUT) for v in values)


def _blocks(node: ast.AST) -> list[list[ast.stmt]]:
    found = [getattr(node, name, []) for name in ("body", "orelse", "finalbody")]
    return [block for block in found if isinstance(block, list)]


def _targets(loop: Loop) -> list[ast.AST]:
    return [] if isinstance(loop, ast.While) else [loop.target]


def _at_most_once(loop: Loop, program: HostProgram) -> bool:
    if isinstance(loop, ast.While):
        return False
    iterated = loop.iter
    if isinstance(iterated, ast.Tuple | ast.List | ast.Set):
        return len(iterated.elts) <= 1 and not any(isinstance(item, ast.Starred) for item in iterated.elts)
    if isinstance(iterated, ast.Call) and program.project.dotted(program.scope, iterated.func) == "builtins.range":
        numbers = [argument.value for argument in iterated.args if isinstance(argument, ast.Constant)]
        if len(numbers) == len(iterated.args) and all(isinstance(number, int) for number in numbers):
            return len(range(*numbers)) <= 1  # type: ignore[arg-type]
    return False
