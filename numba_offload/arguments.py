"""From a Python call to leaves: which arrays, which scalars, of which types, under which names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba.core import types
from numba.core.types import Type
from numba.np import numpy_support

from numba_offload.accumulator import Accumulator
from numba_offload.device.strategies import runtime_values
from numba_offload.device.types import AccumulatorType, MutableArrayType, ReadArrayType, RegionType
from numba_offload.errors import LaunchError, UnsupportedArrayError
from numba_offload.handle import Handle
from numba_offload.known_strategies import known_strategy
from numba_offload.mapping.arrays import Array, as_array, c_strides, check_array
from numba_offload.mapping.layout import address
from numba_offload.mapping.snapshot import records_of
from numba_offload.region import Region
from partitioning import PartitioningStrategy


@dataclass(slots=True)
class ArrayLeaf:
    """One array of a call. ``strategy`` is None for one that is not a Region."""

    name: str
    array: Array
    layout: str
    """As in the types of views: ``C``, ``I`` or ``A``."""
    strategy: PartitioningStrategy | None = None
    handle: Handle | None = None
    """The preload's handle that was passed, bare or in a Region or an Accumulator."""
    address: int | None = None
    """Of a host array's element [0, ..., 0]."""


@dataclass(slots=True)
class Arguments:
    """A call's arguments taken apart. ``key`` identifies the specialisation, and ``TypeBuilder`` makes types of it."""

    key: list[Any] = field(default_factory=list)
    arrays: list[ArrayLeaf] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    """Flat: an ArrayLeaf stands for its slots; scalars as they are."""


_CHECKED_DTYPES: set[Any] = set()


def _layout(array: Array, name: str) -> str:
    """The layout that the array's type has; checks dtype (looked at once) and alignment (the array's own)."""
    if isinstance(array, np.ndarray):
        flags = array.flags
        if not (flags.aligned and array.dtype in _CHECKED_DTYPES):
            check_array(array, name)
            _CHECKED_DTYPES.add(array.dtype)
        if flags.c_contiguous:
            return "C"
    else:
        check_array(array, name)
        if array.strides == c_strides(array.shape, array.dtype.itemsize):
            return "C"
    if array.ndim and array.strides[-1] == array.dtype.itemsize:
        return "I"
    return "A"


def add_argument(out: Arguments, name: str, value: Any) -> None:
    """Take one argument (or leaf of one) apart.

    Raises UnsupportedArrayError (a TypeError) naming the argument where it cannot be handed to a kernel.
    """
    kind = type(value)
    if kind is np.ndarray:
        _add_array(out, name, value, None, None)
    elif kind is Region:
        _add_array(out, name, value.array, value.strategy, _handle(value))
    elif kind is Handle:
        _add_array(out, name, value.array, None, value)
    elif kind is float:
        out.key.append("f8")
        out.values.append(value)
    elif kind is bool:
        out.key.append("?")
        out.values.append(value)
    elif kind is int:
        _add_int(out, name, value)
    elif isinstance(value, tuple):
        out.key.append((kind if hasattr(value, "_fields") else tuple, len(value)))
        fields = getattr(value, "_fields", None)
        for position, item in enumerate(value):
            add_argument(out, f"{name}.{fields[position]}" if fields else f"{name}[{position}]", item)
    elif isinstance(value, Region):
        _add_array(out, name, value.array, value.strategy, _handle(value))
    elif isinstance(value, Accumulator):
        _add_array(out, name, value.array, None, _handle(value))
        out.key[-1] = (*out.key[-1], "accumulator", value.op)
    else:
        _add_other(out, name, value)


def _handle(wrapper: Region | Accumulator) -> Handle | None:
    return wrapper.source if isinstance(wrapper.source, Handle) else None


def _add_int(out: Arguments, name: str, value: int) -> None:
    if -(2**63) <= value < 2**63:
        out.key.append("i8")
    elif value < 2**64:
        out.key.append("u8")
    else:
        raise UnsupportedArrayError(
            f"argument {name!r} is {_shortened(value)}: an integer beyond 64 bits cannot be passed to a kernel; pass float(...) "
            "of it, or its parts"
        )
    out.values.append(value)


def _shortened(value: int) -> str:
    """Python does not write out integers of thousands of digits, and nobody reads them."""
    return str(value) if value.bit_length() <= 128 else f"an integer of {value.bit_length()} bits"


def _add_other(out: Arguments, name: str, value: Any) -> None:
    if value is None:
        out.key.append(None)
        return
    if isinstance(value, complex):
        out.key.append("c16")
        out.values += [value.real, value.imag]
        return
    if isinstance(value, np.generic):
        _add_numpy_scalar(out, name, value)
        return
    if isinstance(value, float | int) and not isinstance(value, bool):
        add_argument(out, name, int(value) if isinstance(value, int) else float(value))
        return
    array = as_array(value, name)
    if array is not None:
        _add_array(out, name, array, None, None)
        return
    hints: dict[Any, str] = {
        list: "convert it with numpy.asarray",
        str: "strings have no form in a kernel; pass a number",
        dict: "pass its values as a named tuple",
    }
    hint = hints.get(type(value), "pass a NumPy array, a Region, a number, or a tuple of these")
    if isinstance(value, PartitioningStrategy):
        hint = "a strategy belongs in a Region: Region(array, strategy)"
    raise UnsupportedArrayError(f"argument {name!r} is a {type(value).__name__}, which a kernel cannot take; {hint}")


def _add_numpy_scalar(out: Arguments, name: str, value: np.generic) -> None:
    if isinstance(value, np.datetime64 | np.timedelta64):
        out.key.append((type(value), np.datetime_data(value.dtype)))
        out.values.append(int(value.view(np.int64)))
    elif isinstance(value, np.complexfloating) and value.dtype.itemsize <= 16:
        out.key.append(value.dtype.str)
        out.values += [value.real.item(), value.imag.item()]
    elif isinstance(value, np.bool_ | np.integer | np.floating) and value.dtype.itemsize <= 8 and value.dtype.char != "e":
        out.key.append(value.dtype.str)
        out.values.append(value.item())
    else:
        fix = {"f": "pass float(...) of it", "c": "pass complex(...) of it", "U": "pass a number", "S": "pass a number"}
        raise UnsupportedArrayError(
            f"argument {name!r} has dtype {value.dtype}, which a kernel cannot take by value; "
            + fix.get(value.dtype.kind, "pass its values as numbers, or an array of one element")
        )


def _add_array(out: Arguments, name: str, array: Array, strategy: PartitioningStrategy | None, handle: Handle | None) -> None:
    layout = _layout(array, name)
    # Packed and aligned records compare equal, as do records with such records inside.
    dtype = array.dtype
    aligned: Any = dtype.isalignedstruct and dtype.alignment
    if dtype.names is not None:
        names = tuple([names for _, names in records_of(dtype)])
        if len(names) > 1:
            aligned = aligned, names  # those of an inner record can be changed, which the hash of the outer does not show
    if strategy is None:
        out.key.append((dtype, aligned, array.ndim, layout))
    else:
        if array.ndim != strategy.ndim:
            raise LaunchError(
                f"Region {name!r}: {type(strategy).__name__} partitions arrays of {strategy.ndim} axes, but the array has "
                f"been given {array.ndim} since (shape {tuple(array.shape)}); make a new Region of it"
            )
        known = known_strategy(strategy)
        strategy = known.strategy
        out.key.append((dtype, aligned, array.ndim, layout, known.type))
    leaf = ArrayLeaf(name, array, layout, strategy, handle, address(array) if isinstance(array, np.ndarray) else None)
    out.arrays.append(leaf)
    out.values.append(leaf)


_SCALAR_TYPES = {"f8": types.float64, "?": types.boolean, "i8": types.int64, "u8": types.uint64, "c16": types.complex128}


class TypeBuilder:
    """The argument types that a key stands for. ``unsafe``: arrays are raw. ``united``: see ``united_tuples``."""

    def __init__(self, unsafe: bool, united: bool = False) -> None:
        self.unsafe = unsafe
        self.united = united
        self.leaves: dict[str, Any] = {}

    def types(self, names: Sequence[str], key: Sequence[Any]) -> tuple[Type, ...]:
        """One type per argument. Raises ValueError where the key is of another number of arguments."""
        entries = iter(key)
        built = []
        try:
            for name in names:
                built.append(self._build(name, next(entries), entries))
        except StopIteration:
            raise ValueError(f"a key of fewer arguments than {', '.join(names)}") from None
        if next(entries, self) is not self:
            raise ValueError(f"a key of more arguments than {', '.join(names)}")
        return tuple(built)

    def _build(self, name: str, entry: Any, entries: Any) -> Type:
        if entry is None:
            return types.none
        if isinstance(entry, str):
            known = _SCALAR_TYPES.get(entry)
            return known if known is not None else numpy_support.from_dtype(np.dtype(entry))
        if isinstance(entry[0], np.dtype):
            return self._array(name, entry)
        if isinstance(entry[0], type) and issubclass(entry[0], np.generic):
            cls = types.NPDatetime if issubclass(entry[0], np.datetime64) else types.NPTimedelta
            return cls(entry[1][0])
        return self._tuple(name, entry[0], entry[1], entries)

    def _array(self, name: str, entry: Any) -> Type:
        dtype = numpy_support.from_dtype(entry[0])
        _, _, ndim, layout, *more = entry
        leaves = frozenset([name])
        if len(more) == 2:
            ty: Any = AccumulatorType(dtype, ndim, layout, leaves, more[1])
        elif more:
            ty = RegionType(dtype, ndim, layout, leaves, more[0])
        elif self.unsafe:
            ty = MutableArrayType(dtype, ndim, layout, leaves)
        else:
            ty = ReadArrayType(dtype, ndim, layout, leaves)
        self.leaves[name] = ty
        return ty

    def _tuple(self, name: str, kind: type, length: int, entries: Any) -> Type:
        fields = getattr(kind, "_fields", None)
        parts = [
            self._build(f"{name}.{fields[k]}" if fields else f"{name}[{k}]", next(entries), entries)
            for k in range(length)
        ]
        if self.united and parts and all(hasattr(p, "with_leaves") for p in parts):
            together = frozenset().union(*(p.leaves for p in parts))
            alike = [p.with_leaves(together) for p in parts]
            if all(p == alike[0] for p in alike):
                parts = alike
        if fields:
            same = parts and all(p == parts[0] for p in parts)
            return types.NamedUniTuple(parts[0], length, kind) if same else types.NamedTuple(parts, kind)
        return types.Tuple(parts)


def slot_values(
    leaf: ArrayLeaf, mapped: Any, keep: list[Any], resident: Callable[[Any], int]
) -> list[int]:
    """The flat values of an array: address, extents, strides unless C, the strategy's run-time parameters.

    ``resident`` gives an index array's address on the device.
    """
    values = [mapped.pointer, *leaf.array.shape]
    if leaf.layout != "C":
        values += mapped.strides
    if leaf.strategy is not None and known_strategy(leaf.strategy).type.has_runtime:
        for value in runtime_values(leaf.strategy):
            if isinstance(value, int):
                values.append(value)
            else:
                keep.append(value)
                values += [resident(value), len(value)]
    return values


