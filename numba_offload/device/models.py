"""How kernel values are laid out: data models of the types in ``types.py``."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.datamodel import models
from numba.core.datamodel.registry import register_default
from numba.core.extending import register_model

from numba_offload.device.types import (
    AccumulatorType,
    AxisIndicesIterType,
    AxisIndicesType,
    Dim3Type,
    IndicesIterType,
    IndicesType,
    MutableArrayType,
    OwnedIndexType,
    ReadArrayType,
    RecordRefType,
    RegionType,
    StrategyMethodType,
    StrategyType,
    TargetNameType,
    ViewIterType,
    ViewType,
)

INDEX = types.int64


def index_tuple(ndim: int) -> types.Type:
    """A tuple of ``ndim`` indices."""
    return types.UniTuple(INDEX, ndim)


def element_storage(dtype: types.Type) -> types.Type:
    """What a view's data pointer points at."""
    return types.CPointer(dtype)


def _array_members(view: ViewType) -> list[tuple[str, types.Type]]:
    shape = index_tuple(view.ndim)
    return [("data", element_storage(view.dtype)), ("shape", shape), ("strides", shape)]


@register_default(ReadArrayType)
@register_default(MutableArrayType)
@register_default(AccumulatorType)
class ArrayViewModel(models.StructModel):
    """Data pointer, extents, strides in bytes."""

    def __init__(self, dmm: Any, fe_type: ViewType) -> None:
        super().__init__(dmm, fe_type, _array_members(fe_type))


def coordinate_type(region: RegionType) -> types.Type:
    """The type of ``t`` and ``T`` in the region's strategy: an int, or a tuple for grid and block coordinates."""
    if region.coordinates == "linear":
        return INDEX
    return index_tuple(2 if region.coordinates == "block" else region.ndim)


@register_default(RegionType)
class RegionModel(models.StructModel):
    """An array, the strategy's run-time parameters, and who this thread is."""

    def __init__(self, dmm: Any, fe_type: RegionType) -> None:
        where = coordinate_type(fe_type)
        members = [*_array_members(fe_type), ("t", where), ("T", where), ("strategy", fe_type.strategy)]
        super().__init__(dmm, fe_type, members)


@register_default(StrategyType)
class StrategyModel(models.StructModel):
    """Only what is not known at compile time."""

    def __init__(self, dmm: Any, fe_type: StrategyType) -> None:
        members: list[tuple[str, types.Type]] = [(f"r_{name}", INDEX) for name in fe_type.runtime]
        members += [(f"a_{name}", index_array_type()) for name in fe_type.index_arrays]
        members += [(f"n_{name}", ty) for name, ty in fe_type.nested]
        super().__init__(dmm, fe_type, members)


def index_array_type() -> ReadArrayType:
    """A strategy's index array as its methods see it."""
    return ReadArrayType(INDEX, 1, "C", frozenset())


@register_default(StrategyMethodType)
class StrategyMethodModel(models.PrimitiveModel):
    """A bound method is its strategy."""

    def __init__(self, dmm: Any, fe_type: StrategyMethodType) -> None:
        super().__init__(dmm, fe_type, dmm.lookup(fe_type.strategy).get_value_type())


@register_default(OwnedIndexType)
class OwnedIndexModel(models.PrimitiveModel):
    """A 64-bit integer."""

    def __init__(self, dmm: Any, fe_type: OwnedIndexType) -> None:
        super().__init__(dmm, fe_type, ir.IntType(64))


@register_default(RecordRefType)
class RecordRefModel(models.PrimitiveModel):
    """The row's address."""

    def __init__(self, dmm: Any, fe_type: RecordRefType) -> None:
        super().__init__(dmm, fe_type, ir.IntType(8).as_pointer())


@register_default(IndicesType)
class IndicesModel(models.StructModel):
    """The region whose indices these are."""

    def __init__(self, dmm: Any, fe_type: IndicesType) -> None:
        super().__init__(dmm, fe_type, [("region", fe_type.region)])


@register_default(IndicesIterType)
class IndicesIterModel(models.StructModel):
    """The region; the next slot in a stack slot of its own; the number of slots; where a lattice starts and steps."""

    def __init__(self, dmm: Any, fe_type: IndicesIterType) -> None:
        members = [
            ("region", fe_type.region),
            ("next", types.EphemeralPointer(INDEX)),
            ("count", INDEX),
            ("origin", INDEX),
            ("step", INDEX),
        ]
        super().__init__(dmm, fe_type, members)


@register_default(AxisIndicesType)
class AxisIndicesModel(models.StructModel):
    """The region, the lattice, and the indices of the outer axes."""

    def __init__(self, dmm: Any, fe_type: AxisIndicesType) -> None:
        lattice = index_tuple(fe_type.region.ndim)
        members: list[tuple[str, types.Type]] = [
            ("region", fe_type.region),
            ("origin", lattice),
            ("extent", lattice),
            ("step", lattice),
        ]
        if fe_type.level:
            members.append(("prefix", index_tuple(fe_type.level)))
        super().__init__(dmm, fe_type, members)


@register_default(AxisIndicesIterType)
class AxisIndicesIterModel(models.StructModel):
    """The level's indices and its counter."""

    def __init__(self, dmm: Any, fe_type: AxisIndicesIterType) -> None:
        members = [
            ("indices", AxisIndicesType(fe_type.region, fe_type.level)),
            ("next", types.EphemeralPointer(INDEX)),
        ]
        super().__init__(dmm, fe_type, members)


@register_default(ViewIterType)
class ViewIterModel(models.StructModel):
    """The view and the next position along its first axis."""

    def __init__(self, dmm: Any, fe_type: ViewIterType) -> None:
        super().__init__(dmm, fe_type, [("view", fe_type.view), ("next", types.EphemeralPointer(INDEX))])


register_model(Dim3Type)(models.OpaqueModel)
register_model(TargetNameType)(models.OpaqueModel)
