"""How a kernel's arguments lie flat in the parameters of its entry: one description for every target and the host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llvmlite import ir
from numba.core import types

from numba_offload.device.types import RegionType, StrategyType, ViewType
from numba_offload.errors import UnsupportedArrayError


@dataclass(frozen=True)
class Slot:
    """One parameter of the entry. ``code`` is its ``struct`` format; every slot is padded to eight bytes."""

    name: str
    code: str
    type: types.Type
    data: bool = False
    """The data pointer of a view."""
    written: bool = False
    """Of a view that kernel code may write."""

    @property
    def padded(self) -> str:
        """The ``struct`` format with its padding."""
        return self.code + f"{8 - _SIZES[self.code]}x" * (_SIZES[self.code] < 8)


_SIZES = {"q": 8, "Q": 8, "i": 4, "I": 4, "h": 2, "H": 2, "b": 1, "B": 1, "?": 1, "d": 8, "f": 4, "P": 8}
_SCALARS: dict[types.Type, str] = {
    types.boolean: "?",
    types.int8: "b",
    types.int16: "h",
    types.int32: "i",
    types.int64: "q",
    types.uint8: "B",
    types.uint16: "H",
    types.uint32: "I",
    types.uint64: "Q",
    types.float32: "f",
    types.float64: "d",
}


def _strategy_slots(ty: StrategyType, name: str) -> list[Slot]:
    slots = [Slot(f"{name}.{r}", "q", types.int64) for r in ty.runtime]
    for a in ty.index_arrays:
        slots += [Slot(f"{name}.{a}", "q", types.voidptr), Slot(f"{name}.{a}.size", "q", types.int64)]
    for inner, nested in ty.nested:
        slots += _strategy_slots(nested, f"{name}.{inner}")
    return slots


def slots(ty: types.Type, name: str) -> list[Slot]:
    """The slots of one argument, leaf by leaf."""
    ty = types.unliteral(ty)
    if isinstance(ty, ViewType):
        out = [Slot(f"{name}.data", "q", types.voidptr, data=True, written=ty.mutable)]
        out += [Slot(f"{name}.shape[{k}]", "q", types.int64) for k in range(ty.ndim)]
        if ty.layout != "C":
            out += [Slot(f"{name}.strides[{k}]", "q", types.int64) for k in range(ty.ndim)]
        if isinstance(ty, RegionType):
            out += _strategy_slots(ty.strategy, f"{name}.strategy")
        return out
    if isinstance(ty, StrategyType):
        return _strategy_slots(ty, name)
    if isinstance(ty, types.BaseTuple):
        fields = getattr(ty, "fields", None)
        names = [f"{name}.{f}" for f in fields] if fields else [f"{name}[{k}]" for k in range(len(ty))]
        return [slot for inner, part in zip(names, ty, strict=True) for slot in slots(part, inner)]
    if ty in _SCALARS:
        return [Slot(name, _SCALARS[ty], ty)]
    if isinstance(ty, types.Complex):
        part = ty.underlying_float
        return [Slot(f"{name}.{which}", _SCALARS[part], part) for which in ("real", "imag")]
    if isinstance(ty, types.NPDatetime | types.NPTimedelta):
        return [Slot(name, "q", types.int64)]
    if ty == types.none:
        return []
    raise UnsupportedArrayError(
        f"argument {name!r} of type {ty} cannot be handed to a kernel; pass NumPy arrays, Regions, numbers, or tuples "
        "of these"
    )


def llvm_layout(slots_: Sequence[Slot]) -> tuple[str, ...]:
    """The types that an entry's parameters must have, as LLVM writes them: what the host packs."""
    return tuple("ptr" if slot.type == types.voidptr else _LLVM[slot.code] for slot in slots_)


_LLVM = {
    "q": "i64", "Q": "i64", "i": "i32", "I": "i32", "h": "i16", "H": "i16", "b": "i8", "B": "i8", "?": "i8",
    "d": "double", "f": "float",
}  # fmt: skip


def entry_layout(parameters: Sequence[ir.Argument]) -> tuple[str, ...]:
    """The types that an entry's parameters do have."""
    return tuple("ptr" if isinstance(p.type, ir.PointerType) else str(p.type) for p in parameters)
