"""What a kernel does to each array leaf, from typed IR: nothing, reads, writes, or writes everything first."""

from __future__ import annotations

from dataclasses import dataclass, field

from numba.core import ir, types

from numba_offload.analysis.coverage import overwritten_first
from numba_offload.analysis.ownership import Ownership, SharedIndex
from numba_offload.analysis.walk import Body, call_arguments, reachable
from numba_offload.device.reductions import REDUCTIONS
from numba_offload.device.types import (
    Leaves,
    MutableArrayType,
    RecordRefType,
    RegionType,
    ViewType,
    views_inside,
)
from numba_offload.device.views import item_type
from numba_offload.targets.pipeline import TypedFunction

_ONLY_ASK = {"shape", "size", "ndim", "itemsize", "T", "indices", "local", "origin", "update"}


@dataclass(frozen=True)
class Use:
    """One access in the source."""

    what: str
    filename: str
    line: int
    whole: bool = False


@dataclass
class LeafUses:
    """All accesses of one leaf."""

    reads: list[Use] = field(default_factory=list)
    writes: list[Use] = field(default_factory=list)


@dataclass(frozen=True)
class LeafIntent:
    """A leaf's map and why. For ``from`` a launch must still establish that the partition covers the array."""

    name: str
    map: str
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Intents:
    """The outcome of the host pass's analyses for one kernel."""

    leaves: dict[str, LeafIntent]
    shared_indices: tuple[SharedIndex, ...]


class _Collector:
    def __init__(self) -> None:
        self.uses: dict[str, LeafUses] = {}

    def note(self, kind: str, leaves: Leaves, what: str, loc: ir.Loc, whole: bool = False) -> None:
        for leaf in leaves:
            uses = self.uses.setdefault(leaf, LeafUses())
            getattr(uses, kind).append(Use(what, loc.filename, loc.line, whole))

    def function(self, body: Body) -> None:
        """Collect the accesses of one function."""
        for _, stmt in body.statements():
            if isinstance(stmt, ir.SetItem | ir.StaticSetItem):
                self._store(body, stmt)
            elif isinstance(stmt, ir.SetAttr):
                target = body.type_of(stmt.target)
                if isinstance(target, RecordRefType):
                    self.note("writes", target.leaves, f"field {stmt.attr} is written", stmt.loc)
            elif isinstance(stmt, ir.Assign) and isinstance(stmt.value, ir.Expr):
                self._expression(body, stmt)

    def _store(self, body: Body, stmt: ir.SetItem | ir.StaticSetItem) -> None:
        target = body.type_of(stmt.target)
        value = body.type_of(stmt.value)
        if isinstance(value, ViewType | RecordRefType):
            self.note("reads", value.leaves, "is copied from", stmt.loc)
        if isinstance(target, RecordRefType):
            self.note("writes", target.leaves, "a field is written", stmt.loc)
        elif isinstance(target, ViewType):
            region = isinstance(target, RegionType)
            how = "is written at an owned index" if region else "is written"
            self.note("writes", target.leaves, how, stmt.loc, whole=region)

    def _expression(self, body: Body, stmt: ir.Assign) -> None:
        expr = stmt.value
        result = body.type_of(stmt.target)
        if expr.op in ("getitem", "static_getitem"):
            value = body.type_of(expr.value)
            if isinstance(value, ViewType | RecordRefType) and not isinstance(result, ViewType | RecordRefType):
                self.note("reads", value.leaves, "an element is read", expr.loc)
        elif expr.op == "getattr":
            value = body.type_of(expr.value)
            if isinstance(value, RecordRefType) and not isinstance(result, ViewType | RecordRefType):
                self.note("reads", value.leaves, f"field {expr.attr} is read", expr.loc)
            elif isinstance(value, ViewType) and expr.attr not in _ONLY_ASK and isinstance(result, types.Number):
                self.note("reads", value.leaves, f".{expr.attr} is read", expr.loc)
        elif expr.op == "getiter":
            value = body.type_of(expr.value)
            if isinstance(value, ViewType):
                item = item_type(value, types.int64)
                if not isinstance(item, ViewType):
                    self.note("reads", value.leaves, "is iterated over", expr.loc)
        elif expr.op == "call":
            self._call(body, expr)
        elif expr.op in ("binop", "inplace_binop", "unary"):
            for var in expr.list_vars():
                ty = body.type_of(var)
                if isinstance(ty, ViewType):
                    self.note("reads", ty.leaves, "is used in an expression", expr.loc)

    def _call(self, body: Body, expr: ir.Expr) -> None:
        if body.callee(expr) is not None:
            return
        function = body.type_of(expr.func)
        arguments = [body.type_of(v) for v in call_arguments(expr)]
        if isinstance(function, types.BoundFunction):
            if function.typing_key == "offload.indices":
                return
            if function.typing_key == "offload.update":
                self.note("writes", function.this.leaves, "is updated atomically", expr.loc)
                return
            arguments.append(function.this)
        name = getattr(getattr(function, "typing_key", None), "__name__", str(function))
        if name in ("len", "outer_axis", "inner_axis"):
            return
        reads_only = isinstance(function, types.BoundFunction) or name in REDUCTIONS
        for ty in arguments:
            for part in views_inside(ty):
                self.note("reads", part.leaves, f"is handed to {name}", expr.loc)
                if isinstance(part, MutableArrayType) and not reads_only:
                    # Not one to look into: the safe answer.
                    self.note("writes", part.leaves, f"is handed to {name}", expr.loc)


def analyse(
    root: TypedFunction, typed_functions: dict[object, TypedFunction], leaves: dict[str, ViewType], unsafe: bool
) -> Intents:
    """Check ownership and infer the map of each array leaf of a kernel.

    Raises SafetyError where the kernel could write what it may not.
    """
    bodies = reachable(root, typed_functions)
    shared: list[SharedIndex] = []
    collector = _Collector()
    for body in bodies:
        if not unsafe:
            ownership = Ownership(body)
            ownership.check()
            shared += ownership.shared
        collector.function(body)
    outcome: dict[str, LeafIntent] = {}
    for name, ty in leaves.items():
        uses = collector.uses.get(name, LeafUses())
        outcome[name] = _decide(name, ty, uses, bodies[0], typed_functions)
    return Intents(outcome, tuple(dict.fromkeys(shared)))


def _decide(
    name: str, ty: ViewType, uses: LeafUses, kernel: Body, functions: dict[object, TypedFunction]
) -> LeafIntent:
    reads = tuple(dict.fromkeys(f"line {u.line}: {name} {u.what}" for u in uses.reads))
    writes = tuple(dict.fromkeys(f"line {u.line}: {name} {u.what}" for u in uses.writes))
    if not uses.writes:
        if not uses.reads:
            return LeafIntent(name, "none", (f"{name} is never accessed; its shape is not its content",))
        return LeafIntent(name, "to", reads)
    if isinstance(ty, RegionType) and all(u.whole for u in uses.writes):
        coverage = overwritten_first(kernel, name, ty, functions)
        if coverage.ok:
            return LeafIntent(name, "from", (*writes, f"line {coverage.line}: {coverage.why}"))
        return LeafIntent(name, "tofrom", (*reads, *writes, f"not 'from': {coverage.why}"))
    return LeafIntent(name, "tofrom", (*reads, *writes, "not 'from': only parts of elements or blocks are written"))



