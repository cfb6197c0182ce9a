"""The types of a call as text: written by users in place of arguments, and shown to them.

``f8``, ``int32``, ``bool``, ``c16``, ``M8[ns]``, ``None``
    scalars, by NumPy's names
``f8[::1]``, ``f8[:, ::1]``
    arrays of one and two axes, contiguous in C order; ``f8[()]`` has no axis
``f8[:]``, ``f8[:, :]``
    with any strides, contiguous ones too
``f8[::, ::1]``
    rows are contiguous, and at any distance
``Region(f8[::1])``, ``Region(f8[::1], Chunked1D(8))``, ``Accumulator(i8[::1], "+")``
    with the strategies of ``partitioning``, or the kernel's module. ``...`` stands for what a launch passes:
    ``Segments(...)``, ``Chunked1D(Runtime(...))``
``(f8, f8[::1])``, ``Pair(f8, f8[::1])``
    tuples, and named tuples of the kernel's module. Its structured dtypes go by their names too: ``ROW[::1]``
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

import partitioning
from numba_offload.accumulator import Accumulator
from numba_offload.errors import BundleError, OffloadError
from numba_offload.plain_data import Plain
from numba_offload.region import Region
from partitioning import Composed, ElementMap, PartitioningStrategy, Runtime, element_maps

# ------------------------------------------------------------------------------------------------------------- reading


def example_arguments(text: str, names: Mapping[str, Any]) -> tuple[Any, ...]:
    """Arguments of the types that a text lists. ``names``: what it may refer to besides NumPy's and the package's names.

    Raises BundleError for a text that is no list of types.
    """
    try:
        call = ast.parse(f"kernel({text}\n)", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        call = None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.keywords:
        raise BundleError(f"signature {text!r} is no list of types, such as 'f8, f8[::1], Region(f8[::1])'")
    reader = _Reader(text, names)
    try:
        return tuple(reader.argument(node) for node in call.args)
    except BundleError:
        raise
    except (OffloadError, TypeError, ValueError) as error:
        raise BundleError(f"signature {text!r}: {error}") from error


def strategy_of(node: ast.expr, text: str, names: Mapping[str, Any]) -> Any:
    """The strategy that a part of a text makes, such as ``Chunked1D(8)``. Raises BundleError where it makes none."""
    return _Reader(text, names).strategy(node)


class _Reader:
    def __init__(self, text: str, names: Mapping[str, Any]) -> None:
        self.text = text
        self.names = names

    def argument(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Constant) and node.value is None:
            return None
        if isinstance(node, ast.Tuple):
            return tuple(self.argument(item) for item in node.elts)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return self.call(node, node.func.id)
        if isinstance(node, ast.Subscript) and not self.is_unit(node):
            return self.array(node)
        dtype = self.dtype(node)
        if dtype.fields is not None or dtype.subdtype is not None:
            self.refuse(node, "a row has no form as an argument; pass an array of them")
        return np.zeros((), dtype)[()]

    def call(self, node: ast.Call, name: str) -> Any:
        if name == "Region":
            first, *rest = self.positional(node, 1, 2)
            return Region(self.array(first), *(self.strategy(part) for part in rest))
        if name == "Accumulator":
            first, *rest = self.positional(node, 1, 2)
            return Accumulator(self.array(first), *(ast.literal_eval(part) for part in rest))
        kind = self.names.get(name)
        if isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields"):
            named = {keyword.arg: self.argument(keyword.value) for keyword in node.keywords if keyword.arg}
            return kind(*(self.argument(item) for item in node.args), **named)
        self.refuse(node, "expected Region, Accumulator, or a named tuple of the kernel's module")

    def positional(self, node: ast.Call, least: int, most: int) -> list[ast.expr]:
        if node.keywords or not least <= len(node.args) <= most:
            self.refuse(node, f"takes {least} to {most} arguments, without names")
        return node.args

    def array(self, node: ast.expr) -> np.ndarray:
        if not isinstance(node, ast.Subscript) or self.is_unit(node):
            self.refuse(node, "expected an array's type, such as f8[::1]")
        axes = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        kinds = [self.axis(axis) for axis in axes]
        dtype = self.dtype(node.value)
        if not kinds:
            return np.zeros((), dtype)
        # More than one element along each axis: otherwise any strides count as contiguous.
        if set(kinds) == {":"}:
            return np.zeros((4,) * len(kinds), dtype)[..., ::2]
        if kinds[-1] == "::1" and set(kinds[:-1]) <= {":"}:
            return np.zeros((2,) * len(kinds), dtype)
        if kinds[-1] == "::1" and set(kinds[:-1]) == {"::"}:
            return np.zeros((4,) * len(kinds), dtype)[..., :2]
        self.refuse(node, "an array is written as f8[:, :], f8[::, ::1] or f8[:, ::1]")

    def axis(self, node: ast.expr) -> str:
        if isinstance(node, ast.Slice) and node.lower is None and node.upper is None:
            if node.step is None:
                return "::" if "::" in (ast.get_source_segment(f"kernel({self.text}\n)", node) or ":") else ":"
            if isinstance(node.step, ast.Constant) and node.step.value == 1:
                return "::1"
        self.refuse(node, "an axis is written as ':', '::' or '::1'")

    def is_unit(self, node: ast.Subscript) -> bool:
        """Whether this is ``M8[ns]``, a dtype."""
        kinds = isinstance(node.value, ast.Name) and node.value.id in ("M8", "m8", "datetime64", "timedelta64")
        return kinds and isinstance(node.slice, ast.Name | ast.Constant)

    def dtype(self, node: ast.expr) -> np.dtype:
        if isinstance(node, ast.Subscript) and self.is_unit(node):
            return np.dtype(ast.unparse(node).replace("'", ""))
        if isinstance(node, ast.Name):
            known = self.names.get(node.id)
            if isinstance(known, np.dtype):
                return known
            try:
                return np.dtype(node.id)
            except TypeError:
                pass
        self.refuse(node, "neither NumPy's name of a dtype, such as f8 or int32, nor a dtype of the kernel's module")

    def strategy(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "then":
            inner = self.strategy(node.func.value)
            return inner.then(*(self.strategy(part) for part in self.positional(node, 1, 1)))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            name = node.func.id
            made: Any = _PARTITIONS.get(name, self.names.get(name))
            if name in _PARTITIONS or _is_strategy(made):
                keywords = {keyword.arg: self.parameter(keyword.value, made) for keyword in node.keywords if keyword.arg}
                return made(*(self.parameter(part, made) for part in node.args), **keywords)
        self.refuse(node, "expected a strategy, such as GridStride1D() or Chunked1D(8).then(reverse())")

    def parameter(self, node: ast.expr, owner: Any) -> Any:
        if isinstance(node, ast.Constant) and node.value is ...:
            return 1 if owner is Runtime else [0]
        if isinstance(node, ast.Call):
            return self.strategy(node)
        return ast.literal_eval(node)

    def refuse(self, node: ast.expr, why: str) -> NoReturn:
        raise BundleError(f"signature {self.text!r}: {ast.unparse(node)!r}: {why}")


def _is_strategy(made: Any) -> bool:
    return isinstance(made, type) and issubclass(made, PartitioningStrategy | ElementMap)


_PARTITIONS = {
    **{name: made for name, made in {**vars(element_maps), **vars(partitioning)}.items() if _is_strategy(made)},
    "Runtime": Runtime,
    "group": partitioning.group,
    "reverse": partitioning.reverse,
    "roll": partitioning.roll,
    "swizzle": partitioning.swizzle,
    "transpose": partitioning.transpose,
}


# ------------------------------------------------------------------------------------------------------------- showing

_AXES = {"C": (":", "::1"), "I": ("::", "::1"), "A": (":", ":")}
_ARGUMENTS = {"stride": "step"}
"""Of the package's strategies, attributes that have another name than the argument that sets them."""
_DEFAULTS = {("Linear1D", 1), ("Linear2D", 2), ("Linear3D", 3)}


def shown_signature(key: Sequence[Plain]) -> str:
    """A key's description (see ``key_data.py``) as a reader would write it."""
    entries = iter(key)
    return ", ".join(_shown(entry, entries) for entry in entries)


def _shown(entry: Plain, entries: Any) -> str:
    if entry is None:
        return "None"
    if isinstance(entry, str):
        return _dtype(entry)
    kind = entry[0]
    if kind == "array":
        return _array(entry)
    if kind == "region":
        strategy = entry[5]
        default = strategy[0].startswith("partitioning.") and (strategy[1], entry[3]) in _DEFAULTS
        return f"Region({_array(entry)})" if default else f"Region({_array(entry)}, {_strategy(strategy)})"
    if kind == "accumulator":
        return f'Accumulator({_array(entry)}, "{entry[5]}")'
    if kind == "tuple":
        items = [_shown(next(entries), entries) for _ in range(entry[1])]
        return f"({', '.join(items)}{',' * (len(items) == 1)})"
    if kind == "named tuple":
        return f"{entry[2]}({', '.join(f'{name}={_shown(next(entries), entries)}' for name in entry[3])})"
    unit, count = entry[1:]
    kind = {"datetime64": "M8", "timedelta64": "m8"}.get(kind, kind)
    return f"{kind}[{'' if count == 1 else count}{unit}]"


def _array(entry: Plain) -> str:
    _, dtype, _, ndim, layout = entry[:5]
    first, last = _AXES[layout]
    return f"{_dtype(dtype)}[{', '.join([first] * (ndim - 1) + [last])}]" if ndim else f"{_dtype(dtype)}[()]"


def _dtype(data: Plain) -> str:
    if isinstance(data, str):
        return {"?": "bool", "b1": "bool"}.get(data.lstrip("<>|="), data.lstrip("<>|="))
    if data[0] == "subarray":
        return f"({_dtype(data[1])}, {tuple(data[2])})"
    return "{" + ", ".join(f"{name}: {_dtype(inner)}" for name, inner, *_ in data[1]) + "}"


def _strategy(data: Plain) -> str:
    module, qualname, constants, nested, runtime, index_arrays, _ = data
    if module == Composed.__module__ and [name for name, _ in nested] == ["inner", "map"]:
        return f"{_strategy(nested[0][1])}.then({_strategy(nested[1][1])})"
    names = _ARGUMENTS if module.startswith("partitioning.") else {}
    shown = [f"{names.get(name, name)}={_constant(kind, value)}" for name, kind, value in constants]
    shown += [f"{name}={_strategy(inner)}" for name, inner in nested]
    shown += [f"{name}=Runtime(...)" for name in runtime] + [f"{name}=..." for name in index_arrays]
    return f"{qualname}({', '.join(shown)})"


def _constant(kind: str, value: Plain) -> str:
    return repr(float.fromhex(value)) if kind == "builtins.float" else repr(value)
