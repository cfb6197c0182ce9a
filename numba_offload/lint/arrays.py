"""Which names of a host program may stand for the same array.

An array is known by its *place*: a name with attributes and constant keys, ``x``, ``self.u``, ``data["x"]``. Places that some
assignment may have made share memory are one class, wherever in the function it stands: what is concluded from "nothing of
this class is touched" holds under every order of the statements.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from numba_offload.lint.parameters import SHAPE
from numba_offload.lint.project import ACCUMULATOR, PRELOAD, PRELOAD_MUT, REGION, Defined, Project
from numba_offload.lint.scopes import Scope, own_nodes

Place = tuple[str, ...]

VIEW_ATTRIBUTES = {"T", "mT", "real", "imag", "flat"}
VIEW_METHODS = {"reshape", "ravel", "view", "transpose", "squeeze", "swapaxes", "diagonal"}
SHARING = {"asarray", "asanyarray", "ascontiguousarray", "atleast_1d", "atleast_2d", "atleast_3d", "reshape", "ravel"} | {
    "transpose", "squeeze", "swapaxes", "moveaxis", "broadcast_to", "broadcast_arrays", "expand_dims", "flip", "split", "real",
    "imag", "require", "diagonal", "frombuffer", "array_split", "rollaxis", "flipud", "fliplr", "rot90", "vsplit", "hsplit",
}  # fmt: skip
_VALUES = {"range", "len", "int", "float", "bool", "complex", "str", "sum", "min", "max", "abs", "round", "isinstance", "print"}
_NEW = {"copy", "astype", "sum", "mean", "min", "max", "std", "var", "prod", "dot", "any", "all", "item", "tolist", "flatten"}


@dataclass(frozen=True, eq=False)
class View:
    """An expression that is a place or cut out of one. ``parts`` are the indices on the way; ``whole``: there are none."""

    place: Place
    parts: tuple[ast.expr, ...]
    whole: bool


def place_of(node: ast.expr) -> Place | None:
    """The place that an expression is, if it is one."""
    if isinstance(node, ast.Name):
        return (node.id,)
    if isinstance(node, ast.Attribute) and node.attr not in SHAPE | VIEW_ATTRIBUTES | {"flags"}:
        base = place_of(node.value)
        return None if base is None else (*base, node.attr)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
        base = place_of(node.value)
        return None if base is None else (*base, f"[{node.slice.value!r}]")
    return None


def view_of(node: ast.expr) -> View | None:
    """The place that an expression is cut out of, through indices and NumPy's views."""
    place = place_of(node)
    if place is not None:
        return View(place, (), True)
    inner: View | None = None
    parts: tuple[ast.expr, ...] = ()
    if isinstance(node, ast.Subscript):
        inner, parts = view_of(node.value), (node.slice,)
    elif isinstance(node, ast.Attribute) and node.attr in VIEW_ATTRIBUTES:
        inner = view_of(node.value)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in VIEW_METHODS:
        inner, parts = view_of(node.func.value), tuple(node.args)
    return None if inner is None else View(inner.place, (*inner.parts, *parts), False)


def related(one: Place, other: Place) -> bool:
    """Whether one is the other, or a part of it."""
    n = min(len(one), len(other))
    return one[:n] == other[:n]


class Aliases:
    """The classes of one scope."""

    def __init__(self, project: Project, scope: Scope) -> None:
        self.project = project
        self.scope = scope
        self._parent: dict[Place, Place] = {}
        self._by_root: dict[str, list[Place]] = {}
        for node in own_nodes(scope.body):
            self._learn(node)
        captured = {
            name.id
            for child in scope.children
            if not project.is_device_code(child)
            for name in ast.walk(child.node)
            if isinstance(name, ast.Name) and scope.owner(name.id) is scope
        }
        self._shared = {
            self.of(place)
            for places in list(self._by_root.values())
            for place in places
            if place[0] in captured or not scope.local(place[0]) or (len(place) > 1 and not place[1].startswith("["))
        }

    def of(self, place: Place) -> Place:
        """The class of a place, by one of its members."""
        self._add(place)
        while self._parent[place] != place:
            place = self._parent[place]
        return place

    def touches(self, place: Place, known: Place) -> bool:
        """Whether a use of a place may be one of a class: of a member, of a part of one, or of what holds one."""
        self._add(place)
        return any(self.of(other) == known for other in self._by_root[place[0]] if related(place, other))

    def shared(self, known: Place) -> bool:
        """Whether code that is not seen may hold a member of a class: it is an attribute, captured, or from further out."""
        return known in self._shared

    def _add(self, place: Place) -> None:
        if place not in self._parent:
            self._parent[place] = place
            self._by_root.setdefault(place[0], []).append(place)

    def _unite(self, one: Place, other: Place) -> None:
        self._parent[self.of(one)] = self.of(other)

    def _learn(self, node: ast.AST) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._assign(target, node.value)
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            self._assign(node.target, node.value)
        elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            self._assign(node.target, node.iter)
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            self._assign(node.optional_vars, node.context_expr)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr not in _NEW:
            # What is given to a method may be kept in its object.
            holder = place_of(node.func.value)
            if holder is not None and not isinstance(self.project.meaning(self.scope, node.func.value), str | Defined):
                for argument in node.args:
                    for given in self.sources(argument):
                        self._unite(given, holder)
        elif isinstance(node, ast.Name | ast.Attribute | ast.Subscript) and (place := place_of(node)):
            self._add(place)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            values = value.elts if isinstance(value, ast.Tuple | ast.List) else []
            pairs = len(values) == len(target.elts) and not any(isinstance(v, ast.Starred) for v in (*values, *target.elts))
            for at, item in enumerate(target.elts):
                self._assign(item, values[at] if pairs else value)
            return
        if isinstance(target, ast.Starred):
            target = target.value
        found = view_of(target)
        # x[i] = y copies, unless x is a list.
        copies = any(isinstance(part, ast.Slice | ast.Tuple) for part in found.parts) if found is not None else True
        if found is not None and not copies:
            for place in self.sources(value):
                self._unite(place, found.place)

    def sources(self, node: ast.expr | None) -> Iterator[Place]:
        """The places whose memory an expression's value may share."""
        view = view_of(node) if node is not None else None
        if view is not None:
            if not self.project.dotted(self.scope, ast.Name(view.place[0], ast.Load())):
                yield view.place
        elif isinstance(node, ast.IfExp):
            yield from self.sources(node.body)
            yield from self.sources(node.orelse)
        elif isinstance(node, ast.Call):
            yield from self._call(node)
        elif isinstance(node, ast.BinOp):
            for side in (node.left, node.right):
                if isinstance(side, ast.List | ast.Tuple):
                    yield from self.sources(side)
        elif isinstance(node, ast.Attribute) and node.attr in SHAPE:
            return
        elif not isinstance(node, ast.Compare | ast.Constant | ast.JoinedStr | ast.UnaryOp | ast.Lambda | None):
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.comprehension):
                    yield from self.sources(child.iter)
                elif isinstance(child, ast.expr):
                    yield from self.sources(child)

    def _call(self, node: ast.Call) -> Iterator[Place]:
        dotted = self.project.dotted(self.scope, node.func)
        module, _, name = dotted.rpartition(".")
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        if dotted in (REGION, ACCUMULATOR, PRELOAD, PRELOAD_MUT):
            arguments = node.args if dotted in (PRELOAD, PRELOAD_MUT) else arguments[:1]
        elif module.partition(".")[0] == "numpy":
            # With 'out=' the result is that array.
            given = [keyword.value for keyword in node.keywords if keyword.arg == "out"]
            arguments = arguments if name in SHARING else given
        elif module == "builtins" and name in _VALUES:
            return
        elif isinstance(node.func, ast.Attribute) and not dotted:
            if node.func.attr in _NEW:
                return
            yield from self.sources(node.func.value)
        for argument in arguments:
            yield from self.sources(argument)
