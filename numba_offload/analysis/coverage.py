"""Does a kernel assign every owned element of a Region before it reads any? Then nothing need be sent over.

A forward must-analysis inside the ``indices()`` loop: on every path from the loop's body to its next iteration the
element at the loop variable is assigned whole, by the kernel or by a device function that it calls, and no read of the
Region can come before. The loop itself must run on every path through the kernel that does not end in an error. It may be
the loop over another Region's indices: where an index serves two Regions, the launch checks that both are partitioned
alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from numba.core import ir, types

from numba_offload.analysis.walk import Body, Place, call_arguments
from numba_offload.device.types import (
    IndicesType,
    OwnedIndexType,
    RegionType,
    ViewType,
    is_owned_tuple,
    views_inside,
)
from numba_offload.targets.pipeline import TypedFunction


@dataclass(frozen=True)
class Coverage:
    """Whether, why, and where."""

    ok: bool
    why: str
    line: int = 0


@dataclass(frozen=True)
class _Loop:
    header: int
    body: frozenset[int]
    entry: int
    exit: int
    variable: str
    line: int
    own: bool


TypedFunctions = Mapping[Any, TypedFunction]


def overwritten_first(body: Body, leaf: str, region: RegionType, functions: TypedFunctions) -> Coverage:
    """Decide for one leaf of a kernel, which is a ``region``. ``functions``: the typed IR of the functions it calls."""
    loops = _index_loops(body, region)
    line = _covering_call(body, leaf, region, functions)
    if line:
        return Coverage(True, f"a device function assigns every owned element of {leaf} before any is read", line)
    if not loops:
        return Coverage(False, f"there is no loop over {leaf}.indices() that assigns every element")
    why = ""
    for loop in loops:
        reason = _covers(body, leaf, loop, functions)
        if reason is None:
            return Coverage(True, f"every owned element of {leaf} is assigned before any is read", loop.line)
        why = why or reason
    return Coverage(False, why)


def _covering_call(body: Body, leaf: str, region: RegionType, functions: TypedFunctions) -> int:
    """The line of a call that runs on every path, before any read, of a function that covers the Region; else 0."""
    returns = [label for label, b in body.blocks.items() if isinstance(b.terminator, ir.Return)]
    for place, stmt, key in body.calls():
        handed = [v for v in call_arguments(stmt.value) if _touches(body, v, leaf)]
        if not handed or key not in functions or not all(isinstance(body.type_of(v), RegionType) for v in handed):
            continue
        if not all(body.dominates(place, body.end_of(label)) for label in returns):
            continue
        earlier = any(
            _reads(body, other, leaf) and other is not stmt and not body.dominates(place, where)
            for where, other in body.statements()
        )
        if not earlier and overwritten_first(Body(functions[key]), leaf, region, functions).ok:
            return int(stmt.loc.line)
    return 0


def _touches(body: Body, var: ir.Var, leaf: str) -> bool:
    return any(leaf in part.leaves for part in views_inside(body.type_of(var)))


def _index_loops(body: Body, region: RegionType) -> list[_Loop]:
    """Loops whose variable runs over all owned indices of the region, its own first."""
    loops = []
    for place, stmt in body.statements():
        if not (isinstance(stmt, ir.Assign) and isinstance(stmt.value, ir.Expr) and stmt.value.op == "iternext"):
            continue
        source = body.origin(stmt.value.value)
        if source is None or not isinstance(source[1].value, ir.Expr) or source[1].value.op != "getiter":
            continue
        indices = body.type_of(source[1].value.value)
        if not isinstance(indices, IndicesType) or len(indices.region.leaves) != 1:
            continue
        if indices.region.strategy != region.strategy:
            continue
        header = place.label
        branch = body.blocks[header].terminator
        loop = body.cfg.loops().get(header)
        first = next(
            (
                s.target.name
                for s in body.blocks[header].body
                if isinstance(s, ir.Assign)
                and isinstance(s.value, ir.Expr)
                and s.value.op == "pair_first"
                and s.value.value.name == stmt.target.name
            ),
            None,
        )
        if loop is None or first is None or not isinstance(branch, ir.Branch):
            continue
        loops.append(
            _Loop(
                header, frozenset(loop.body), branch.truebr, branch.falsebr, first, source[1].loc.line,
                indices.region.leaves == region.leaves,
            )
        )
    return sorted(loops, key=lambda loop: not loop.own)


def _is_element(body: Body, index: ir.Var, loop: _Loop) -> bool:
    """Whether an index is the loop variable itself, whole."""
    ty = body.type_of(index)
    if not (isinstance(ty, OwnedIndexType) or is_owned_tuple(ty)):
        return False
    name = index.name
    for _ in range(64):
        if name == loop.variable:
            return True
        found = body.single_definition(name)
        if found is None:
            return False
        value = found[1].value
        if isinstance(value, ir.Var):
            name = value.name
        elif isinstance(value, ir.Expr) and value.op == "build_tuple" and len(value.items) == 1:
            name = value.items[0].name
        elif isinstance(value, ir.Expr) and value.op == "build_tuple":
            return all(_component_of(body, item, axis, loop) for axis, item in enumerate(value.items))
        else:
            return False
    return False


def _component_of(body: Body, item: ir.Var, axis: int, loop: _Loop) -> bool:
    found = body.origin(item)
    if found is None or not isinstance(found[1].value, ir.Expr):
        return False
    expr = found[1].value
    if expr.op not in ("static_getitem", "getitem") or expr.index != axis:
        return False
    name = expr.value.name
    for _ in range(64):
        if name == loop.variable:
            return True
        definition = body.single_definition(name)
        if definition is None:
            return False
        value = definition[1].value
        if isinstance(value, ir.Var):
            name = value.name
        elif isinstance(value, ir.Expr) and value.op == "exhaust_iter":
            name = value.value.name
        else:
            return False
    return False


def _assigns(body: Body, stmt: ir.Stmt, leaf: str, loop: _Loop) -> bool:
    if not isinstance(stmt, ir.SetItem):
        return False
    target = body.type_of(stmt.target)
    return isinstance(target, RegionType) and target.leaves == frozenset([leaf]) and _is_element(body, stmt.index, loop)


def _reads(body: Body, stmt: ir.Stmt, leaf: str) -> bool:
    """Whether a statement may read an element of the leaf, or make something through which it can be read."""
    if isinstance(stmt, ir.SetItem | ir.StaticSetItem):
        return _touches(body, stmt.value, leaf)
    if not (isinstance(stmt, ir.Assign) and isinstance(stmt.value, ir.Expr)):
        return False
    expr = stmt.value
    if expr.op in ("getitem", "static_getitem"):
        return isinstance(body.type_of(expr.value), ViewType) and _touches(body, expr.value, leaf)
    if expr.op == "getiter":
        return _touches(body, expr.value, leaf) and not isinstance(body.type_of(expr.value), IndicesType)
    if expr.op == "call":
        return _call_reads(body, expr, leaf)
    if expr.op == "getattr":
        return expr.attr == "local" and _touches(body, expr.value, leaf)
    return False


def _call_reads(body: Body, call: ir.Expr, leaf: str) -> bool:
    """Whether a call may read. A device function that is handed the Region may: see ``_callee`` for those that do not."""
    function = body.type_of(call.func)
    if isinstance(function, types.BoundFunction):
        if function.typing_key == "offload.indices":
            return False
        if any(leaf in part.leaves for part in views_inside(function)):
            return True
    elif isinstance(function, types.Function) and function.typing_key is len:
        return False
    return any(_touches(body, v, leaf) for v in call_arguments(call))


def _reads_assigned(body: Body, stmt: ir.Stmt, leaf: str, loop: _Loop) -> bool:
    """Whether a read is of the loop's own element, which one iteration has assigned by then."""
    expr = stmt.value if isinstance(stmt, ir.Assign) else None
    if not isinstance(expr, ir.Expr) or expr.op not in ("getitem", "static_getitem"):
        return False
    index = expr.index if isinstance(expr.index, ir.Var) else expr.index_var
    return isinstance(body.type_of(expr.value), RegionType) and _is_element(body, index, loop)


def _callee(
    body: Body,
    call: ir.Expr,
    leaf: str,
    elements: Callable[[ir.Var], bool],
    functions: TypedFunctions,
    assigned: bool,
    depth: int = 0,
) -> str:
    """What a call of a device function does to the element: ``assigns`` it, is ``unrelated``, or ``unknown``.

    ``elements``: whether a variable of the caller is the element's index, whole. ``assigned``: the element already is.
    """
    arguments = call_arguments(call)
    if not any(_touches(body, v, leaf) for v in arguments):
        return "unrelated"
    function = body.type_of(call.func)
    if not isinstance(function, types.Dispatcher) or len(arguments) != len(call.args) or depth > 8:
        return "unknown"
    typed = functions.get(function.dispatcher.get_overload(body.typed.calltypes[call].args))
    if typed is None:
        return "unknown"
    callee = Body(typed)
    indices = {k for k, v in enumerate(call.args) if elements(v)}

    def is_parameter(var: ir.Var) -> bool:
        found = callee.origin(var)
        return found is not None and isinstance(found[1].value, ir.Arg) and found[1].value.index in indices

    done: dict[int, bool] = {}
    headers = callee.cfg.loops()
    for label in callee.cfg.topo_order():
        incoming = [p for p, _ in callee.cfg.predecessors(label)]
        if label in headers:
            incoming = [p for p in incoming if p not in headers[label].body]
        state = all(done.get(p, False) for p in incoming) if incoming else assigned
        for stmt in callee.blocks[label].body:
            if isinstance(stmt, ir.SetItem) and _touches(callee, stmt.target, leaf) and is_parameter(stmt.index):
                target = callee.type_of(stmt.target)
                state = state or (isinstance(target, RegionType) and target.leaves == frozenset([leaf]))
            expr = stmt.value if isinstance(stmt, ir.Assign) else None
            if isinstance(expr, ir.Expr) and expr.op == "call":
                inner = _callee(callee, expr, leaf, is_parameter, functions, state, depth + 1)
                if inner != "unknown":
                    state = state or inner == "assigns"
                    continue
            if _reads(callee, stmt, leaf):
                index = getattr(expr, "index", None)
                own = isinstance(index, ir.Var) and is_parameter(index) and expr is not None and expr.op == "getitem"
                if not (state and own):
                    return "unknown"
        done[label] = state
    returns = [label for label, b in callee.blocks.items() if isinstance(b.terminator, ir.Return)]
    return "assigns" if returns and all(done.get(label, False) for label in returns) else "unrelated"


def _covers(body: Body, leaf: str, loop: _Loop, functions: TypedFunctions) -> str | None:
    """None if the loop assigns everything first; else why not."""
    blocks = body.blocks
    cfg = body.cfg
    if any(isinstance(b.terminator, ir.Return) for label, b in blocks.items() if label in loop.body):
        return f"the loop over {leaf}.indices() may be left early"
    for label in loop.body:
        for successor, _ in cfg.successors(label):
            if successor not in loop.body and label != loop.header and not _ends_in_error(body, successor):
                return f"the loop over {leaf}.indices() may be left early by break or return"
    # Every path through the kernel that ends without an error must pass the loop's header.
    returns = [label for label, b in blocks.items() if isinstance(b.terminator, ir.Return)]
    if not all(label == loop.header or loop.header in cfg.dominators()[label] for label in returns):
        return f"some path through the kernel returns before the loop over {leaf}.indices()"
    # The header must not be inside another loop that could run zero times: dominance of the returns rules that out.
    problem = _walk_body(body, leaf, loop, functions)
    if problem:
        return problem
    before = [
        (place, stmt)
        for place, stmt in body.statements()
        if _reads(body, stmt, leaf) and not _within(loop, place) and not body.dominates(Place(loop.header, 0), place)
    ]
    if before:
        return f"line {before[0][1].loc.line} may read {leaf} before the loop assigns it"
    return None


def _within(loop: _Loop, place: Place) -> bool:
    return place.label in loop.body


def _ends_in_error(body: Body, label: int) -> bool:
    return isinstance(body.blocks[label].terminator, ir.StaticRaise | ir.DynamicRaise | ir.Raise)


def _walk_body(body: Body, leaf: str, loop: _Loop, functions: TypedFunctions) -> str | None:
    """Must-analysis over the loop's blocks: assigned on entry to each block, on every path of one iteration."""
    cfg = body.cfg
    order = [label for label in cfg.topo_order() if label in loop.body and label != loop.header]
    assigned_out: dict[int, bool] = {loop.header: False}
    inner_headers = {h for h in cfg.loops() if h in loop.body and h != loop.header}
    for label in order:
        incoming = [p for p, _ in cfg.predecessors(label) if p in loop.body]
        if label in inner_headers:
            inner = cfg.loops()[label].body
            incoming = [p for p in incoming if p not in inner]
        state = all(assigned_out.get(p, False) for p in incoming) if incoming else False
        for stmt in body.blocks[label].body:
            expr = stmt.value if isinstance(stmt, ir.Assign) else None
            if isinstance(expr, ir.Expr) and expr.op == "call":
                outcome = _callee(body, expr, leaf, lambda v: _is_element(body, v, loop), functions, state)
                if outcome != "unknown":
                    state = state or outcome == "assigns"
                    continue
            if _reads(body, stmt, leaf) and not (state and _reads_assigned(body, stmt, leaf, loop)):
                return f"line {stmt.loc.line} may read {leaf} before it is assigned"
            state = state or _assigns(body, stmt, leaf, loop)
        assigned_out[label] = state
    latches = [p for p, _ in cfg.predecessors(loop.header) if p in loop.body]
    if not latches or not all(assigned_out.get(p, False) for p in latches):
        return f"some path through the loop over {leaf}.indices() does not assign the element"
    return None
