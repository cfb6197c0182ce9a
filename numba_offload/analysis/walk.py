"""Reading typed IR: statements with their places, who calls whom, where a name is defined."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from numba.core import ir, types
from numba.core.analysis import compute_cfg_from_blocks

from numba_offload.targets.dispatcher import EntryKey
from numba_offload.targets.pipeline import TypedFunction


@dataclass(frozen=True)
class Place:
    """A position in a function: block label and statement number."""

    label: int
    position: int


class Body:
    """One typed function, indexed for the analyses."""

    def __init__(self, typed: TypedFunction) -> None:
        self.typed = typed
        self.blocks: dict[int, ir.Block] = typed.func_ir.blocks
        self.definitions: dict[str, list[tuple[Place, ir.Assign]]] = {}
        for place, stmt in self.statements():
            if isinstance(stmt, ir.Assign):
                self.definitions.setdefault(stmt.target.name, []).append((place, stmt))

    def statements(self) -> Iterator[tuple[Place, ir.Stmt]]:
        """Every statement with its place, blocks in order."""
        for label in sorted(self.blocks):
            for position, stmt in enumerate(self.blocks[label].body):
                yield Place(label, position), stmt

    def type_of(self, var: ir.Var | str) -> types.Type:
        """The type of a variable."""
        return self.typed.typemap[var if isinstance(var, str) else var.name]

    @cached_property
    def cfg(self) -> Any:
        """The control-flow graph."""
        return compute_cfg_from_blocks(self.blocks)

    @cached_property
    def _dominators(self) -> dict[int, set[int]]:
        return self.cfg.dominators()

    def dominates(self, first: Place, second: Place) -> bool:
        """Whether ``first`` runs before ``second`` on every path."""
        if first.label == second.label:
            return first.position < second.position
        return first.label in self._dominators.get(second.label, set())

    def end_of(self, label: int) -> Place:
        """The place after a block's last statement."""
        return Place(label, len(self.blocks[label].body))

    def single_definition(self, name: str) -> tuple[Place, ir.Assign] | None:
        """The only definition of a name, or None."""
        found = self.definitions.get(name, [])
        return found[0] if len(found) == 1 else None

    def origin(self, var: ir.Var) -> tuple[Place, ir.Assign] | None:
        """The definition behind a chain of plain copies."""
        found = self.single_definition(var.name)
        while found is not None and isinstance(found[1].value, ir.Var):
            found = self.single_definition(found[1].value.name)
        return found

    def shown(self, var: ir.Var) -> str:
        """A variable as the user wrote it, or what it holds."""
        name = var.unversioned_name
        return "it" if "$" in name or name.startswith("closure__") else name

    def calls(self) -> Iterator[tuple[Place, ir.Assign, Any]]:
        """Calls of code that the host pass has typed: place, statement, and the key of the callee's typed IR."""
        for place, stmt in self.statements():
            if isinstance(stmt, ir.Assign) and isinstance(stmt.value, ir.Expr) and stmt.value.op == "call":
                key = self.callee(stmt.value)
                if key is not None:
                    yield place, stmt, key

    def callee(self, call: ir.Expr) -> EntryKey | None:
        """The key of the typed IR behind a call: a device function, or somebody's implementation of an overload.

        None for what is built in: Numba's own lowerings, and this project's operations.
        """
        function = self.type_of(call.func)
        signature = self.typed.calltypes[call]
        if isinstance(function, types.Dispatcher):
            return function.dispatcher.get_overload(signature.args)
        if not isinstance(function, types.Function):
            return None
        key = function._impl_keys.get(signature.args)
        return key if isinstance(key, EntryKey) and not is_ours(key.function) else None


def is_ours(function: Any) -> bool:
    """Whether a function is part of this package."""
    return str(getattr(function, "__module__", "")).split(".")[0] == "numba_offload"


def call_arguments(call: ir.Expr) -> list[ir.Var]:
    """Every variable that a call hands over, ``*args`` and keywords too."""
    starred = [v for v in (call.vararg, getattr(call, "varkwarg", None)) if v is not None]
    return [*call.args, *(v for _, v in call.kws), *starred]


def reachable(root: TypedFunction, typed_functions: dict[Any, TypedFunction]) -> list[Body]:
    """The kernel and every device function it calls, each once, the kernel first."""
    bodies: list[Body] = []
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        typed = waiting.pop(0)
        if id(typed) in seen:
            continue
        seen.add(id(typed))
        body = Body(typed)
        bodies.append(body)
        for _, _, key in body.calls():
            # A callee that could not be looked at would be a hole: better a KeyError here.
            waiting.append(typed_functions[key])
    return bodies
