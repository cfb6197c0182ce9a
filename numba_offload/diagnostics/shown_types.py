"""Types as a reader would say them: "an index of y", "a read-only array x", "a tuple of 2 items"."""

from __future__ import annotations

import re
from typing import Any

from numba.core import types

from numba_offload.device.types import (
    AccumulatorType,
    IndicesIterType,
    IndicesType,
    MutableArrayType,
    OwnedIndexType,
    RecordRefType,
    RegionType,
    ViewType,
    describe_leaves,
    is_owned_tuple,
)

_ARTICLES = {"read-only array": "a read-only array", "array": "an array", "Region": "a Region", "Accumulator": "an Accumulator"}
_OWNED_TUPLE = re.compile(r"(?:Uni)?Tuple\(owned index\(0/\d+ of \{([^{}]*)\}.*?@\w+\)(?:(?:, owned index\(.*?@\w+\))+| x \d+)\)")
_OWNED = re.compile(r"owned index\(\d+/\d+ of \{([^{}]*)\}.*?@\w+\)")
_ROW = re.compile(r"row\(.*?, \{([^{}]*)\}, rw?\)")
_VIEW = re.compile(
    r"(read-only array|array|Region|Accumulator)\([^{}]*?, \dd, \w, \{([^{}]*)\}(?:, [^@()]*\(.*?\)@\w+|, [^()]*)?\)"
)
_LITERAL = re.compile(r"Literal\[(\w+)\]\(([^()]*)\)")


def axes(n: int) -> str:
    """A number of axes in words."""
    return f"{n} axis" if n == 1 else f"{n} axes"


def shown(ty: Any) -> str:
    """A type as a noun phrase."""
    if isinstance(ty, types.Omitted):
        return shown(types.unliteral(ty.value if isinstance(ty.value, types.Type) else types.undefined))
    if isinstance(ty, types.Literal) and not isinstance(ty, types.SliceLiteral):
        ty = types.unliteral(ty)
    if isinstance(ty, RegionType):
        return f"a Region {describe_leaves(ty.leaves)}" if ty.leaves else "a Region"
    if isinstance(ty, AccumulatorType):
        return f"an Accumulator {describe_leaves(ty.leaves)}"
    if isinstance(ty, ViewType):
        kind = "an array" if isinstance(ty, MutableArrayType) else "a read-only array"
        return f"{kind} {describe_leaves(ty.leaves)} of {axes(ty.ndim)}" if ty.leaves else f"{kind} of {axes(ty.ndim)}"
    if isinstance(ty, OwnedIndexType):
        return f"{'a component of ' if ty.ndim > 1 else ''}an index of {describe_leaves(ty.leaves)}"
    if is_owned_tuple(ty):
        return f"a whole index of {describe_leaves(ty[0].leaves)} ({axes(len(ty))})"
    if isinstance(ty, RecordRefType):
        return f"a row of {describe_leaves(ty.leaves)}"
    if isinstance(ty, IndicesType | IndicesIterType):
        return f"{describe_leaves(ty.region.leaves)}.indices()"
    if isinstance(ty, types.BaseTuple):
        return f"a tuple ({', '.join(shown(t) for t in ty)})"
    if isinstance(ty, types.NoneType):
        return "None"
    if isinstance(ty, types.Optional):
        return f"{shown(ty.type)} or None"
    if isinstance(ty, types.UnicodeType):
        return "a string"
    if isinstance(ty, types.SliceType):
        return "a slice"
    if isinstance(ty, types.Boolean):
        return "a bool"
    if isinstance(ty, types.Number):
        return f"{'an' if str(ty)[0] == 'i' else 'a'} {ty}"
    if isinstance(ty, types.Module):
        return f"the module {ty.pymod.__name__}"
    if isinstance(ty, types.Dispatcher):
        return f"the function {ty.dispatcher.py_func.__name__}"
    if isinstance(ty, types.BoundFunction):
        return f"a method of {shown(ty.this)}"
    if isinstance(ty, types.Function):
        return f"the function {getattr(ty.typing_key, '__name__', ty.typing_key)}"
    if isinstance(ty, types.BaseFunction | types.Callable):
        return "a function"
    if hasattr(ty, "shown"):
        return str(ty.shown)
    return readable(str(ty))


def _kind(match: re.Match[str]) -> str:
    names = " or ".join(sorted(n.strip() for n in match.group(2).split(",") if n.strip()))
    return f"{_ARTICLES[match.group(1)]} {names}".rstrip()


def readable(text: str) -> str:
    """A text of Numba's with the names of types that it shows made readable."""
    text = _OWNED_TUPLE.sub(lambda m: f"a whole index of {m.group(1)}", text)
    text = _OWNED.sub(lambda m: f"an index of {m.group(1)}", text)
    text = _VIEW.sub(_kind, text)
    text = _ROW.sub(lambda m: f"a row of {m.group(1)}", text)
    return _LITERAL.sub(lambda m: f"{m.group(1)} {m.group(2)}" if m.group(1) != "str" else f"the string {m.group(2)!r}", text)
