"""What names mean across the files that are checked: the package's own names, kernels, functions."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from numba_offload.lint.scopes import FUNCTIONS, Function, Scope, module_scope
from numba_offload.lint.sources import Source

PACKAGE = "numba_offload"
KERNEL = f"{PACKAGE}.offload_kernel"
DEVICE_FUNCTION = f"{PACKAGE}.offload_function"
REGION = f"{PACKAGE}.Region"
ACCUMULATOR = f"{PACKAGE}.Accumulator"
PRELOAD = f"{PACKAGE}.preload"
PRELOAD_MUT = f"{PACKAGE}.preload_mut"
OPTIMIZE = f"{PACKAGE}.optimize_transfers"

_KNOWN = {KERNEL, DEVICE_FUNCTION, REGION, ACCUMULATOR, PRELOAD, PRELOAD_MUT, OPTIMIZE}
_COMPILED = {"njit", "jit", "vectorize", "guvectorize", "cfunc", "stencil"}
_DEEPEST = 20
"""How many names in a row are followed: from an import to the next, from an alias to what it stands for."""


@dataclass(frozen=True, eq=False)
class Defined:
    """A function of the files checked, and the scope that it stands in."""

    scope: Scope
    node: Function


@dataclass(frozen=True, eq=False)
class Value:
    """An expression that a name stands for."""

    scope: Scope
    node: ast.expr


Meaning = str | Defined | Value | None
"""What an expression means: a dotted name of something outside of the files, a function, a value, or nothing that is known."""


@dataclass(frozen=True, eq=False)
class Kernel:
    """A function of the files checked that ``offload_kernel`` makes a kernel. ``unsafe`` is None where that is not plain."""

    scope: Scope
    node: Function
    unsafe: bool | None

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def parameters(self) -> list[str]:
        return [argument.arg for argument in (*self.node.args.posonlyargs, *self.node.args.args)]


class Project:
    """The files checked together."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.modules = [module_scope(source) for source in sources]
        self._of_node = {scope.node: scope for scope in self.scopes()}
        self._by_stem: dict[str, list[tuple[tuple[str, ...], Scope]]] = {}
        for module in self.modules:
            parts = module.source.path.absolute().with_suffix("").parts
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            self._by_stem.setdefault(parts[-1], []).append((parts, module))
        self._meanings: dict[tuple[Scope, str], Meaning] = {}
        self._kernels: dict[Function, Kernel] = {}
        self._plain_kernels: set[Function] = set()
        """Functions that a call of offload_kernel has made kernels, as far as launches were looked at."""

    def scopes(self) -> Iterator[Scope]:
        for module in self.modules:
            yield from module.all()

    def scope_of(self, node: ast.AST) -> Scope:
        """The scope inside a function."""
        return self._of_node[node]

    # ------------------------------------------------------------------------------------------------------- meaning

    def meaning(self, scope: Scope, node: ast.expr, depth: int = 0) -> Meaning:
        """What an expression means that is used in a scope."""
        if depth > _DEEPEST:
            return None
        if isinstance(node, ast.Name):
            key = scope, node.id
            if key not in self._meanings:
                self._meanings[key] = None  # what a name means by way of itself
                self._meanings[key] = self._name(scope, node.id, depth)
            return self._meanings[key]
        if isinstance(node, ast.Attribute):
            base = self.meaning(scope, node.value, depth + 1)
            return self._follow(f"{base}.{node.attr}", scope, depth) if isinstance(base, str) else None
        return Value(scope, node)

    def dotted(self, scope: Scope, node: ast.expr) -> str:
        """The dotted name that an expression means; empty where it means none."""
        found = self.meaning(scope, node)
        return found if isinstance(found, str) else ""

    def _name(self, scope: Scope, name: str, depth: int) -> Meaning:
        owner = scope.owner(name)
        if owner is None:
            for star in scope.module.stars:
                found = self._follow(f"{star}.{name}", scope, depth)
                if not isinstance(found, str) or found in _KNOWN:
                    return found
            return f"builtins.{name}" if hasattr(builtins, name) else None
        bindings = owner.bindings[name]
        first = bindings[0]
        if first.how == "import" and all(b.how == "import" and b.dotted == first.dotted for b in bindings):
            return self._follow(first.dotted, scope, depth)
        if len(bindings) > 1:
            return None
        if isinstance(first.node, FUNCTIONS):
            return Defined(owner, first.node)
        if first.how == "assign" and first.value is not None:
            return self.meaning(owner, first.value, depth + 1)
        return None

    def _follow(self, dotted: str, scope: Scope, depth: int) -> Meaning:
        top, last = dotted.partition(".")[0], dotted.rpartition(".")[2]
        if top == PACKAGE and f"{PACKAGE}.{last}" in _KNOWN:
            return f"{PACKAGE}.{last}"
        parts = tuple(dotted.split("."))
        for cut in range(len(parts) - 1, 0, -1):
            module = self._module(parts[:cut], scope.source)
            if module is None:
                continue
            if cut == len(parts) - 1 and module.local(last):
                return self.meaning(module, ast.Name(last, ast.Load()), depth + 1)
            break
        return dotted

    def _module(self, parts: tuple[str, ...], importer: Source) -> Scope | None:
        """The file that an import means: one below a folder that the importing file lies in too, or of that very package."""
        here = importer.folder
        best: tuple[int, Scope] | None = None
        for path, module in self._by_stem.get(parts[-1], ()):
            root = path[: -len(parts)]
            if path[-len(parts) :] != parts:
                continue
            near = here[: len(root)] == root
            if near and (best is None or len(root) > best[0]):
                best = len(root), module
            elif not near and len(parts) > 1 and best is None:
                best = 0, module
        return best[1] if best is not None else None

    # ------------------------------------------------------------------------------------------------------- kernels

    def _decorates(self, scope: Scope, decorator: ast.expr) -> str:
        return self.dotted(scope, decorator.func if isinstance(decorator, ast.Call) else decorator)

    def decorated(self, scope: Scope, node: ast.AST, dotted: str) -> bool:
        """Whether one of a function's decorators is the one of that name."""
        return isinstance(node, FUNCTIONS) and any(self._decorates(scope, d) == dotted for d in node.decorator_list)

    def kernel_of(self, scope: Scope, node: Function) -> Kernel | None:
        """A function as the kernel that its decorator makes of it."""
        if node in self._kernels:
            return self._kernels[node]
        for decorator in node.decorator_list:
            if self._decorates(scope, decorator) == KERNEL:
                keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
                return self._kernels.setdefault(node, Kernel(scope, node, _unsafe(keywords)))
        return None

    def kernel(self, scope: Scope, node: ast.expr, depth: int = 0) -> Kernel | None:
        """The kernel that an expression means, with a launch configuration or without."""
        if depth > _DEEPEST:
            return None
        found = self.meaning(scope, node)
        if isinstance(found, Defined):
            # Another decorator around it may make anything of it.
            outermost = found.node.decorator_list[:1]
            known = outermost and self._decorates(found.scope, outermost[0]) == KERNEL
            return self.kernel_of(found.scope, found.node) if known else None
        if not isinstance(found, Value):
            return None
        scope, node = found.scope, found.node
        if isinstance(node, ast.Subscript):
            return self.kernel(scope, node.value, depth + 1)
        if isinstance(node, ast.Call) and len(node.args) == 1:
            maker = node.func if isinstance(node.func, ast.Call) else node
            made, keywords = maker.func, maker.keywords
            function = self.meaning(scope, node.args[0])
            if self.dotted(scope, made) == KERNEL and isinstance(function, Defined) and not function.node.decorator_list:
                self._plain_kernels.add(function.node)
                return Kernel(function.scope, function.node, _unsafe(keywords))
        return None

    @cached_property
    def kernels(self) -> list[Kernel]:
        """All kernels that a decorator makes."""
        found = (
            self.kernel_of(scope.parent, scope.node)
            for scope in self.scopes()
            if scope.parent is not None and isinstance(scope.node, FUNCTIONS)
        )
        return [kernel for kernel in found if kernel is not None]

    def is_device_code(self, scope: Scope) -> bool:
        """Whether a function is compiled - a kernel, or what kernels call - so that its body is no host program."""
        if scope.parent is None:
            return False
        if isinstance(scope.node, FUNCTIONS):
            if scope.node in self._kernels or scope.node in self._plain_kernels:
                return True
            for decorator in scope.node.decorator_list:
                name = self._decorates(scope.parent, decorator)
                if name in (KERNEL, DEVICE_FUNCTION) or (name.rpartition(".")[2] in _COMPILED and "numba" in name):
                    return True
        return self.is_device_code(scope.parent)

    def host_scopes(self) -> Iterator[Scope]:
        """Modules and functions that run on the host."""
        _ = self.kernels
        for scope in self.scopes():
            if not isinstance(scope.node, ast.Lambda | ast.ClassDef) and not self.is_device_code(scope):
                yield scope


def _unsafe(keywords: list[ast.keyword]) -> bool | None:
    for keyword in keywords:
        if keyword.arg in (None, "unsafe"):
            return bool(keyword.value.value) if isinstance(keyword.value, ast.Constant) else None
    return False
