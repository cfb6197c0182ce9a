"""The key of a call (see ``arguments.py``) as plain data, by which code in files is found again in another process.

Two calls have equal descriptions exactly if their keys are equal, but for classes: those that say the same - one module,
one name, one set of fields, or for users' strategies one digest of their methods - count as equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numba_offload.code_digest import is_package_class, strategy_digest
from numba_offload.device.types import StrategyType
from numba_offload.errors import NotPlainError
from numba_offload.plain_data import Plain


def key_to_data(key: Sequence[Any], lines: bool = False) -> list[Plain]:
    """One description for each entry of a key: None, strings, and lists of these, integers and booleans.

    ``lines``: users' strategies that differ in their line numbers or files only are different.

    Raises NotPlainError where a user's strategy takes something from around it that has no form as plain data.
    """
    return [_entry(entry, lines) for entry in key]


def strategy_to_data(ty: StrategyType, lines: bool = False) -> list[Plain]:
    """The part of a key's description that is about a strategy. Raises as ``key_to_data`` does."""
    return [_strategy(ty), _digest(ty, lines)]


def _entry(entry: Any, lines: bool) -> Plain:
    if entry is None or isinstance(entry, str):
        return entry
    first = entry[0]
    if isinstance(first, np.dtype):
        dtype, aligned, ndim, layout, *more = entry
        # The names of inner records are in the dtype's description.
        array = [_dtype(dtype), aligned[0] if isinstance(aligned, tuple) else aligned, ndim, layout]
        if not more:
            return ["array", *array]
        if isinstance(more[0], StrategyType):
            return ["region", *array, *strategy_to_data(more[0], lines)]
        return [*more[:1], *array, *more[1:]]
    if issubclass(first, np.generic):
        return [first.__name__, *entry[1]]
    fields = getattr(first, "_fields", None)
    if fields is None:
        return ["tuple", entry[1]]
    return ["named tuple", first.__module__, first.__qualname__, list(fields)]


def _dtype(dtype: np.dtype) -> Plain:
    """Equal exactly for dtypes that compare equal. A structured one compares by fields, offsets, titles and size."""
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return ["subarray", _dtype(base), list(shape)]
    if dtype.fields is None:
        return dtype.str
    fields = []
    for name in dtype.names or ():
        inner, offset, *title = dtype.fields[name]
        if title and not isinstance(title[0], str):
            raise NotPlainError(f"field {name!r} has a title that is no string")
        fields.append([name, _dtype(inner), offset, *title])
    return ["struct", fields, dtype.itemsize]


def _strategy(ty: StrategyType) -> Plain:
    return [
        ty.cls.__module__,
        ty.cls.__qualname__,
        [[name, *_constant(value)] for name, value in ty.constants],
        [[name, _strategy(nested)] for name, nested in ty.nested],
        list(ty.runtime),
        list(ty.index_arrays),
        ty.coordinates,
    ]


def _constant(value: Any) -> list[Plain]:
    """Kind and value: 1, 1.0 and True are three constants."""
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    return [kind, value.hex() if isinstance(value, float) else value]


def _digest(ty: StrategyType, lines: bool) -> str | None:
    """What tells another version of a user's strategy from this one."""
    classes = list(_classes(ty))
    if all(is_package_class(cls) for cls in classes):
        return None
    return strategy_digest(classes, lines)


def _classes(ty: StrategyType) -> list[type]:
    return [ty.cls, *(cls for _, nested in ty.nested for cls in _classes(nested))]
