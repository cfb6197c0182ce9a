"""Numba's typing errors, said in the terms of kernels: which argument, which line, what instead."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from numba.core import errors

from numba_offload.device.types import AccumulatorType, RegionType, ViewType
from numba_offload.diagnostics.refusals import refusal
from numba_offload.targets.toolchain import is_user_source

_ATTRIBUTE = re.compile(r"Unknown attribute '(\w+)' of type ((?:read-only array|array|Region|Accumulator)\(.*)")
_LEAVES = re.compile(r"\{([^{}]*)\}")

_OFFERS = (
    "indexing and slicing, .shape, .size, .ndim, .itemsize, .T, len(), iteration, and the reductions "
    "sum, prod, min, max, mean, any and all"
)
_REGION_OFFERS = ".indices(), .local and .origin (where the strategy's elements form a block), .shape, .size, .ndim, len()"


_ALLOCATES = {
    "zeros", "ones", "empty", "full", "array", "arange", "linspace", "eye", "copy", "zeros_like", "ones_like", "empty_like",
    "full_like", "asarray", "ascontiguousarray", "asfortranarray", "concatenate", "stack", "hstack", "vstack", "reshape",
}  # fmt: skip
_FUNCTION = re.compile(r"No implementation of function Function\(<(?:built-in )?(?:function|class) '?([\w.]+)")


def clearer(error: errors.NumbaError, py_func: Any, leaves: Mapping[str, ViewType]) -> errors.NumbaError:
    """The same error, or a SafetyError that names the argument, the line and the way out where a view is at fault."""
    text = str(error)
    filename, line = _location(text) or (py_func.__code__.co_filename, py_func.__code__.co_firstlineno)
    name = py_func.__name__
    match = _ATTRIBUTE.search(text)
    if match:
        return refusal(name, filename, line, *_attribute(match.group(1), match.group(2), leaves))
    called = _FUNCTION.search(text)
    function = called.group(1) if called else ""
    leaf_name = next((leaf for leaf, ty in leaves.items() if ty.name in text), None)
    if leaf_name is not None:
        region = isinstance(leaves[leaf_name], RegionType)
        what = f"{function}() is" if function and not function.startswith("_") else "this operation is"
        if "Cannot unify" in text:
            return refusal(
                name, filename, line, leaf_name, "a variable would hold it on one path and something of another kind on another",
                "give each its own variable, or make both alike: arrays, or Regions of one strategy",
            )
        if function == "setitem":
            return refusal(
                name, filename, line, leaf_name, "this index, or a value of this kind, does not fit its elements",
                "assign one number (or an array of the shape of the elements that the index selects)",
            )
        kind = "a Region" if region else "an Accumulator" if isinstance(leaves[leaf_name], AccumulatorType) else "an array"
        problem = f"{what} not available for {kind} in kernel code"
        return refusal(name, filename, line, leaf_name, problem, f"use what it offers: {_offers(leaves[leaf_name])}")
    if function in _ALLOCATES:
        return refusal(
            name, filename, line, "", f"{function}() makes an array, and kernel code cannot allocate memory",
            "pass the array as an argument, or use scalars or tuples for local values",
        )
    return error


def _offers(view: ViewType | None) -> str:
    if isinstance(view, RegionType):
        return _REGION_OFFERS
    return ".update(index, value), .shape and .size" if isinstance(view, AccumulatorType) else _OFFERS


def _attribute(attribute: str, shown: str, leaves: Mapping[str, ViewType]) -> tuple[str, str, str]:
    """Argument, problem and fix for an attribute that a view does not have."""
    found = _LEAVES.search(shown)
    argument = found.group(1) if found else ""
    leaf = leaves.get(argument.split(",")[0].strip())
    extra = ""
    if isinstance(leaf, RegionType) and attribute in ("local", "origin"):
        extra = (
            f" (under {leaf.strategy.shown} a thread's elements are not one block; Chunked1D, EvenSplit1D and Tiles2D have "
            ".local)"
        )
    problem = f".{attribute} is not available in kernel code{extra}"
    if leaf is not None and attribute in getattr(leaf.dtype, "fields", ()):
        return argument, problem, f"take the field of a row: {argument}[i].{attribute} (a whole column needs align=True)"
    if attribute == "indices":
        return argument, problem, f"only a Region has indices(): pass Region({argument})"
    return argument, problem, f"use what it offers: {_offers(leaf)}; or offload_kernel(unsafe=True) for raw arrays"


def _location(text: str) -> tuple[str, int] | None:
    """The innermost line of the user's that Numba's text points to. Numba shows paths relative to the working directory."""
    found = [(os.path.abspath(name), int(line)) for name, line in re.findall(r'File "([^"]+)", line (\d+)', text)]
    found += [(os.path.abspath(name), int(line)) for name, line in re.findall(r"at ([^\s()]+) \((\d+)\)", text)]
    user = [place for place in found if is_user_source(place[0])]
    return user[-1] if user else None
