"""Numba types of what a kernel handles: views of arrays, owned indices, strategies.

Views are this project's own types rather than Numba's arrays, because Numba's read-only arrays can be written through
(``.flat``, records, ...). A view's type carries its *leaves*: the names of the kernel arguments that it may be a view
of. Intent, ownership and error messages read them off the types, so they follow slices, tuples, branches and calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from numba.core import types
from numba.core.typeconv import Conversion

Leaves = frozenset[str]

_LAYOUTS = "CIAU"
"""From what promises most to what promises least."""


def describe_leaves(leaves: Leaves) -> str:
    """The leaves as a reader would name them in a sentence."""
    return " or ".join(sorted(leaves)) if leaves else "a local array"


class ViewType(types.Type):
    """An array as kernel code sees it: ``dtype``, ``ndim``, ``layout`` and the arguments it may stand for.

    ``layout`` is ``C`` (C-contiguous), ``I`` (the last axis contiguous, other strides free), ``A`` (any strides) or ``U``
    (any strides, elements at any address: inside packed records).
    """

    kind = "array"
    mutable = False

    def __init__(self, dtype: types.Type, ndim: int, layout: str, leaves: Leaves, extra: str = "") -> None:
        self.dtype = dtype
        self.ndim = ndim
        self.layout = layout
        self.leaves = leaves
        super().__init__(f"{self.kind}({dtype}, {ndim}d, {layout}, {{{', '.join(sorted(leaves))}}}{extra})")

    def with_leaves(self, leaves: Leaves) -> ViewType:
        raise NotImplementedError

    def _unlike(self) -> tuple[Any, ...]:
        """What two types of one class must share to be unified."""
        return (self.dtype, self.ndim)

    def unify(self, typingctx: Any, other: types.Type) -> types.Type | None:
        if type(other) is not type(self) or other._unlike() != self._unlike():
            return None
        leaves = self.leaves | other.leaves
        if self.layout == other.layout:
            return self.with_leaves(leaves)
        return self.with_layout(max(self.layout, other.layout, key=_LAYOUTS.index)).with_leaves(leaves)

    def with_layout(self, layout: str) -> ViewType:
        raise NotImplementedError

    def can_convert_to(self, typingctx: Any, other: types.Type) -> Conversion | None:
        if (
            type(other) is type(self)
            and other._unlike() == self._unlike()
            and self.leaves <= other.leaves
            and _LAYOUTS.index(self.layout) <= _LAYOUTS.index(other.layout)
        ):
            return Conversion.safe
        return None


class ReadArrayType(ViewType):
    """A shared array that kernel code may only read."""

    kind = "read-only array"

    def with_leaves(self, leaves: Leaves) -> ReadArrayType:
        return ReadArrayType(self.dtype, self.ndim, self.layout, leaves)

    def with_layout(self, layout: str) -> ReadArrayType:
        return ReadArrayType(self.dtype, self.ndim, layout, self.leaves)


class MutableArrayType(ViewType):
    """An array that this thread may write at any index: its own block of a Region, or a raw array of an unsafe kernel."""

    kind = "array"
    mutable = True

    def with_leaves(self, leaves: Leaves) -> MutableArrayType:
        return MutableArrayType(self.dtype, self.ndim, self.layout, leaves)

    def with_layout(self, layout: str) -> MutableArrayType:
        return MutableArrayType(self.dtype, self.ndim, layout, self.leaves)


class AccumulatorType(ViewType):
    """A shared array that any thread may update at any index, atomically, with one associative operation."""

    kind = "Accumulator"
    mutable = True

    def __init__(self, dtype: types.Type, ndim: int, layout: str, leaves: Leaves, op: str) -> None:
        self.op = op
        super().__init__(dtype, ndim, layout, leaves, f", {op}")

    def with_leaves(self, leaves: Leaves) -> AccumulatorType:
        return AccumulatorType(self.dtype, self.ndim, self.layout, leaves, self.op)

    def with_layout(self, layout: str) -> AccumulatorType:
        return AccumulatorType(self.dtype, self.ndim, layout, self.leaves, self.op)

    def _unlike(self) -> tuple[Any, ...]:
        return (self.dtype, self.ndim, self.op)


class StrategyType(types.Type):
    """A partitioning strategy or element map: its class, its compile-time parameters, its run-time parameters."""

    def __init__(
        self,
        cls: type,
        constants: tuple[tuple[str, Any], ...],
        nested: tuple[tuple[str, StrategyType], ...],
        runtime: tuple[str, ...],
        index_arrays: tuple[str, ...],
        coordinates: str = "linear",
    ) -> None:
        self.cls = cls
        self.coordinates = coordinates
        self.constants = constants
        self.nested = nested
        self.runtime = runtime
        self.index_arrays = index_arrays
        shown = ", ".join(
            [f"{name}={value!r}" for name, value in constants]
            + [f"{name}={ty.name}" for name, ty in nested]
            + [f"{name}=<run time>" for name in (*runtime, *index_arrays)]
        )
        # The class object itself is part of the key: two classes may share a name.
        super().__init__(f"{cls.__module__}.{cls.__qualname__}#{id(cls):x}({shown})@{coordinates}")

    @property
    def key(self) -> Any:
        # 1, 1.0 and True are equal but not the same parameter, nor are 0.0 and -0.0; a NaN is the same as itself.
        constants = tuple(
            (name, type(value), value.hex() if isinstance(value, float) else value) for name, value in self.constants
        )
        return self.cls, constants, self.nested, self.runtime, self.index_arrays, self.coordinates

    @property
    def has_runtime(self) -> bool:
        """Whether a launch passes anything for it."""
        return bool(self.runtime or self.index_arrays or any(ty.has_runtime for _, ty in self.nested))

    @property
    def shown(self) -> str:
        """As a reader would write it, for messages."""
        inside = [repr(value) for _, value in self.constants] + [ty.shown for _, ty in self.nested]
        return f"{self.cls.__name__}({', '.join(inside + ['...'] * bool(self.runtime + self.index_arrays))})"


class StrategyMethodType(types.Callable, types.Type):
    """A method of a strategy, bound; calling it compiles the method's own source for the device."""

    def __init__(self, strategy: StrategyType, attr: str) -> None:
        self.strategy = strategy
        self.attr = attr
        super().__init__(f"{strategy.name}.{attr}")

    def get_call_type(self, context: Any, args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
        from numba.core.typing import signature

        function = context.library_function(getattr(self.strategy.cls, self.attr))
        plain = tuple(types.unliteral(a) for a in args)
        sig = types.Dispatcher(function).get_call_type(context, (self.strategy, *plain), kws)
        return signature(sig.return_type, *plain, recvr=self.strategy)

    def get_call_signatures(self) -> tuple[tuple[()], bool]:
        return (), False

    def get_impl_key(self, sig: Any) -> Any:
        from numba_offload.targets.dispatcher import library_entry_key

        args = sig.as_function().args
        return library_entry_key(getattr(self.strategy.cls, self.attr), tuple(args))


class RegionType(ViewType):
    """This thread's view of a partitioned array: any index of its own may be read and written."""

    kind = "Region"
    mutable = True

    def __init__(self, dtype: types.Type, ndim: int, layout: str, leaves: Leaves, strategy: StrategyType) -> None:
        self.strategy = strategy
        super().__init__(dtype, ndim, layout, leaves, f", {strategy.name}")

    def with_leaves(self, leaves: Leaves) -> RegionType:
        return RegionType(self.dtype, self.ndim, self.layout, leaves, self.strategy)

    def with_layout(self, layout: str) -> RegionType:
        return RegionType(self.dtype, self.ndim, layout, self.leaves, self.strategy)

    def _unlike(self) -> tuple[Any, ...]:
        return (self.dtype, self.ndim, self.strategy)

    @property
    def coordinates(self) -> str:
        return self.strategy.coordinates


class OwnedIndexType(types.Type):
    """One component of an index that this thread owns in the Regions named by ``leaves``.

    It converts to a plain integer everywhere; nothing converts to it.
    """

    def __init__(self, leaves: Leaves, strategy: StrategyType, axis: int, ndim: int) -> None:
        self.leaves = leaves
        self.strategy = strategy
        self.axis = axis
        self.ndim = ndim
        super().__init__(f"owned index({axis}/{ndim} of {{{', '.join(sorted(leaves))}}}, {strategy.name})")

    def can_convert_to(self, typingctx: Any, other: types.Type) -> Conversion | None:
        if isinstance(other, OwnedIndexType):
            same = (self.strategy, self.axis, self.ndim) == (other.strategy, other.axis, other.ndim)
            return Conversion.safe if same and self.leaves <= other.leaves else None
        if other == types.int64:
            return Conversion.promote
        # As int64 would convert; the value is an index, so it is never negative.
        return typingctx.can_convert(types.int64, other) if isinstance(other, types.Number) else None

    def unify(self, typingctx: Any, other: types.Type) -> types.Type | None:
        if isinstance(other, OwnedIndexType):
            if (self.strategy, self.axis, self.ndim) == (other.strategy, other.axis, other.ndim):
                return OwnedIndexType(self.leaves | other.leaves, self.strategy, self.axis, self.ndim)
            return types.int64
        if isinstance(other, types.Number | types.Boolean):
            return typingctx.unify_pairs(types.int64, types.unliteral(other))
        return None


def owned_index(region: RegionType) -> types.Type:
    """The type of ``region.indices()``'s loop variable: an index, or a tuple of components."""
    parts = [OwnedIndexType(region.leaves, region.strategy, axis, region.ndim) for axis in range(region.ndim)]
    return parts[0] if region.ndim == 1 else types.Tuple(parts)


def is_owned_tuple(ty: types.Type) -> bool:
    """Whether a type is that of a whole owned index over several axes."""
    if not isinstance(ty, types.BaseTuple) or not len(ty):
        return False
    first = ty[0]
    return (
        isinstance(first, OwnedIndexType)
        and len(ty) == first.ndim
        and all(
            isinstance(t, OwnedIndexType) and (t.axis, t.ndim, t.strategy) == (k, first.ndim, first.strategy)
            for k, t in enumerate(ty)
        )
    )


class RecordRefType(types.Type):
    """A row of a structured array, in place. Writable where the index that made it may write."""

    def __init__(self, record: types.Record, leaves: Leaves, writable: bool) -> None:
        self.record = record
        self.leaves = leaves
        self.writable = writable
        super().__init__(f"row({record}, {{{', '.join(sorted(leaves))}}}, {'rw' if writable else 'r'})")

    def unify(self, typingctx: Any, other: types.Type) -> types.Type | None:
        if isinstance(other, RecordRefType) and other.record == self.record:
            return RecordRefType(self.record, self.leaves | other.leaves, self.writable and other.writable)
        return None

    def can_convert_to(self, typingctx: Any, other: types.Type) -> Conversion | None:
        if (
            isinstance(other, RecordRefType)
            and other.record == self.record
            and self.leaves <= other.leaves
            and (self.writable or not other.writable)
        ):
            return Conversion.safe
        return None


class IndicesType(types.SimpleIterableType):
    """``view.indices()``: the indices this thread owns."""

    def __init__(self, region: RegionType) -> None:
        self.region = region
        super().__init__(f"indices({region.name})", IndicesIterType(region))


class IndicesIterType(types.SimpleIteratorType):
    """Iterator over all slots of a thread, one flat counter."""

    def __init__(self, region: RegionType) -> None:
        self.region = region
        super().__init__(f"indices iterator({region.name})", owned_index(region))


class AxisIndicesType(types.SimpleIterableType):
    """One level of the nested loops that an ``indices()`` loop over a lattice of several axes becomes."""

    def __init__(self, region: RegionType, level: int) -> None:
        self.region = region
        self.level = level
        super().__init__(f"axis indices({region.name}, {level})", AxisIndicesIterType(region, level))


class AxisIndicesIterType(types.SimpleIteratorType):
    """Iterator over one axis; it yields the prefix of indices so far, or at the last level the whole owned index."""

    def __init__(self, region: RegionType, level: int) -> None:
        self.region = region
        self.level = level
        last = level == region.ndim - 1
        super().__init__(
            f"axis indices iterator({region.name}, {level})",
            owned_index(region) if last else types.UniTuple(types.int64, level + 1),
        )


class ViewIterType(types.SimpleIteratorType):
    """Iterator over a view's first axis."""

    def __init__(self, view: ViewType, yields: types.Type) -> None:
        self.view = view
        super().__init__(f"iterator({view.name})", yields)


class Dim3Type(types.Type):
    """``threadIdx`` and its kin: ``.x``, ``.y``, ``.z``."""

    def __init__(self, which: str) -> None:
        self.which = which
        super().__init__(f"dim3({which})")


class TargetNameType(types.Type):
    """The ``target`` object of kernel code."""

    def __init__(self) -> None:
        super().__init__("target")


def inside(ty: types.Type) -> Iterator[types.Type]:
    """A type and every type that a value of it holds or refers to: tuples' items, what an iterator goes over ..."""
    yield ty
    held: list[Any] = []
    if isinstance(ty, ViewType | RecordRefType | OwnedIndexType):
        return
    if isinstance(ty, types.BaseTuple):
        held += list(ty)
    elif isinstance(ty, IndicesType | IndicesIterType | AxisIndicesType | AxisIndicesIterType):
        held.append(ty.region)
    elif isinstance(ty, ViewIterType):
        held.append(ty.view)
    elif isinstance(ty, types.BoundFunction):
        held.append(ty.this)
    else:
        for name in ("source_types", "source_type", "container", "arg_types", "state_types", "type", "dtype"):
            found = getattr(ty, name, None)
            held += found if isinstance(found, tuple | list) else [found]
    for part in held:
        if isinstance(part, types.Type) and part is not ty:
            yield from inside(part)


def views_inside(ty: types.Type) -> list[ViewType | RecordRefType]:
    """The views and rows through which a value of a type reaches arrays."""
    return [part for part in inside(ty) if isinstance(part, ViewType | RecordRefType)]
