"""NO101 and NO102: managed launches in loops that move again what has not changed, or what nobody looks at."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from numba_offload.lint.arrays import View, view_of
from numba_offload.lint.finding import Remark, listed
from numba_offload.lint.launches import Argument, Launch
from numba_offload.lint.parameters import Use, parameter_use, reads_first
from numba_offload.lint.programs import HostProgram, Loop


def loop_remarks(program: HostProgram) -> Iterator[Remark]:
    """Every launch whose transfers its loop repeats for nothing."""
    if program.optimised:
        return
    for launch in program.launches:
        loop = program.loop_around(launch.node)
        if loop is not None:
            yield from _launch(program, launch, loop)


def _launch(program: HostProgram, launch: Launch, loop: Loop) -> Iterator[Remark]:
    uses = program.repeated(loop)
    over: list[Argument] = []
    back: list[Argument] = []
    written = [u.place for u in uses if u.how == "kernel" and u.argument is not None and u.argument.wrapper]
    taken = {program.aliases.of(place) for place in written}
    optimise_only = False
    for argument in launch.arguments:
        view = view_of(argument.array)
        if view is None or not _is_managed(program, argument, view) or not program.steady(view.place, view.parts, loop):
            continue
        use = parameter_use(program.project, program.project.scope_of(launch.kernel.node), argument.parameter)
        known = program.aliases.of(view.place)
        reads, writes = program.touched(uses, known)
        if _is_result(launch, argument, use):
            if not reads:
                back.append(argument)
            elif not writes and _reads_first(program, launch, argument, use):
                over.append(argument)
                optimise_only = True
        elif _is_input(argument, use) and not writes:
            over.append(argument)
            optimise_only = optimise_only or known in taken
    # What comes back goes over, too: told once.
    if over:
        yield _over(program, launch, loop, over, optimise_only)
    if back:
        yield _back(program, launch, loop, back)


def _is_managed(program: HostProgram, argument: Argument, view: View) -> bool:
    """Whether the host's array itself is passed, and no preload holds it."""
    hidden = bool(argument.wrapper) and argument.array is argument.node
    return not hidden and program.aliases.of(view.place) not in program.preloaded and not program.is_on_device(view.place)


def _is_result(launch: Launch, argument: Argument, use: Use) -> bool:
    if launch.kernel.unsafe and not argument.wrapper:
        return Use.WRITTEN in use
    return bool(argument.wrapper) and bool(use & (Use.WRITTEN | Use.UPDATED | Use.LOCAL))


def _is_input(argument: Argument, use: Use) -> bool:
    changed = Use.WRITTEN | Use.UPDATED | Use.LOCAL
    if argument.wrapper:
        return Use.ELEMENTS in use and not use & (changed | Use.UNKNOWN)
    return Use.ELEMENTS in use and not use & (changed | Use.REGION)


def _reads_first(program: HostProgram, launch: Launch, argument: Argument, use: Use) -> bool:
    inner = program.project.scope_of(launch.kernel.node)
    return bool(use & (Use.UPDATED | Use.LOCAL)) or reads_first(inner, argument.parameter)


def _names(arguments: list[Argument]) -> tuple[str, str, str]:
    shown = [ast.unparse(argument.array) for argument in arguments]
    several = len(set(shown)) > 1
    return listed(shown), ", ".join(dict.fromkeys(shown)), "" if several else "s"


def _over(program: HostProgram, launch: Launch, loop: Loop, arguments: list[Argument], optimise_only: bool) -> Remark:
    names, given, s = _names(arguments)
    it = "it" if s else "them"
    go = "goes" if s else "go"
    fix = _optimise(program)
    if not optimise_only:
        fix += f", or keep {it} there around the loop: 'with preload({given}) as ...:', and pass {_handle(s)}"
    return Remark(
        "NO101", arguments[0].node,
        f"{names} {go} to the device at every launch of {launch.kernel.name} in the loop at line {loop.lineno}, where the host "
        f"does not change {it}",
        fix,
    )


def _back(program: HostProgram, launch: Launch, loop: Loop, arguments: list[Argument]) -> Remark:
    names, given, s = _names(arguments)
    come = "comes" if s else "come"
    it = "it" if s else "them"
    return Remark(
        "NO102", arguments[0].node,
        f"{names} {come} back at every launch of {launch.kernel.name} in the loop at line {loop.lineno}, where the host does not "
        f"read {it}",
        f"{_optimise(program)}, or keep {it} there around the loop: 'with preload_mut({given}) as ...:', and wrap {_handle(s)}",
    )


def _optimise(program: HostProgram) -> str:
    if program.function is None:
        return "move the loop into a function decorated with @optimize_transfers"
    return f"decorate {program.function.name} with @optimize_transfers"


def _handle(s: str) -> str:
    return "the handle" if s else "the handles"
