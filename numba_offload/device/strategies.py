"""Strategies inside kernel code: their parameters are constants, their methods compiled from their own source."""

from __future__ import annotations

from typing import Any

from numba.core import cgutils, types
from numba.core.imputils import lower_constant, lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate, infer_getattr

from numba_offload.device.models import INDEX, index_array_type
from numba_offload.device.types import StrategyMethodType, StrategyType


def _members(obj: Any) -> dict[str, Any]:
    """A strategy's or map's parameters that belong to its type."""
    return dict(obj.parameters())


def strategy_type(strategy: Any) -> StrategyType:
    """The type of a strategy (or of an element map inside one)."""
    runtime = tuple(strategy.runtime_parameters)
    index_arrays = tuple(strategy.index_arrays)
    constants: list[tuple[str, Any]] = []
    nested: list[tuple[str, StrategyType]] = []
    for name, value in sorted(_members(strategy).items()):
        if hasattr(value, "parameters"):
            nested.append((name, strategy_type(value)))
        else:
            constants.append((name, value))
    # The instance's, not the class's: a composed strategy has those of the strategy inside.
    coordinates = getattr(strategy, "coordinates", "linear")
    return StrategyType(type(strategy), tuple(constants), tuple(nested), runtime, index_arrays, coordinates)


def runtime_values(strategy: Any) -> list[Any]:
    """The values a launch passes for a strategy: ints, and index arrays, in the order of the type's layout."""
    values: list[Any] = [int(getattr(strategy, name)) for name in strategy.runtime_parameters]
    values += [getattr(strategy, name) for name in strategy.index_arrays]
    for _, value in sorted(_members(strategy).items()):
        if hasattr(value, "parameters"):
            values += runtime_values(value)
    return values


def _constant_type(value: Any) -> types.Type | None:
    if isinstance(value, bool):
        return types.boolean
    if isinstance(value, int):
        return INDEX
    if isinstance(value, float):
        return types.float64
    if isinstance(value, tuple) and value and all(isinstance(v, int) for v in value):
        return types.UniTuple(INDEX, len(value))
    return None


@infer_getattr
class StrategyAttributes(AttributeTemplate):
    """``self.k`` and ``self.method`` in a strategy's methods."""

    key = StrategyType

    def generic_resolve(self, typ: StrategyType, attr: str) -> types.Type | None:
        for name, value in typ.constants:
            if name == attr:
                return _constant_type(value)
        for name, nested in typ.nested:
            if name == attr:
                return nested
        if attr in typ.runtime:
            return INDEX
        if attr in typ.index_arrays:
            return index_array_type()
        value = getattr(typ.cls, attr, None)
        if callable(value):
            return StrategyMethodType(typ, attr)
        return _constant_type(value)


@lower_getattr_generic(StrategyType)
def strategy_getattr(context: Any, builder: Any, typ: StrategyType, value: Any, attr: str) -> Any:
    for name, constant in typ.constants:
        if name == attr:
            ty = _constant_type(constant)
            return context.get_constant_generic(builder, ty, constant)
    proxy = cgutils.create_struct_proxy(typ)(context, builder, value=value)
    if any(name == attr for name, _ in typ.nested):
        return getattr(proxy, f"n_{attr}")
    if attr in typ.runtime:
        return getattr(proxy, f"r_{attr}")
    if attr in typ.index_arrays:
        return getattr(proxy, f"a_{attr}")
    member = getattr(typ.cls, attr)
    if callable(member):
        return value
    return context.get_constant_generic(builder, _constant_type(member), member)


@lower_constant(StrategyType)
def strategy_constant(context: Any, builder: Any, typ: StrategyType, value: Any) -> Any:
    raise NotImplementedError("a strategy reaches a kernel through a Region, not as a captured value")


def call_method(
    context: Any, builder: Any, typ: StrategyType, attr: str, value: Any, argtypes: tuple[Any, ...], args: list[Any]
) -> tuple[Any, types.Type]:
    """Call a strategy's method from lowering; returns its value and type."""
    method = StrategyMethodType(typ, attr)
    sig = method.get_call_type(context.typing_context, argtypes, {})
    function = context.get_function(method, sig)
    return function(builder, [value, *args]), sig.return_type
