"""Loops over the indices of several axes become nested loops.

``for i, j in view.indices()`` over a lattice is written by the user as one loop. One counter with a division, or one
iterator with two counters, keeps LLVM from vectorising; nested loops do not. The rewrite works on the control-flow
graph, so ``break`` still leaves, and ``continue`` still continues, what the user sees as one loop.
"""

from __future__ import annotations

from typing import Any

from numba.core import ir, ir_utils

from numba_offload.device.indices import inner_axis, outer_axis, splits


def split_index_loops(func_ir: ir.FunctionIR, typemap: dict[str, Any]) -> bool:
    """Rewrite every such loop; returns whether there was one. Phis must have been stripped."""
    found = [
        (label, stmt)
        for label, block in func_ir.blocks.items()
        for stmt in block.body
        if isinstance(stmt, ir.Assign)
        and isinstance(stmt.value, ir.Expr)
        and stmt.value.op == "getiter"
        and splits(typemap[stmt.value.value.name])
    ]
    for label, stmt in found:
        _split(func_ir, label, stmt, typemap[stmt.value.value.name].region.ndim)
    if found:
        func_ir.blocks = ir_utils.rename_labels(func_ir.blocks)
        func_ir._definitions = ir_utils.build_definitions(func_ir.blocks)
    return bool(found)


def _aliases(func_ir: ir.FunctionIR, name: str) -> set[str]:
    """Variables that are the iterator under another name."""
    names = {name}
    grew = True
    while grew:
        grew = False
        for block in func_ir.blocks.values():
            for stmt in block.find_insts(ir.Assign):
                if isinstance(stmt.value, ir.Var) and stmt.value.name in names and stmt.target.name not in names:
                    names.add(stmt.target.name)
                    grew = True
    return names


class _Maker:
    """Fresh variables and statements at one place."""

    def __init__(self, scope: Any, loc: Any) -> None:
        self.scope = scope
        self.loc = loc

    def assign(self, value: Any, prefix: str) -> tuple[ir.Assign, ir.Var]:
        var = ir.Var(self.scope, ir_utils.mk_unique_var(f"${prefix}"), self.loc)
        return ir.Assign(value, var, self.loc), var

    def call(self, function: Any, args: list[ir.Var], prefix: str) -> tuple[list[ir.Assign], ir.Var]:
        first, callee = self.assign(ir.Global(function._name, function, self.loc), f"{prefix}_function")
        second, result = self.assign(ir.Expr.call(callee, args, (), self.loc), prefix)
        return [first, second], result


def _split(func_ir: ir.FunctionIR, label: int, getiter: ir.Assign, ndim: int) -> None:
    blocks = func_ir.blocks
    before = blocks[label]
    loc = getiter.loc
    make = _Maker(before.scope, loc)
    aliases = _aliases(func_ir, getiter.target.name)
    header_label = next(
        lab
        for lab, block in blocks.items()
        for stmt in block.find_insts(ir.Assign)
        if isinstance(stmt.value, ir.Expr) and stmt.value.op == "iternext" and stmt.value.value.name in aliases
    )
    header = blocks[header_label]
    exit_label = header.terminator.falsebr
    next_label = max(blocks) + 1

    # What hands the iterator on moves to where the innermost iterator is made; the rest runs once, where it was.
    position = before.body.index(getiter)
    moved = [
        stmt
        for stmt in before.body[position + 1 : -1]
        if isinstance(stmt, ir.Assign) and stmt.target.name in aliases
    ]
    rest = [stmt for stmt in before.body[position + 1 : -1] if stmt not in moved]

    statements, level = make.call(outer_axis, [getiter.value.value], "axis")
    iterate, iterator = make.assign(ir.Expr.getiter(level, loc), "axis_iter")
    outer_header = next_label
    before.body = [*before.body[:position], *rest, *statements, iterate, ir.Jump(outer_header, loc)]

    leave = exit_label
    for axis in range(ndim - 1):
        head = ir.Block(before.scope, loc)
        body = ir.Block(before.scope, loc)
        head_label, body_label = next_label, next_label + 1
        next_label += 2
        step, pair = make.assign(ir.Expr.iternext(iterator, loc), "axis_next")
        value_stmt, value = make.assign(ir.Expr.pair_first(pair, loc), "axis_value")
        more_stmt, more = make.assign(ir.Expr.pair_second(pair, loc), "axis_more")
        head.body = [step, value_stmt, more_stmt, ir.Branch(more, body_label, leave, loc)]
        statements, level = make.call(inner_axis, [level, value], "axis")
        if axis == ndim - 2:
            innermost = ir.Assign(ir.Expr.getiter(level, loc), getiter.target, loc)
            body.body = [*statements, innermost, *moved, ir.Jump(header_label, loc)]
        else:
            iterate, iterator = make.assign(ir.Expr.getiter(level, loc), "axis_iter")
            body.body = [*statements, iterate, ir.Jump(next_label, loc)]
        blocks[head_label] = head
        blocks[body_label] = body
        leave = head_label
    branch = header.terminator
    header.body[-1] = ir.Branch(branch.cond, branch.truebr, leave, branch.loc)
