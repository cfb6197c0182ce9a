"""NO401 to NO404: writes in safe kernels that are refused when they are compiled."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from numba_offload.lint.finding import Remark
from numba_offload.lint.launches import Launch
from numba_offload.lint.owned import Indices
from numba_offload.lint.parameters import Use, parameter_use
from numba_offload.lint.project import Kernel, Project
from numba_offload.lint.scopes import Scope, own_nodes

_PARTITIONS_WITHOUT_BLOCKS = {"GridStride1D", "BlockStriped1D", "Rows", "Columns", "RedBlack", "Permuted"}


def kernel_remarks(project: Project, kernel: Kernel) -> Iterator[Remark]:
    """What is wrong with a kernel's own writes."""
    if kernel.unsafe is not False:
        return
    inner = project.scope_of(kernel.node)
    indices = Indices(project, inner)
    for node in own_nodes(inner.body):
        written = _written(node)
        if written is None or not isinstance(written.value, ast.Name):
            continue
        name = written.value.id
        if inner.owner(name) is not inner:
            if inner.owner(name) is not None:
                yield _captured(kernel, written, name)
        elif [binding.how for binding in inner.bindings[name]] == ["parameter"]:
            yield from _index(indices, written, name)


def _written(node: ast.AST) -> ast.Subscript | None:
    """The element that a node assigns, whole or in one field."""
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Subscript):
        return node.value
    return node if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load) else None


def _captured(kernel: Kernel, node: ast.Subscript, name: str) -> Remark:
    return Remark(
        "NO401", node, f"kernel {kernel.name} writes to {name}, which it takes from around it and may only read",
        f"make {name} a parameter, and pass it as Region({name})",
    )


def _index(indices: Indices, node: ast.Subscript, name: str) -> Iterator[Remark]:
    index = node.slice
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    loop_over = f"for {', '.join('ijk'[: len(parts)]) or 'i'} in {name}.indices()"
    for part in parts:
        reason = indices.plain(part)
        if reason:
            where = ", ".join(map(ast.unparse, parts))
            other = "choose a partition under which the thread owns the element"
            if isinstance(indices.kernel.source.parents[node], ast.AugAssign):
                other = f"pass an Accumulator, which all threads may update: {name}.update({where}, ...)"
            yield Remark(
                "NO402", node,
                f"{name} is written at [{where}]: {_part(part, parts)}{reason}, which may be another thread's element",
                f"assign at the loop variable of '{loop_over}', or {other}",
            )
            return
    if (isinstance(index, ast.Tuple) and not index.elts) or _is_ellipsis(index):
        yield Remark(
            "NO402", node, f"{name} is written as a whole, but a thread owns only some of its elements",
            f"assign element by element, in '{loop_over}'",
        )
        return
    if not all(isinstance(part, ast.Name) for part in parts):
        return
    names = [part.id for part in parts if isinstance(part, ast.Name)]
    yield from _left_loop(indices, node, name, names)
    found = [component for each in names if (component := indices.component(each)) is not None]
    if len(found) == len(names):
        loop, total = found[0].loop, found[0].total
        together = all(component.loop is loop for component in found)
        if not together or [component.position for component in found] != list(range(total)):
            whole = ast.unparse(loop.target).strip("()")
            yield Remark(
                "NO403", node,
                f"{name} is written at [{', '.join(names)}], but the parts of an owned index serve only together, in order and "
                f"from one loop",
                f"write {name}[{whole}] in the loop 'for {whole} in {ast.unparse(loop.iter)}'",
            )


def _left_loop(indices: Indices, node: ast.Subscript, name: str, names: list[str]) -> Iterator[Remark]:
    """An index that is used where its loop may not have run."""
    above = list(indices.kernel.source.above(node))
    for each in names:
        loop = indices.loop_of(each)
        if loop is None:
            continue
        statement = next((inner for inner, outer in zip([node, *above], above, strict=False) if outer is loop), None)
        if statement is None or statement not in loop.body:
            yield Remark(
                "NO402", node,
                f"{name} is written at [{', '.join(names)}] outside of the loop over {ast.unparse(loop.iter)}, which may have "
                "run zero times",
                f"assign inside that loop, or in a loop of its own: 'for {ast.unparse(loop.target)} in {name}.indices()'",
            )
            return


def _part(part: ast.expr, parts: list[ast.expr]) -> str:
    return f"{ast.unparse(part)} is " if len(parts) > 1 and not isinstance(part, ast.Constant) else "this is "


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is Ellipsis


# ---------------------------------------------------------------------------------------------------------------- calls


def launch_remarks(project: Project, launch: Launch) -> Iterator[Remark]:
    """What is wrong with the way in which a call passes what the kernel writes."""
    if launch.kernel.unsafe is not False:
        return
    inner = project.scope_of(launch.kernel.node)
    for argument in launch.arguments:
        use = parameter_use(project, inner, argument.parameter)
        wants_region = use & (Use.WRITTEN | Use.REGION)
        if wants_region and not argument.wrapper and _is_array(project, launch.scope, argument.array):
            what = "writes to" if use & Use.WRITTEN else "shares out"
            shown = ast.unparse(argument.array)
            yield Remark(
                "NO401", argument.node,
                f"kernel {launch.kernel.name} {what} its parameter {argument.parameter}, but is given an array, which threads "
                "may only read",
                f"pass Region({shown}), with a partition if it is not to be one element a thread",
            )
        if argument.wrapper == "Region" and use & Use.LOCAL and isinstance(argument.strategy, ast.Call):
            made = project.dotted(launch.scope, argument.strategy.func).rpartition(".")
            if made[0].partition(".")[0] in ("numba_offload", "partitioning") and made[2] in _PARTITIONS_WITHOUT_BLOCKS:
                yield Remark(
                    "NO404", argument.strategy,
                    f"kernel {launch.kernel.name} uses {argument.parameter}.local, but under {made[2]} a thread's elements are "
                    "not one block",
                    f"choose Chunked1D, EvenSplit1D, Segments, Tiles2D or Tiles3D, or loop over {argument.parameter}.indices()",
                )


_NEW_ARRAYS = {
    *("zeros", "ones", "empty", "full", "zeros_like", "ones_like", "empty_like", "full_like", "arange", "linspace"),
    *("logspace", "array", "asarray", "ascontiguousarray", "eye", "identity", "copy"),
}
"""NumPy's functions that return arrays, whatever they are given."""


def _is_array(project: Project, scope: Scope, node: ast.expr) -> bool:
    """Whether an argument is an array for sure: NumPy has made it, or it is cut out of one."""
    while isinstance(node, ast.Subscript) and _has_slice(node.slice):
        node = node.value
    if isinstance(node, ast.Name):
        bindings = scope.found(node.id)
        owner = scope.owner(node.id) or scope
        return bool(bindings) and all(
            b.how == "assign" and b.value is not None and _makes_array(project, owner, b.value) for b in bindings
        )
    return _makes_array(project, scope, node)


def _makes_array(project: Project, scope: Scope, node: ast.expr) -> bool:
    if not isinstance(node, ast.Call):
        return False
    module, _, name = project.dotted(scope, node.func).rpartition(".")
    return module == "numpy" and name in _NEW_ARRAYS


def _has_slice(index: ast.expr) -> bool:
    return any(isinstance(part, ast.Slice) for part in (index.elts if isinstance(index, ast.Tuple) else [index]))
