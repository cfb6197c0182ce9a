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
    """One parameter of the entry, as plain data. Every slot is padded to eight bytes."""

    name: str
    code: str
    """Its ``struct`` format."""
    llvm: str
    """The type of the parameter, as LLVM writes it."""
    data: bool = False
    """The data pointer of a view."""
    written: bool = False
    """Of a view that kernel code may write."""

    @property
    def padded(self) -> str:
        """The ``struct`` format with its padding."""
        return self.code + f"{8 - _SIZES[self.code]}x" * (_SIZES[self.code] < 8)


POINTER = "ptr"
"""LLVM's type of what is packed as an address."""

LLVM_TYPES = {
    "q": "i64", "Q": "i64", "i": "i32", "I": "i32", "h": "i16", "H": "i16", "b": "i8", "B": "i8", "?": "i8",
    "d": "double", "f": "float",
}  # fmt: skip
"""Of each ``struct`` format of a number."""

_SIZES = {"q": 8, "Q": 8, "i": 4, "I": 4, "h": 2, "H": 2, "b": 1, "B": 1, "?": 1, "d": 8, "f": 4}
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


def _number(name: str, code: str = "q") -> Slot:
    return Slot(name, code, LLVM_TYPES[code])


def _strategy_slots(ty: StrategyType, name: str) -> list[Slot]:
    slots = [_number(f"{name}.{r}") for r in ty.runtime]
    for a in ty.index_arrays:
        slots += [Slot(f"{name}.{a}", "q", POINTER), _number(f"{name}.{a}.size")]
    for inner, nested in ty.nested:
        slots += _strategy_slots(nested, f"{name}.{inner}")
    return slots


def slots(ty: types.Type, name: str) -> list[Slot]:
    """The slots of one argument, leaf by leaf."""
    ty = types.unliteral(ty)
    if isinstance(ty, ViewType):
        out = [Slot(f"{name}.data", "q", POINTER, data=True, written=ty.mutable)]
        out += [_number(f"{name}.shape[{k}]") for k in range(ty.ndim)]
        if ty.layout != "C":
            out += [_number(f"{name}.strides[{k}]") for k in range(ty.ndim)]
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
        return [_number(name, _SCALARS[ty])]
    if isinstance(ty, types.Complex):
        return [_number(f"{name}.{which}", _SCALARS[ty.underlying_float]) for which in ("real", "imag")]
    if isinstance(ty, types.NPDatetime | types.NPTimedelta):
        return [_number(name)]
    if ty == types.none:
        return []
    raise UnsupportedArrayError(
        f"argument {name!r} of type {ty} cannot be handed to a kernel; pass NumPy arrays, Regions, numbers, or tuples "
        "of these"
    )


def llvm_layout(slots_: Sequence[Slot]) -> tuple[str, ...]:
    """The types that an entry's parameters must have, as LLVM writes them: what the host packs."""
    return tuple(POINTER if slot.llvm == POINTER else LLVM_TYPES[slot.code] for slot in slots_)


def entry_layout(parameters: Sequence[ir.Argument]) -> tuple[str, ...]:
    """The types that an entry's parameters do have."""
    return tuple("ptr" if isinstance(p.type, ir.PointerType) else str(p.type) for p in parameters)
