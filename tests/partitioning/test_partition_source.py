"""Methods that reach a device stay inside what every user of the one source understands."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
import textwrap
from collections.abc import Iterator

import pytest

import partitioning
from partitioning import algebra, element_maps
from partitioning.algebra import Composed, ElementMap
from partitioning.strategies.clipping import Clipped
from partitioning.strategy import PartitioningStrategy

HOST_ONLY = {
    "preferred_threads", "covers_shape", "check_shape", "check_launch", "bind",
}  # fmt: skip

ALLOWED = (
    ast.FunctionDef, ast.arguments, ast.arg, ast.Return, ast.Assign, ast.If, ast.Expr,
    ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.UnaryOp, ast.USub, ast.Not,
    ast.Compare, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq, ast.BoolOp, ast.And, ast.Or, ast.IfExp,
    ast.Call, ast.Attribute, ast.Subscript, ast.Tuple, ast.Name, ast.Constant, ast.Load, ast.Store,
)  # fmt: skip


def classes() -> list[type]:
    found: set[type] = {Clipped}
    for name in partitioning.strategies.__all__:
        found.add(getattr(partitioning, name))
    for module in (algebra, element_maps):
        for cls in vars(module).values():
            if isinstance(cls, type) and issubclass(cls, Composed | ElementMap):
                found.add(cls)
    return sorted(found, key=lambda cls: cls.__name__)


def device_methods(cls: type) -> Iterator[tuple[str, ast.FunctionDef]]:
    for name, member in vars(cls).items():
        if inspect.isfunction(member) and not name.startswith("_") and name not in HOST_ONLY:
            tree = ast.parse(textwrap.dedent(inspect.getsource(member))).body[0]
            assert isinstance(tree, ast.FunctionDef)
            yield name, tree


@pytest.mark.parametrize("cls", classes(), ids=lambda cls: cls.__name__)
def test_methods_use_only_what_the_one_source_may(cls: type) -> None:
    for name, tree in device_methods(cls):
        if cls in (ElementMap, PartitioningStrategy) or (
            name == "inner_step" and "raise" in ast.unparse(tree)
        ):
            continue
        tree.returns = None
        for argument in tree.args.args:
            argument.annotation = None
        for node in ast.walk(tree):
            where = f"{cls.__name__}.{name}, line {getattr(node, 'lineno', '?')}: {ast.unparse(node)}"
            assert isinstance(node, ALLOWED), where
            if isinstance(node, ast.Call):
                plain = isinstance(node.func, ast.Name) and node.func.id in ("min", "max", "len")
                assert plain or is_own(node.func), where
            if isinstance(node, ast.Constant) and not isinstance(node.value, int):
                assert node.value is ast.get_docstring(tree, clean=False), where


def is_own(function: ast.expr) -> bool:
    """Whether it is self.method, self.inner.method or self.map.method."""
    while isinstance(function, ast.Attribute):
        function = function.value
    return isinstance(function, ast.Name) and function.id == "self"


def test_importing_needs_neither_numba_nor_numpy() -> None:
    code = (
        "import sys, partitioning as p; p.enumerate_launch(p.Permuted([1, 0]).then(p.reverse()), 2, 2);"
        "print([m for m in ('numpy', 'numba', 'llvmlite', 'numba_offload') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_everything_exported_exists_and_is_documented() -> None:
    for name in partitioning.__all__:
        assert inspect.getdoc(getattr(partitioning, name)) or name == "Finding", name
