"""``target.name`` in kernel code: the target that the code is being compiled for, as a constant."""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.core.extending import typeof_impl
from numba.core.imputils import lower_constant
from numba.core.typing.templates import AttributeTemplate, infer_getattr

from numba_offload.device.types import TargetNameType


class TargetName:
    """In kernel code ``target.name`` is ``"cpu"``, ``"cuda"`` or ``"amdgpu"``; branches on it are settled at compile time."""

    def __repr__(self) -> str:
        return "<target of kernel code>"


target = TargetName()


@typeof_impl.register(TargetName)
def typeof_target(value: TargetName, c: Any) -> types.Type:
    return TargetNameType()


@infer_getattr
class TargetNameAttributes(AttributeTemplate):
    """The host pass sees a string that it does not know, so that it looks at every branch."""

    key = TargetNameType

    def resolve_name(self, ty: TargetNameType) -> types.Type:
        return types.unicode_type


@lower_constant(TargetNameType)
def target_constant(context: Any, builder: Any, ty: Any, value: Any) -> Any:
    return context.get_dummy_value()
