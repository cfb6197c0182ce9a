"""NO301 to NO303: what the host may not do with an array while a preload holds it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from numba_offload.lint.arrays import VIEW_ATTRIBUTES, Place, place_of
from numba_offload.lint.finding import Remark
from numba_offload.lint.parameters import Use, parameter_use
from numba_offload.lint.preloads import Preload
from numba_offload.lint.programs import HostProgram
from numba_offload.lint.scopes import Scope
from numba_offload.lint.uses import HostUse

_CHANGED = Use.WRITTEN | Use.UPDATED | Use.LOCAL


def borrow_remarks(program: HostProgram, held: list[Preload]) -> Iterator[Remark]:
    """Every use that a preload in force forbids."""
    for preload in held:
        inside = [use for use in program.uses if use.node in preload.region and not use.later]
        names = _names(program, preload)
        own = (preload.view.place, (preload.handle,))
        if any(use.how in ("bind", "rename") and use.place in own for use in inside):
            continue
        for use in inside:
            if use.place in names:
                yield from _array(program, preload, use)
            elif use.place == (preload.handle,) and use.how == "kernel" and not preload.mutable and _is_written(program, use):
                shown = ast.unparse(preload.node)
                yield Remark(
                    "NO303", use.node, f"{preload.handle} is preloaded for reading at line {preload.call.lineno}, and the kernel "
                    "writes it",
                    f"borrow it for writing: preload_mut({shown})",
                )
        for other in held:
            both = preload.mutable or other.mutable
            whole = preload.view.whole and other.view.whole and preload.view.place == other.view.place
            if other is not preload and both and whole and other.call in preload.region:
                yield Remark(
                    "NO303", other.node,
                    f"{other.verb} of {ast.unparse(other.node)}, which {preload.verb} holds since line {preload.call.lineno}",
                    "use the handle of the first, or end that block before",
                )


def _array(program: HostProgram, preload: Preload, use: HostUse) -> Iterator[Remark]:
    name, line = ast.unparse(use.node), preload.call.lineno
    handle = preload.handle or "the handle"
    array = ast.unparse(preload.node)
    if use.how == "kernel" or use.how == "wrap":
        if not preload.view.whole:
            return
        if preload.mutable:
            yield Remark(
                "NO301", use.node, f"{name} is passed while preload_mut holds {array}, since line {line}",
                f"pass the handle: {handle} in place of the array",
            )
        elif use.how == "kernel" and _is_written(program, use):
            yield Remark(
                "NO303", use.node, f"{name} is written by the kernel while {array} is preloaded for reading, since line {line}",
                f"borrow it for writing, preload_mut({array}), and pass Region({handle})",
            )
    elif use.how == "use" and use.writes:
        code = "NO301" if preload.mutable else "NO302"
        yield Remark(
            code, use.node, f"the host writes {name} while {preload.verb} holds {array}, since line {line}",
            "write it before the block or after it",
        )
    elif preload.mutable and preload.view.whole and use.how in ("use", "call"):
        yield Remark(
            "NO301", use.node, f"the host reads {name} while preload_mut holds {array}, since line {line}: its content is on "
            "the device",
            "read it after the block, at whose end it comes back",
        )


def _is_written(program: HostProgram, use: HostUse) -> bool:
    launch, argument = use.launch, use.argument
    if launch is None or argument is None or not argument.parameter:
        return False
    found = parameter_use(program.project, program.project.scope_of(launch.kernel.node), argument.parameter)
    return bool(found & _CHANGED) and (bool(argument.wrapper) or launch.kernel.unsafe is True)


def _names(program: HostProgram, preload: Preload) -> set[Place]:
    """The array's own place, and names that are given once, for all of it or a slice."""
    place = preload.view.place
    found = {place}
    if not _given_once(program.scope, place[0]) or not preload.view.whole:
        return found
    for name, bindings in program.scope.bindings.items():
        value = bindings[0].value
        if len(bindings) == 1 and bindings[0].how == "assign" and value is not None and _is_view(value, place):
            found.add((name,))
    return found


def _given_once(scope: Scope, name: str) -> bool:
    # 'y += 1' works in place.
    return len([binding for binding in scope.bindings.get(name, ()) if binding.how != "augmented"]) == 1


def _is_view(node: ast.expr, place: Place) -> bool:
    """Whether an expression is an array's memory for sure: the name, its transpose, or a slice of it."""
    if isinstance(node, ast.Subscript):
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        plain = all(isinstance(part, ast.Slice | ast.Constant) for part in parts)
        return plain and any(isinstance(part, ast.Slice) for part in parts) and _is_view(node.value, place)
    if isinstance(node, ast.Attribute) and node.attr in VIEW_ATTRIBUTES & {"T", "mT"}:
        return _is_view(node.value, place)
    return place_of(node) == place
