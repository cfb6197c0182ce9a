"""Why an array cannot be indexed, or assigned, so: the index or the value that is at fault, and what to write."""

from __future__ import annotations

from typing import Any

from numba.core import types

from numba_offload.device.access import is_index
from numba_offload.device.types import (
    AccumulatorType,
    OwnedIndexType,
    RecordRefType,
    RegionType,
    ViewType,
    describe_leaves,
    is_owned_tuple,
)
from numba_offload.device.views import index_parts, item_type
from numba_offload.diagnostics.shown_types import axes, shown

_LETTERS = "ijk"


def _letters(n: int) -> str:
    return ", ".join(_LETTERS[:n]) if n <= len(_LETTERS) else "i, j, k, ..."


def _plain(part: types.Type) -> types.Type:
    return types.unliteral(part)


def explain_index(view: ViewType, index: types.Type) -> tuple[str, str]:
    """Problem and fix for ``view[index]``, which is not available."""
    name = describe_leaves(view.leaves) if view.leaves else "the array"
    parts = index_parts(index)
    for at, part in enumerate(parts):
        where = f" along axis {at}" if len(parts) > 1 else ""
        plain = _plain(part)
        if isinstance(plain, types.Float):
            fix = "write // instead of / where the index is computed, or int(...) around it"
            return f"{name!r} is indexed by {shown(plain)}{where}, but an index is an integer", fix
        if isinstance(plain, types.Boolean):
            return (
                f"{name!r} is indexed by a bool{where}, but an index is an integer",
                "test the condition with if, or write int(...) around it",
            )
        if isinstance(plain, ViewType):
            mask = isinstance(plain.dtype, types.Boolean)
            what = f"{'a mask' if mask else 'an array of indices'} ({shown(plain)})"
            loop = f"loop over elements and test {'the mask' if mask else 'it'}" if mask else "loop over elements"
            other = describe_leaves(plain.leaves)
            inside = f"if {other}[i]: ... {name}[i]" if mask else f"{name}[{other}[i]]"
            return f"{name!r} is indexed by {what}, which would make a new array", f"{loop}: {inside}"
        if isinstance(plain, types.NoneType):
            continue
        if isinstance(part, types.BaseTuple):
            problem = f"{name!r} is indexed by {shown(part)}, which is a tuple, among other indices"
            if isinstance(view, RegionType) and is_owned_tuple(part):
                return problem, (
                    f"write {name}[i] with the whole index, or unpack it: 'for {_letters(view.ndim)} in {name}.indices()' and "
                    f"{name}[{_letters(view.ndim)}]; the loop goes over every element that the thread owns, along all axes"
                )
            letters = _letters(len(part))
            return problem, (
                f"unpack it: 'for {letters} in ...', and index with its components, as in {name}[{letters}] or {name}[i, 0]"
            )
        if isinstance(plain, types.UnicodeType):
            if isinstance(view.dtype, types.Record):
                return (
                    f"{name!r} is indexed by a string, a field's name",
                    f'take the row first: {name}[i]["field"] or {name}[i].field',
                )
            return f"{name!r} is indexed by a string, but an index is an integer", "use an integer"
        if not is_index(plain) and not isinstance(plain, types.SliceType | types.EllipsisType):
            return f"{name!r} is indexed by {shown(plain)}{where}, but an index is an integer", "use integers and slices"
    given = sum(not isinstance(p, types.NoneType | types.EllipsisType) for p in parts)
    if view.ndim == 0:
        return f"{name!r} has 0 axes, but is indexed by {shown(index)}", f"write {name}[()] for its value"
    if given > view.ndim:
        whole = is_owned_tuple(index)
        what = f"{shown(index)}" if whole else f"{given} indices"
        advice = f"write {name}[{_letters(view.ndim)}]"
        if whole:
            return (
                f"{name!r} has {axes(view.ndim)}, but is indexed by {what}",
                f"unpack the index, 'for {_letters(given)} in ...', and choose: {name}[{_letters(view.ndim)}]",
            )
        if isinstance(view, RegionType):
            advice = f"write {name}[{_letters(view.ndim)}] with the loop variable of {name}.indices()"
        return f"{name!r} has {axes(view.ndim)}, but is indexed by {what}", advice
    return f"{name!r} of {axes(view.ndim)} cannot be indexed by {shown(index)}", "use integers, slices, ... and None"


def fits(typingctx: Any, value: types.Type, dtype: types.Type) -> bool:
    """Whether a value can be stored in an element of a dtype: as Numba converts, and never dropping a complex part."""
    value = types.unliteral(value)
    if value == dtype or isinstance(value, OwnedIndexType):
        return value == dtype or isinstance(dtype, types.Number)
    if isinstance(value, types.Optional):
        # None is an error as the kernel runs, with its line.
        return fits(typingctx, types.unliteral(value.type), dtype)
    if isinstance(value, types.NPDatetime | types.NPTimedelta) or isinstance(dtype, types.NPDatetime | types.NPTimedelta):
        return type(value) is type(dtype) and typingctx.can_convert(value, dtype) is not None
    scalars = types.Number | types.Boolean
    if isinstance(value, scalars) and isinstance(dtype, scalars):
        return not isinstance(value, types.Complex) or isinstance(dtype, types.Complex)
    if isinstance(value, types.EnumMember):
        return typingctx.can_convert(value, dtype) is not None
    return False


def explain_value(where: str, dtype: types.Type, value: types.Type) -> tuple[str, str]:
    """Problem and fix for a value that an element cannot hold."""
    value = types.unliteral(value)
    problem = f"{shown(value)} is assigned to {where}, which holds {dtype}"
    if isinstance(value, types.Complex):
        return problem, "assign its .real, .imag or abs(...), or make the array complex"
    if isinstance(value, RecordRefType):
        return problem, "assign a field of the row"
    if isinstance(value, AccumulatorType):
        return problem, "an Accumulator cannot be read in the kernel that updates it"
    if isinstance(value, ViewType):
        name = describe_leaves(value.leaves)
        if value.ndim == 0:
            return problem, f"write {name}[()] for the value of an array of 0 axes"
        return problem, f"assign one element of it ({name} has more than one): give an index for every axis"
    if isinstance(value, types.NoneType):
        return problem, "assign a number; a function without 'return' gives None"
    if isinstance(value, types.BaseTuple):
        return problem, "assign one item of the tuple"
    if isinstance(value, types.UnicodeType):
        return problem, "kernel code has strings only as the texts of exceptions; assign a number"
    if isinstance(value, types.NPDatetime | types.NPTimedelta) and type(value) is type(dtype):
        return problem, "convert the array on the host: array.astype(...), so that both have one unit"
    if isinstance(value, types.NPDatetime | types.NPTimedelta):
        return problem, "convert the array on the host: array.astype(...)"
    if isinstance(value, types.Callable):
        return problem, "call it: write (...) after it"
    return problem, f"assign a value that converts to {dtype}"


def explain_assignment(typingctx: Any, view: ViewType, index: types.Type, value: types.Type) -> tuple[str, str] | None:
    """Problem and fix for ``view[index] = value``; None where it is available."""
    item = item_type(view, index)
    if item is None:
        return explain_index(view, index)
    name = describe_leaves(view.leaves) if view.leaves else "the array"
    if isinstance(item, ViewType):
        block = f"a block of {axes(item.ndim)} of {name!r}"
        if isinstance(value, ViewType):
            if value.ndim != item.ndim:
                return (
                    f"{shown(value)} is assigned to {block}; kernel code does not broadcast",
                    "loop over elements, or assign an array of as many axes",
                )
            if not fits(typingctx, value.dtype, item.dtype):
                return explain_value(block, item.dtype, value.dtype)
            return None
        return None if fits(typingctx, value, view.dtype) else explain_value(block, view.dtype, value)
    if isinstance(item, RecordRefType):
        if isinstance(value, RecordRefType) and value.record == item.record:
            return None
        return (
            f"{shown(value)} is assigned to a row of {name!r}",
            f"assign its fields one by one ({name}[i].{next(iter(item.record.fields))} = ...), or a row of the same dtype",
        )
    return None if fits(typingctx, value, view.dtype) else explain_value(f"an element of {name!r}", view.dtype, value)
