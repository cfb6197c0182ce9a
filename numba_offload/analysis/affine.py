"""Accesses whose index range follows from the launch: intervals over owned indices, loop counters and scalars.

A negative index wraps and an index out of range is an error, so every access costs a comparison or two and keeps LLVM
from vectorising. But where an index is arithmetic on an owned index, on the counter of a ``range`` loop and on values
that are the same for the whole launch, its extremes are known on the host before the launch. The host evaluates them
once, and the kernel is compiled in a variant in which the accesses that are in range are not checked again.

Sums, differences and products only: exact on Python integers, and equal to the machine's arithmetic whenever the final
value is in range, because machine integers are those integers modulo 2**64.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from numba.core import ir, types

from numba_offload.device.types import OwnedIndexType, ViewType, is_owned_tuple

Interval = tuple[int, int]
Key = tuple[Any, ...]

_BINARY = {
    operator.add: "+",
    operator.iadd: "+",
    operator.sub: "-",
    operator.isub: "-",
    operator.mul: "*",
    operator.imul: "*",
}

_DEEPEST = 100
"""Levels of an expression; deeper ones, which Python's stack might not hold, are left to the kernel's checks."""


@dataclass(frozen=True)
class Expression:
    """A node: ``const``, ``owned``, ``scalar``, ``shape``, ``range``, or an operator on two nodes."""

    op: str
    args: tuple[Any, ...]

    def evaluate(self, facts: Facts) -> Interval | None:
        """The interval of values in a launch; None where a loop never runs.

        Raises OverflowError where a loop's bounds may be beyond the machine's integers.
        """
        # Once for each node: an index that is doubled again and again has few nodes, and a path for each power of two.
        if id(self) not in facts.known:
            facts.known[id(self)] = self._interval(facts)
        return facts.known[id(self)]

    def _interval(self, facts: Facts) -> Interval | None:
        if self.op == "const":
            return self.args[0], self.args[0]
        if self.op == "owned":
            leaf, axis = self.args
            # Without elements the index was never assigned, and reads as 0.
            return 0, max(facts.shapes[leaf][axis] - 1, 0)
        if self.op == "scalar":
            value = facts.scalars[self.args[0]]
            return value, value
        if self.op == "shape":
            leaf, axis = self.args
            value = facts.shapes[leaf][axis]
            return value, value
        if self.op == "range":
            start, stop = (part.evaluate(facts) for part in self.args)
            if start is None or stop is None:
                return None
            # The loop counts in machine arithmetic from and to what the bounds are modulo 2**64.
            if not all(-(2**63) <= bound < 2**63 for bound in (*start, *stop)):
                raise OverflowError
            if stop[1] - 1 < start[0]:
                return None
            return start[0], stop[1] - 1
        left, right = (part.evaluate(facts) for part in self.args)
        if left is None or right is None:
            return None
        if self.op == "+":
            return left[0] + right[0], left[1] + right[1]
        if self.op == "-":
            return left[0] - right[1], left[1] - right[0]
        corners = [a * b for a in left for b in right]
        return min(corners), max(corners)


def symbols(expressions: Iterable[Expression]) -> set[tuple[str, str]]:
    """The scalars and shapes that expressions depend on: ``("scalar", name)`` and ``("shape", leaf)``."""
    found = set()
    waiting, seen = list(expressions), set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if node.op in ("owned", "shape"):
            found.add(("shape", node.args[0]))
        elif node.op == "scalar":
            found.add(("scalar", node.args[0]))
        elif node.op != "const":
            waiting += node.args
    return found


@dataclass(frozen=True)
class Facts:
    """What a launch knows: shapes by leaf, integer scalars by name."""

    shapes: Mapping[str, tuple[int, ...]]
    scalars: Mapping[str, int]
    known: dict[int, Interval | None] = field(default_factory=dict, repr=False, compare=False)
    """What nodes have evaluated to, by id: for expressions that live as long as this."""


@dataclass(frozen=True)
class Access:
    """One element access. ``key`` names it in every pass over the same source."""

    key: Key
    leaf: str
    indices: tuple[Expression, ...]

    def in_range(self, facts: Facts) -> bool:
        """Whether every index of it is within its axis, in this launch."""
        for axis, index in enumerate(self.indices):
            try:
                interval = index.evaluate(facts)
            except OverflowError:
                return False
            if interval is not None and not (interval[0] >= 0 and interval[1] < facts.shapes[self.leaf][axis]):
                return False
        return True


def affine_accesses(func_ir: ir.FunctionIR, typemap: Mapping[str, types.Type]) -> list[tuple[Any, Access]]:
    """The element accesses of a kernel (its own source, not its callees') that can be decided before a launch.

    Each with the statement that makes it.
    """
    return _Finder(func_ir, typemap).accesses()


class _Finder:
    def __init__(self, func_ir: ir.FunctionIR, typemap: Mapping[str, types.Type]) -> None:
        self.typemap = typemap
        self.statements = [stmt for label in sorted(func_ir.blocks) for stmt in func_ir.blocks[label].body]
        self.definitions: dict[str, list[ir.Assign]] = {}
        for stmt in self.statements:
            if isinstance(stmt, ir.Assign):
                self.definitions.setdefault(stmt.target.name, []).append(stmt)
        self._memo: dict[str, Expression | None] = {}
        self._depths: dict[int, int] = {}
        self._level = 0

    def accesses(self) -> list[tuple[Any, Access]]:
        found = []
        for stmt in self.statements:
            if isinstance(stmt, ir.SetItem | ir.StaticSetItem):
                access = self._access(stmt, stmt, stmt.target)
            elif (
                isinstance(stmt, ir.Assign)
                and isinstance(stmt.value, ir.Expr)
                and stmt.value.op in ("getitem", "static_getitem")
            ):
                access = self._access(stmt, stmt.value, stmt.value.value)
            else:
                continue
            if access is not None:
                found.append((stmt, access))
        return found

    def _definition(self, name: str) -> Any:
        """The value of a name's only definition, through copies; None if there are several."""
        for _ in range(1000):
            found = self.definitions.get(name, [])
            if len(found) != 1:
                return None
            value = found[0].value
            if not isinstance(value, ir.Var):
                return value
            name = value.name
        return None

    def _access(self, stmt: Any, holder: Any, base: ir.Var) -> Access | None:
        view = self.typemap[base.name]
        if not isinstance(view, ViewType) or len(view.leaves) != 1 or self._leaf(base) is None:
            return None
        index = holder.index if isinstance(holder.index, ir.Var) else holder.index_var
        if index is None:
            return None
        parts = self._index(index, view.ndim)
        if parts is None or len(parts) != view.ndim:
            return None
        key = (stmt.loc.line, stmt.loc.col, base.name, index.name)
        return Access(key, next(iter(view.leaves)), tuple(parts))

    def _leaf(self, base: ir.Var) -> str | None:
        """The leaf's name where ``base`` is a whole argument array, not a part of one."""
        value = self._definition(base.name)
        if isinstance(value, ir.Arg):
            return next(iter(self.typemap[base.name].leaves))
        while isinstance(value, ir.Expr) and value.op in ("static_getitem", "getattr"):
            if not isinstance(self.typemap[value.value.name], types.BaseTuple):
                return None
            value = self._definition(value.value.name)
            if isinstance(value, ir.Arg):
                return next(iter(self.typemap[base.name].leaves))
        return None

    def _index(self, var: ir.Var, ndim: int) -> list[Expression] | None:
        ty = self.typemap[var.name]
        if isinstance(ty, types.BaseTuple):
            value = self._definition(var.name)
            if isinstance(value, ir.Expr) and value.op == "build_tuple":
                parts = [self._expression(item) for item in value.items]
                return None if any(p is None for p in parts) else parts  # type: ignore[return-value]
            if is_owned_tuple(ty) and len(ty[0].leaves) == 1:
                leaf = next(iter(ty[0].leaves))
                return [Expression("owned", (leaf, axis)) for axis in range(len(ty))]
            return None
        part = self._expression(var)
        return None if part is None else [part]

    def _expression(self, var: ir.Var) -> Expression | None:
        if var.name not in self._memo:
            self._memo[var.name] = None  # a name defined by itself is not affine
            if self._level < _DEEPEST:
                self._level += 1
                self._memo[var.name] = self._kept(self._build(var))
                self._level -= 1
        return self._memo[var.name]

    def _kept(self, made: Expression | None) -> Expression | None:
        if made is None:
            return None
        depth = 1 + max([self._depths.get(id(part), 1) for part in made.args], default=0)
        self._depths[id(made)] = depth
        return made if depth <= _DEEPEST else None

    def _build(self, var: ir.Var) -> Expression | None:
        ty = self.typemap[var.name]
        if isinstance(ty, OwnedIndexType):
            return Expression("owned", (next(iter(ty.leaves)), ty.axis)) if len(ty.leaves) == 1 else None
        plain = types.unliteral(ty)
        if not isinstance(plain, types.Integer) or (not plain.signed and plain.bitwidth == 64):
            return None
        value = self._definition(var.name)
        if isinstance(value, ir.Const | ir.Global | ir.FreeVar):
            return Expression("const", (value.value,)) if type(value.value) is int else None
        if isinstance(value, ir.Arg):
            return Expression("scalar", (value.name,))
        if not isinstance(value, ir.Expr):
            return None
        if value.op in ("binop", "inplace_binop") and value.fn in _BINARY:
            left, right = self._expression(value.lhs), self._expression(value.rhs)
            if left is None or right is None or plain.bitwidth != 64:
                return None
            return Expression(_BINARY[value.fn], (left, right))
        if value.op == "unary" and value.fn is operator.neg:
            operand = self._expression(value.value)
            return None if operand is None or plain.bitwidth != 64 else Expression("-", (Expression("const", (0,)), operand))
        if value.op == "static_getitem":
            return self._shape(value)
        if value.op == "getattr" and value.attr == "size":
            base = self.typemap[value.value.name]
            if isinstance(base, ViewType) and base.ndim == 1 and self._leaf(value.value):
                return Expression("shape", (self._leaf(value.value), 0))
            return None
        if value.op == "call":
            return self._length(value)
        if value.op == "pair_first":
            return self._counter(value)
        return None

    def _shape(self, value: ir.Expr) -> Expression | None:
        """``x.shape[k]``, also by unpacking."""
        inner = self._definition(value.value.name)
        if isinstance(inner, ir.Expr) and inner.op == "exhaust_iter":
            inner = self._definition(inner.value.name)
        if not (isinstance(inner, ir.Expr) and inner.op == "getattr" and inner.attr == "shape"):
            return None
        if not isinstance(self.typemap[inner.value.name], ViewType) or not isinstance(value.index, int):
            return None
        leaf = self._leaf(inner.value)
        ndim = self.typemap[inner.value.name].ndim
        return None if leaf is None else Expression("shape", (leaf, value.index % ndim))

    def _length(self, value: ir.Expr) -> Expression | None:
        function = self._definition(value.func.name)
        if getattr(function, "value", None) is not len or len(value.args) != 1:
            return None
        if not isinstance(self.typemap[value.args[0].name], ViewType):
            return None
        leaf = self._leaf(value.args[0])
        return None if leaf is None else Expression("shape", (leaf, 0))

    def _counter(self, value: ir.Expr) -> Expression | None:
        """The counter of ``for k in range(...)`` with step 1."""
        step = self._definition(value.value.name)
        if not (isinstance(step, ir.Expr) and step.op == "iternext"):
            return None
        iterator = self._definition(step.value.name)
        if not (isinstance(iterator, ir.Expr) and iterator.op == "getiter"):
            return None
        call = self._definition(iterator.value.name)
        if not (isinstance(call, ir.Expr) and call.op == "call" and len(call.args) in (1, 2)):
            return None
        if getattr(self._definition(call.func.name), "value", None) is not range:
            return None
        bounds = [self._expression(a) for a in call.args]
        if any(b is None for b in bounds):
            return None
        start = bounds[0] if len(bounds) == 2 else Expression("const", (0,))
        return Expression("range", (start, bounds[-1]))
