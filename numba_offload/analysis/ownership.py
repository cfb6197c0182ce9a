"""Which writes a kernel may make: at indices that this thread provably owns, and nowhere else.

Types carry most of the proof: an owned index has a type of its own, nothing converts to it, arithmetic on it is a
plain integer. What types cannot see is checked here on the typed IR: that the index was *assigned from an iteration*
on every path that reaches its use (Numba zero-fills an undefined variable), and that the components of an index over
several axes serve together, from one unpacking of one loop variable.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass

from numba.core import ir, types

from numba_offload.analysis.walk import Body, Place, call_arguments, is_ours
from numba_offload.device.access import is_index
from numba_offload.device.types import (
    AccumulatorType,
    IndicesIterType,
    Leaves,
    MutableArrayType,
    OwnedIndexType,
    ReadArrayType,
    RecordRefType,
    RegionType,
    ViewType,
    describe_leaves,
    inside,
    is_owned_tuple,
)
from numba_offload.device.views import can_read_beyond, item_type
from numba_offload.diagnostics.refusals import refusal
from numba_offload.errors import SafetyError

_ATOMIC_HINT = (
    "To add up, count, or take a minimum over many threads, pass Accumulator(array, '+') and call its update(): that is atomic."
)

_MAY_HOLD_VIEWS = {len, iter, next, zip, enumerate, isinstance}
"""Built-in functions that views can be handed to. What they give back has a type that says what it reaches."""

_NUMBAS_OWN = (types.Buffer, types.List, types.Set, types.ListType, types.DictType, types.Record)


@dataclass(frozen=True)
class SharedIndex:
    """An index of the Regions ``source`` serves the Regions ``target``: at launch both must be partitioned alike."""

    source: Leaves
    target: Leaves
    line: int


def refuse(body: Body, loc: ir.Loc, argument: str, problem: str, fix: str) -> SafetyError:
    """A SafetyError in the house's form: where, which argument, what, and the way out."""
    return refusal(body.typed.py_func.__name__, loc.filename, loc.line, argument, problem, fix)


class Ownership:
    """Checks one function. ``shared`` collects what the launch must verify."""

    def __init__(self, body: Body) -> None:
        self.body = body
        self.shared: list[SharedIndex] = []
        self._checking: dict[str, bool] = {}

    def check(self) -> None:
        """Raise SafetyError at the first statement that is not safe."""
        for place, stmt in self.body.statements():
            if isinstance(stmt, ir.SetItem | ir.StaticSetItem):
                self._check_setitem(place, stmt)
            elif isinstance(stmt, ir.SetAttr):
                self._check_setattr(stmt)
            elif isinstance(stmt, ir.Assign):
                self._check_kind(stmt)
                if isinstance(stmt.value, ir.Expr):
                    self._check_expression(place, stmt)
            elif isinstance(stmt, ir.Return):
                self._check_escape(place, stmt.value, stmt.loc, "is returned")

    # ------------------------------------------------------------------------------------------------- statements

    def _index_var(self, stmt: ir.Stmt | ir.Expr) -> ir.Var:
        return stmt.index if isinstance(stmt.index, ir.Var) else stmt.index_var

    def _check_setitem(self, place: Place, stmt: ir.SetItem | ir.StaticSetItem) -> None:
        target = self.body.type_of(stmt.target)
        if isinstance(target, RecordRefType):
            if not target.writable:
                raise self._read_only(stmt.loc, target.leaves)
            return
        if not isinstance(target, ViewType):
            raise self._foreign(stmt.target, target, stmt.loc)
        if isinstance(target, MutableArrayType):
            return
        if isinstance(target, ReadArrayType):
            raise self._read_only(stmt.loc, target.leaves)
        if isinstance(target, AccumulatorType):
            raise self._accumulator(stmt.loc, target)
        assert isinstance(target, RegionType)
        self._check_region_index(place, target, self._index_var(stmt), stmt.loc, "written")

    def _check_setattr(self, stmt: ir.SetAttr) -> None:
        target = self.body.type_of(stmt.target)
        if isinstance(target, RecordRefType) and not target.writable:
            raise self._read_only(stmt.loc, target.leaves)
        if isinstance(target, ViewType):
            raise refuse(
                self.body, stmt.loc, describe_leaves(target.leaves), "the attributes of an array cannot be assigned",
                "assign elements instead",
            )

    def _check_expression(self, place: Place, stmt: ir.Assign) -> None:
        expr = stmt.value
        if expr.op in ("getitem", "static_getitem"):
            value = self.body.type_of(expr.value)
            if isinstance(value, AccumulatorType):
                raise self._accumulator(expr.loc, value)
            if isinstance(value, RegionType):
                self._check_region_index(place, value, self._index_var(expr), expr.loc, "read")
        elif expr.op == "getiter" and isinstance(self.body.type_of(expr.value), RegionType | AccumulatorType):
            region = self.body.type_of(expr.value)
            raise refuse(
                self.body, expr.loc, describe_leaves(region.leaves),
                f"iterating over {'a Region' if isinstance(region, RegionType) else 'an Accumulator'} would read elements "
                "that other threads are writing",
                "iterate over the .indices() of a Region, or pass a second, read-only array",
            )
        elif expr.op == "call":
            self._check_call(place, expr)
        elif expr.op == "inplace_binop":
            left = self.body.type_of(expr.lhs)
            if isinstance(left, ViewType):
                raise refuse(
                    self.body, expr.loc, describe_leaves(left.leaves), "an array cannot be updated in place as a whole",
                    "loop over its .indices() and update elements",
                )
        elif expr.op in ("binop", "unary") and expr.fn not in (operator.is_, operator.is_not):
            for var in expr.list_vars():
                if isinstance(self.body.type_of(var), ViewType | RecordRefType):
                    raise self._not_offered(self.body.type_of(var), expr.loc, f"operator {expr.fn.__name__!r}")

    def _check_kind(self, stmt: ir.Assign) -> None:
        """Kernel code handles this project's views only: Numba's arrays and containers have other rules."""
        ty = self.body.type_of(stmt.target)
        if any(isinstance(part, _NUMBAS_OWN) for part in inside(ty)):
            raise self._foreign(stmt.target, ty, stmt.loc)

    def _check_call(self, place: Place, call: ir.Expr) -> None:
        """Views go to functions that can be looked into, and to a closed list of others."""
        function = self.body.type_of(call.func)
        handed = call_arguments(call)
        if self.body.callee(call) is not None:
            for argument in handed:
                self._check_escape(place, argument, call.loc, "is passed on")
            return
        if isinstance(function, types.BoundFunction):
            if isinstance(function.this, ViewType):
                return
        elif isinstance(function, types.NamedTupleClass):
            return
        elif isinstance(function, types.Function):
            key = function.typing_key
            if key in _MAY_HOLD_VIEWS or is_ours(key) or self._implemented_by_us(function, call):
                return
        for argument in handed:
            for part in inside(self.body.type_of(argument)):
                if isinstance(part, ViewType | RecordRefType):
                    name = getattr(getattr(function, "typing_key", None), "__name__", None) or self.body.shown(call.func)
                    raise self._not_offered(part, call.loc, f"{name}()")
                if isinstance(part, types.Dispatcher | types.FunctionType | types.UndefinedFunctionType):
                    raise refuse(
                        self.body, call.loc, self.body.shown(argument),
                        "a function is handed to code that cannot be looked into",
                        "call the function directly, or pass it to an @offload_function",
                    )

    def _implemented_by_us(self, function: types.Function, call: ir.Expr) -> bool:
        key = function._impl_keys.get(self.body.typed.calltypes[call].args)
        return is_ours(getattr(key, "function", None))

    def _check_escape(self, place: Place, var: ir.Var, loc: ir.Loc, how: str) -> None:
        """An owned index that leaves this function must be valid: the other side trusts its type."""
        if not self._may_leave(place, var):
            raise self._undefined(loc, var, self.body.type_of(var), how)

    def _may_leave(self, place: Place, var: ir.Var) -> bool:
        ty = self.body.type_of(var)
        if (isinstance(ty, OwnedIndexType) and ty.ndim == 1) or is_owned_tuple(ty):
            return self.valid(var, place)
        if isinstance(ty, OwnedIndexType) or not any(isinstance(part, OwnedIndexType) for part in inside(ty)):
            # A component alone is no index: the other side gets a plain integer out of it.
            return True
        if not isinstance(ty, types.BaseTuple):
            return all(not isinstance(part, types.BaseTuple) for part in inside(ty))
        found = self.body.origin(var)
        if found is None:
            return False
        value = found[1].value
        if isinstance(value, ir.Arg):
            return True
        if not isinstance(value, ir.Expr) or value.op != "build_tuple":
            return False
        return all(self._may_leave(found[0], item) for item in value.items)

    # ------------------------------------------------------------------------------------------------ Region index

    def _check_region_index(self, place: Place, region: RegionType, index: ir.Var, loc: ir.Loc, how: str) -> None:
        ty = self.body.type_of(index)
        argument = describe_leaves(region.leaves)
        parts = tuple(ty) if isinstance(ty, types.BaseTuple) else (ty,)
        if not parts or not all(isinstance(p, OwnedIndexType) for p in parts):
            if parts and how == "read" and can_read_beyond(region) and all(is_index(p) for p in parts):
                return  # checked element by element as the kernel runs
            raise self._not_owned(region, ty, loc, argument, how)
        first = parts[0]
        if first.strategy != region.strategy or first.ndim != region.ndim:
            raise refuse(
                self.body, loc, argument,
                f"it is {how} at an index of {describe_leaves(first.leaves)!r}, which is partitioned by "
                f"{first.strategy.shown}, but {argument!r} is partitioned by {region.strategy.shown}",
                f"loop over {argument}.indices() for this access, or partition both arrays alike",
            )
        if region.ndim > 1:
            whole = len(parts) == region.ndim and is_owned_tuple(ty)
            if not whole or not self.valid(index, place):
                raise self._mixed(region, loc, argument, how)
        elif not self.valid(index, place):
            raise self._undefined_region(region, loc, argument, how)
        for part in parts:
            if part.leaves != region.leaves or len(region.leaves) > 1:
                self.shared.append(SharedIndex(part.leaves, region.leaves, loc.line))

    # ---------------------------------------------------------------------------------------------------- validity

    def valid(self, var: ir.Var, place: Place) -> bool:
        """Whether ``var`` holds an index assigned from an iteration, on every path to ``place``."""
        found = self.body.single_definition(var.name)
        if found is None or not self.body.dominates(found[0], place):
            return False
        known = self._checking.get(var.name)
        if known is not None:
            return known
        # A phi that feeds itself around a loop adds nothing new: assume it while its other inputs are checked.
        self._checking[var.name] = True
        self._checking[var.name] = self._sound_source(*found)
        return self._checking[var.name]

    def _sound_source(self, place: Place, stmt: ir.Assign) -> bool:
        value = stmt.value
        ty = self.body.type_of(stmt.target)
        component = isinstance(ty, OwnedIndexType) and ty.ndim > 1
        if isinstance(value, ir.Var):
            return self._owned_type(value) and self.valid(value, place)
        if isinstance(value, ir.Arg):
            return not component
        if not isinstance(value, ir.Expr):
            return False
        if value.op == "pair_first":
            return self._from_indices(value.value)
        if value.op == "phi":
            if component:
                return False
            return all(
                isinstance(v, ir.Var) and self._owned_type(v) and self.valid(v, self.body.end_of(label))
                for v, label in zip(value.incoming_values, value.incoming_blocks, strict=True)
            )
        if value.op == "call":
            # What a callee returns was checked there.
            return self.body.callee(value) is not None
        if value.op == "exhaust_iter":
            return self.valid(value.value, place)
        if value.op in ("static_getitem", "getitem"):
            return self._sound_item(place, value)
        if value.op == "build_tuple":
            return self._sound_tuple(place, value.items)
        if value.op == "cast":
            return self._owned_type(value.value) and self.valid(value.value, place)
        return False

    def _from_indices(self, pair: ir.Var) -> bool:
        """Whether an iteration goes over indices(): other iterators give back whatever was put in."""
        found = self.body.origin(pair)
        if found is None or not isinstance(found[1].value, ir.Expr) or found[1].value.op != "iternext":
            return False
        return isinstance(self.body.type_of(found[1].value.value), IndicesIterType)

    def _pairs_indices(self, pair: ir.Var, position: int) -> bool:
        """Whether item ``position`` of what ``enumerate`` or ``zip`` yields comes straight from indices()."""
        found = self.body.origin(pair)
        if found is None or not isinstance(found[1].value, ir.Expr) or found[1].value.op != "iternext":
            return False
        iterator = self.body.type_of(found[1].value.value)
        if isinstance(iterator, types.EnumerateType):
            return position == 1 and isinstance(iterator.source_type, IndicesIterType)
        if isinstance(iterator, types.ZipType):
            return isinstance(iterator.source_types[position], IndicesIterType)
        return False

    def _owned_type(self, var: ir.Var) -> bool:
        ty = self.body.type_of(var)
        return isinstance(ty, OwnedIndexType) or is_owned_tuple(ty)

    def _sound_item(self, place: Place, expr: ir.Expr) -> bool:
        """An item taken out of a tuple: of a whole index, or of a tuple that was built here."""
        if self._owned_type(expr.value):
            return self.valid(expr.value, place)
        found = self.body.origin(expr.value)
        if found is None or not isinstance(found[1].value, ir.Expr):
            return False
        built = found[1].value
        if built.op == "exhaust_iter":
            inner = self.body.origin(built.value)
            if inner is None or not isinstance(inner[1].value, ir.Expr):
                return False
            found, built = inner, inner[1].value
        if not isinstance(expr.index, int):
            return False
        if built.op == "pair_first":
            return self.body.dominates(found[0], place) and self._pairs_indices(built.value, expr.index)
        if built.op != "build_tuple":
            return False
        item = built.items[expr.index]
        return self._owned_type(item) and self.valid(item, found[0])

    def _sound_tuple(self, place: Place, items: list[ir.Var]) -> bool:
        """Components put together again: all of one unpacking, in order."""
        if len(items) == 1:
            return self.valid(items[0], place)
        roots = {self._unpacked_from(item, axis) for axis, item in enumerate(items)}
        if len(roots) != 1 or None in roots:
            return False
        return all(self.valid(item, place) for item in items)

    def _unpacked_from(self, item: ir.Var, axis: int) -> str | None:
        """The name of the whole index whose component ``axis`` this is."""
        found = self.body.origin(item)
        if found is None or not isinstance(found[1].value, ir.Expr):
            return None
        expr = found[1].value
        if expr.op not in ("static_getitem", "getitem") or getattr(expr, "index", None) != axis:
            return None
        whole = expr.value
        # Every unpacking of one loop variable, in one iteration, gives the same components.
        while True:
            inner = self.body.single_definition(whole.name)
            if inner is None:
                return None
            value = inner[1].value
            if isinstance(value, ir.Var):
                whole = value
            elif isinstance(value, ir.Expr) and value.op == "exhaust_iter":
                whole = value.value
            else:
                return whole.name if is_owned_tuple(self.body.type_of(whole)) else None

    # ---------------------------------------------------------------------------------------------------- messages

    def _accumulator(self, loc: ir.Loc, acc: AccumulatorType) -> SafetyError:
        argument = describe_leaves(acc.leaves)
        return refuse(
            self.body, loc, argument, f"the elements of the Accumulator {argument!r} can neither be read nor assigned",
            f"update it: {argument}.update(index, value)",
        )

    def _read_only(self, loc: ir.Loc, leaves: Leaves) -> SafetyError:
        argument = describe_leaves(leaves)
        return refuse(
            self.body, loc, argument,
            f"{argument!r} is shared by all threads, so a kernel may read it but not write it",
            f"pass Region({argument}) and assign at an index from {argument}.indices(). {_ATOMIC_HINT}",
        )

    def _foreign(self, var: ir.Var, ty: types.Type, loc: ir.Loc) -> SafetyError:
        shown = self.body.shown(var)
        return refuse(
            self.body, loc, "" if shown == "it" else shown,
            f"kernel code made or met a value of Numba's type {ty}, which has no place in a safe kernel",
            "pass the array as an argument; use scalars and tuples for local values",
        )

    def _not_offered(self, view: ViewType | RecordRefType, loc: ir.Loc, what: str) -> SafetyError:
        argument = describe_leaves(view.leaves)
        return refuse(
            self.body, loc, argument, f"{what} is not among the operations that kernel code has for arrays",
            f"use {argument!r} by elements, or write the operation as an @offload_function",
        )

    def _not_owned(
        self, region: RegionType, index: types.Type, loc: ir.Loc, argument: str, how: str
    ) -> SafetyError:
        if item_type(region, index) is not None and isinstance(item_type(region, index), ViewType):
            problem = f"a slice of the Region {argument!r} is {how}; it reaches elements of other threads"
        else:
            problem = (
                f"the Region {argument!r} is {how} at a plain integer index, which may belong to another thread"
                " (arithmetic on an owned index gives a plain integer)"
            )
        if how == "read":
            fix = (
                f"read only at an index from {argument}.indices(); to read neighbours pass a second array that the "
                "kernel does not write, or use a strategy that makes the read legal (RedBlack). "
                # `s[0] += 1` is met as a read first.
                f"{_ATOMIC_HINT}"
            )
        else:
            fix = (
                f"assign at the loop variable of 'for i in {argument}.indices()', or choose a strategy under which "
                f"the thread owns that element. {_ATOMIC_HINT}"
            )
        return refuse(self.body, loc, argument, problem, fix)

    def _mixed(self, region: RegionType, loc: ir.Loc, argument: str, how: str) -> SafetyError:
        return refuse(
            self.body, loc, argument,
            f"it is {how} at components that do not come together from one unpacking of one loop variable of "
            ".indices(), so the element may belong to another thread",
            f"write 'for i, j in {argument}.indices():' and use [i, j] together and in that order; pass the whole index to a "
            "device function, not its components",
        )

    def _undefined_region(self, region: RegionType, loc: ir.Loc, argument: str, how: str) -> SafetyError:
        return refuse(
            self.body, loc, argument,
            f"it is {how} at an index that may not have been assigned by an iteration of .indices() on every path "
            "here (a loop may run zero times)",
            f"move the access into the loop 'for i in {argument}.indices()'",
        )

    def _undefined(self, loc: ir.Loc, var: ir.Var, ty: types.Type, how: str) -> SafetyError:
        first = next(part for part in inside(ty) if isinstance(part, OwnedIndexType))
        argument = describe_leaves(first.leaves)
        return refuse(
            self.body, loc, argument,
            f"an index of {argument!r} {how} where it may not have been assigned by an iteration of .indices() on "
            "every path (a loop may run zero times)",
            f"do it inside the loop, or use int({self.body.shown(var)}) if only its value is needed",
        )
