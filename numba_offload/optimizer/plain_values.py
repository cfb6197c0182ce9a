"""What can be told of a value by its exact type, and which of its operations run nobody's code."""

from __future__ import annotations

import io
import types
from typing import Any

import numpy as np

from numba_offload.accumulator import Accumulator
from numba_offload.handle import Handle
from numba_offload.known_strategies import known_strategy
from numba_offload.optimizer import closed_list as known
from numba_offload.optimizer.attributes import is_builtin
from numba_offload.optimizer.enumerations import compares_plainly, hashes_plainly
from numba_offload.region import Region
from numba_offload.verify import is_ours
from partitioning import PartitioningStrategy

MOST_PARTS, _DEEPEST = 256, 4
"""Of a container, and containers in containers, that are looked at."""


def is_plain_stream(stream: Any) -> bool:
    """Whether what is written to a stream goes to a file or to memory, and to nobody's code."""
    if type(stream) is io.StringIO:
        return True
    if type(stream) is not io.TextIOWrapper:
        return False
    buffer = stream.buffer
    return type(buffer.raw if type(buffer) is io.BufferedWriter else buffer) is io.FileIO


def type_hashes_plainly(kind: Any) -> bool:
    """Whether looking an object of this type up in a table runs nobody's code."""
    return kind not in known.ASKING_OTHERS and (kind in known.INERT or is_builtin(kind))


def may_run_code(value: Any) -> bool:
    """Whether a function that gets this may call it, or ask it for what somebody has defined: a function or a class."""
    return type(value) in known.INERT and not (type(value) is type and is_builtin(value))


def is_mere_data(value: Any, depth: int = 0) -> bool:
    """Whether nobody's finalizer runs when a value goes: scalars, arrays with memory of NumPy's, and containers of them."""
    kind = type(value)
    if kind is np.ndarray:
        base = value.base
        while type(base) is np.ndarray:
            base = base.base
        return not value.dtype.hasobject and (base is None or is_builtin(type(base)))
    if kind in known.SEQUENCES and len(value) <= MOST_PARTS and depth < _DEEPEST:
        return all(is_mere_data(part, depth + 1) for part in value)
    return kind in known.SCALARS or known.is_dtype(value)


HASHING = frozenset({dict, set, frozenset})
LOOKED_UP = HASHING | {str, bytes, range}
"""Whether something is in them is found out without looking at anything but keys."""


def is_plain_key(value: Any, depth: int = 0) -> bool:
    """Whether something is hashed and compared without running anybody's code."""
    kind = type(value)
    if kind in known.SCALARS:
        return True
    if kind is slice:
        return all(type(part) in known.SCALARS for part in (value.start, value.stop, value.step))
    if kind is tuple and depth < _DEEPEST:
        return all(is_plain_key(part, depth + 1) for part in value)
    return (kind in known.INERT and kind not in known.ASKING_OTHERS) or hashes_plainly(value)


def compares_with_members(value: Any) -> bool:
    """Whether it compares with members of enumerations that compare as their values do, and runs nobody's code."""
    return type(value) in (int, float, bool, str, types.NoneType) or compares_plainly(value)


def gives_a_view(array: np.ndarray, key: Any) -> bool:
    """Whether indexing makes a view, reading no element."""
    parts = key if type(key) is tuple else (key,)
    integers, views = 0, False
    for part in parts:
        if part is None or part is Ellipsis or type(part) in (slice, str):
            views = True
        elif type(part) is int or isinstance(part, np.integer):
            integers += 1
        elif type(part) is list and all(type(p) is str for p in part):
            views = True
        else:
            return False
    return views or integers < array.ndim


def is_strategy(value: Any) -> bool:
    """Whether a value is a strategy whose methods are all the package's own."""
    return issubclass(type(value), PartitioningStrategy) and is_ours(known_strategy(value).type)


def is_launchable(value: Any) -> bool:
    """Whether a kernel's argument is taken apart without running anybody's code."""
    kind = type(value)
    if kind in known.SCALARS or kind is np.ndarray:
        return True
    if kind is Region:
        return type(value.array) is np.ndarray and type(value.source) in (np.ndarray, Handle) and is_strategy(value.strategy)
    if kind is Accumulator:
        return type(value.array) is np.ndarray and type(value.source) in (np.ndarray, Handle)
    if kind is Handle:
        return True
    if issubclass(kind, tuple):
        named = kind.__mro__[1:] == (tuple, object) and hasattr(kind, "_fields") and "__iter__" not in vars(kind)
        return (kind is tuple or named) and all(is_launchable(part) for part in value)
    return False
