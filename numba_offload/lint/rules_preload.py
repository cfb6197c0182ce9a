"""NO201 and NO202: preloads that could have started earlier."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from numba_offload.lint.finding import Remark
from numba_offload.lint.launches import launch
from numba_offload.lint.preloads import Preload
from numba_offload.lint.programs import LOOPS, HostProgram
from numba_offload.lint.project import Defined
from numba_offload.lint.scopes import NESTED, own_nodes

_SLOW = {"numpy.load", "numpy.loadtxt", "numpy.genfromtxt", "numpy.save", "numpy.savetxt", "numpy.savez", "time.sleep"}
_SLOW_PACKAGES = ("numpy.linalg.", "numpy.fft.", "scipy.")
_FEW = 16


def preload_remarks(program: HostProgram, held: list[Preload]) -> Iterator[Remark]:
    """Preloads in loops, and after work of the host's, that their arrays have no part in."""
    for preload in held:
        yield from _in_loop(program, preload, held)
        yield from _late(program, preload)


def _in_loop(program: HostProgram, preload: Preload, held: list[Preload]) -> Iterator[Remark]:
    loop = program.loop_around(preload.statement)
    view, known = preload.view, program.aliases.of(preload.view.place)
    if loop is None or not preload.released or not program.steady(view.place, view.parts, loop):
        return
    uses = program.repeated(loop)
    reads, writes = program.touched(uses, known)
    others = [use for use in uses if use.how in ("preload", "wrap") and program.aliases.touches(use.place, known)]
    beside = [
        use for use in uses
        if use.how == "kernel" and use.node not in preload.region and program.aliases.touches(use.place, known)
    ]  # fmt: skip
    if writes or (preload.mutable and reads) or len(others) > 1 or beside:
        return
    if not preload.mutable and any(other.mutable and program.aliases.of(other.view.place) == known for other in held):
        return
    shown = ast.unparse(preload.node)
    moves = "is copied to the device and back" if preload.mutable else "is copied to the device"
    yield Remark(
        "NO201", preload.node,
        f"{shown} {moves} in every iteration of the loop at line {loop.lineno}, where the host does not "
        f"{'use' if preload.mutable else 'change'} it",
        f"move {preload.verb}({shown}) to before the loop, so that one block holds it throughout",
    )


def _late(program: HostProgram, preload: Preload) -> Iterator[Remark]:
    block, at = program.siblings(preload.statement)
    known = program.aliases.of(preload.view.place)
    taken = {
        name.id for call in own_nodes(preload.statement) if isinstance(call, ast.Call) and call.args
        for argument in call.args for name in ast.walk(argument) if isinstance(name, ast.Name)
    } if isinstance(preload.statement, ast.With) else set()  # fmt: skip
    work = None
    for statement in reversed(block[:at]):
        if _disturbs(program, preload, known, statement):
            break
        if _is_work(program, statement) and not _bound(statement) & taken:
            work = statement
    if work is None:
        return
    shown, line = ast.unparse(preload.node), work.lineno
    what = f"the {'loop' if isinstance(work, LOOPS) else 'work'} at line {line}"
    use = "use" if preload.mutable else "change"
    yield Remark(
        "NO202", preload.node,
        f"{shown} is preloaded after {what}, which does not {use} it: its copy could run meanwhile",
        f"preload it before line {line}: 'handle = {preload.verb}({shown})', with 'handle.release()' at the end",
    )


def _disturbs(program: HostProgram, preload: Preload, known: tuple[str, ...], statement: ast.stmt) -> bool:
    """Whether a preload may not be moved to before a statement."""
    names = {name.id for part in preload.view.parts for name in ast.walk(part) if isinstance(name, ast.Name)}
    if any(isinstance(node, ast.Return | ast.Raise | ast.Break | ast.Continue | ast.Assert) for node in own_nodes(statement)):
        return True
    if isinstance(statement, NESTED):
        return preload.view.place[0] == getattr(statement, "name", "")
    uses = program.within([statement])
    reads, writes = program.touched(uses, known)
    if writes or (preload.mutable and reads):
        return True
    passing = ("bind", "rename", "kernel", "wrap", "preload")
    return any(
        use.how in passing and (program.aliases.touches(use.place, known) or use.place[0] in names) for use in uses if use.place
    )


def _is_work(program: HostProgram, statement: ast.stmt) -> bool:
    """Whether a statement keeps the host busy, and no launch is part of it."""
    calls = [node for node in own_nodes(statement) if isinstance(node, ast.Call)]
    if any(launch(program.project, program.scope, call) is not None for call in calls):
        return False
    if isinstance(statement, LOOPS):
        return not (isinstance(statement, ast.For) and _is_short(statement.iter))
    if not isinstance(statement, ast.Expr | ast.Assign | ast.AnnAssign | ast.AugAssign):
        return False
    return any(_is_slow(program, call) for call in calls)


def _is_slow(program: HostProgram, call: ast.Call) -> bool:
    called = program.project.meaning(program.scope, call.func)
    if isinstance(called, str):
        return called in _SLOW or called.startswith(_SLOW_PACKAGES)
    if not isinstance(called, Defined) or program.project.is_device_code(program.project.scope_of(called.node)):
        return False
    return any(isinstance(node, LOOPS) and not _is_short(getattr(node, "iter", None)) for node in own_nodes(called.node.body))


def _is_short(iterated: ast.expr | None) -> bool:
    if isinstance(iterated, ast.Tuple | ast.List | ast.Set | ast.Constant):
        return True
    if isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Name) and iterated.func.id == "range":
        numbers = [argument.value for argument in iterated.args if isinstance(argument, ast.Constant)]
        return len(numbers) == len(iterated.args) and all(isinstance(n, int) and n <= _FEW for n in numbers)
    return False


def _bound(statement: ast.stmt) -> set[str]:
    return {n.id for n in own_nodes(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
