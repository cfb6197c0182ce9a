"""Whether asking for an attribute, or setting it, runs nobody's code."""

from __future__ import annotations

import collections
import types
from typing import Any

import numpy as np

_Named = collections.namedtuple("_Named", ["field"])
_PLAIN_VALUES = (
    types.FunctionType, types.BuiltinFunctionType, staticmethod, classmethod, types.MemberDescriptorType,
    types.MethodDescriptorType, types.WrapperDescriptorType, type(_Named.field),
)  # fmt: skip
"""What may stand in a class: to get it through an instance at most binds it."""
_mro = type.__dict__["__mro__"].__get__
_type_dict = type.__dict__["__dict__"].__get__
_flags = type.__dict__["__flags__"].__get__
_module = type.__dict__["__module__"].__get__
_HEAP = 1 << 9
"""Py_TPFLAGS_HEAPTYPE: a class that Python code has made."""

_GENERIC = (object, types.SimpleNamespace)
"""Whose attributes are looked up and set as Python does by itself, and are in the instance."""

BINDING: set[type] = set()
"""Classes of ours whose ``__get__`` only binds."""


def plain_attribute(value: Any, name: str) -> bool:
    """Whether ``value.name`` looks a name up, and no more."""
    kind = type(value)
    if kind is np.ndarray:
        return True
    if kind is types.ModuleType:
        return name in vars(value)
    if _is_builtin(kind):
        return True
    if isinstance(value, type):
        if kind is not type and not _is_builtin(kind):
            return False
        for cls in _mro(value):
            if name in _type_dict(cls):
                return _is_plain(_type_dict(cls)[name])
        return True
    found: Any = None
    present = False
    for cls in _mro(kind):
        if cls in _GENERIC:
            continue
        own = _type_dict(cls)
        if "__getattribute__" in own:
            return False
        if not present and name in own:
            found, present = own[name], True
    instance = _instance_dict(value)
    if present:
        # A data descriptor comes before the instance's own; others behind.
        if _is_plain(found):
            return True
        return instance is not None and name in instance and not _has(type(found), "__set__", "__delete__")
    if instance is not None and name in instance:
        return True
    return not any("__getattr__" in _type_dict(cls) for cls in _mro(kind))


def plain_store(value: Any, name: str) -> bool:
    """Whether ``value.name = x`` and ``del value.name`` put a reference into a table, and no more."""
    kind = type(value)
    if kind is types.ModuleType:
        return True
    if isinstance(value, type) or kind is np.ndarray:
        return False
    for cls in _mro(kind):
        if cls in _GENERIC:
            continue
        own = _type_dict(cls)
        if "__setattr__" in own or "__delattr__" in own:
            return False
        if name in own and type(own[name]) is not types.MemberDescriptorType and _has(type(own[name]), "__set__", "__delete__"):
            return False
    return True


def _is_plain(found: Any) -> bool:
    return type(found) in _PLAIN_VALUES or type(found) in BINDING or not _has(type(found), "__get__")


def _has(kind: type, *names: str) -> bool:
    return any(name in _type_dict(cls) for cls in _mro(kind) for name in names)


def _is_builtin(kind: type) -> bool:
    """Whether a type is the interpreter's or NumPy's own, whose attributes are C's."""
    return not _flags(kind) & _HEAP and _module(kind) in ("builtins", "numpy", "numpy.dtypes", "numpy.random._generator")


def _instance_dict(value: Any) -> dict[str, Any] | None:
    try:
        return object.__getattribute__(value, "__dict__")  # type: ignore[no-any-return]
    except AttributeError:
        return None
