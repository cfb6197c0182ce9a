"""Numba's typing errors, said in the terms of kernels: which argument, which line, what instead."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from numba.core import errors

from numba_offload.device.types import RegionType, ViewType
from numba_offload.errors import SafetyError

_ATTRIBUTE = re.compile(r"Unknown attribute '(\w+)' of type ((?:read-only array|array|Region)\(.*)")
_RECURSION = re.compile(r"device function '[^\n]* calls itself[^\n]*\nFix: [^\n]*")
_LEAVES = re.compile(r"\{([^{}]*)\}")

_OFFERS = (
    "indexing and slicing, .shape, .size, .ndim, .itemsize, .T, len(), iteration, and the reductions "
    "sum, prod, min, max, mean, any and all"
)
_REGION_OFFERS = ".indices(), .local and .origin (where the strategy's elements form a block), .shape, .size, .ndim, len()"


def clearer(error: errors.NumbaError, py_func: Any, leaves: Mapping[str, ViewType]) -> errors.NumbaError:
    """The same error, or a SafetyError that names the argument and the way out where a view is at fault."""
    text = str(error)
    # Raised while a callee was being typed: Numba wraps it into the story of the calls that led there.
    recursion = _RECURSION.search(text)
    if recursion:
        return SafetyError(recursion.group())
    match = _ATTRIBUTE.search(text)
    where = _location(text) or f"{py_func.__code__.co_filename}:{py_func.__code__.co_firstlineno}"
    name = py_func.__name__
    if match:
        attribute, shown = match.groups()
        found = _LEAVES.search(shown)
        argument = found.group(1) if found else ""
        leaf = leaves.get(argument.split(",")[0].strip())
        region = shown.startswith("Region")
        offers = _REGION_OFFERS if region else _OFFERS
        extra = ""
        if region and attribute in ("local", "origin") and isinstance(leaf, RegionType):
            extra = (
                f" (under {leaf.strategy.shown} a thread's elements are not one block; Chunked1D, EvenSplit1D and Tiles2D "
                "have .local)"
            )
        if attribute == "indices":
            extra = f"; only a Region has indices(): pass Region({argument})"
        return SafetyError(
            f"kernel {name!r}, {where}, argument {argument!r}: .{attribute} is not available in kernel code{extra}.\n"
            f"Fix: use what it offers: {offers}; or offload_kernel(unsafe=True) for raw arrays."
        )
    for leaf_name, ty in leaves.items():
        if ty.name in text:
            what = "a Region" if isinstance(ty, RegionType) else "a shared array"
            return SafetyError(
                f"kernel {name!r}, {where}, argument {leaf_name!r}: this operation is not available for {what} in kernel "
                f"code.\nFix: use what it offers: "
                f"{_REGION_OFFERS if isinstance(ty, RegionType) else _OFFERS}.\n\n{text}"
            )
    return error


def _location(text: str) -> str | None:
    found = re.findall(r'File "([^"]+)", line (\d+)', text)
    user = [f"{name}:{line}" for name, line in found if "numba" not in name.replace("\\", "/").split("/")[-2:][0]]
    return user[-1] if user else None


