"""Whether asking for an attribute, or setting it, runs nobody's code."""

from __future__ import annotations

import collections
import types
import weakref
from typing import Any

import numpy as np

from numba_offload.optimizer import enumerations

_Named = collections.namedtuple("_Named", ["field"])
_PLAIN_VALUES = (
    types.FunctionType, types.BuiltinFunctionType, staticmethod, classmethod, types.MemberDescriptorType,
    types.MethodDescriptorType, types.WrapperDescriptorType, type(_Named.field),
)  # fmt: skip
"""What may stand in a class: to get it through an instance at most binds it."""
mro_of = type.__dict__["__mro__"].__get__
type_dict = type.__dict__["__dict__"].__get__
_flags = type.__dict__["__flags__"].__get__
_module = type.__dict__["__module__"].__get__
_HEAP = 1 << 9
"""Py_TPFLAGS_HEAPTYPE: a class that Python code has made."""

_GENERIC = (
    object, types.SimpleNamespace, tuple, list, dict, set, frozenset, int, float, complex, str, bytes, BaseException,
)  # fmt: skip
"""Whose attributes are looked up and set as Python does by itself: in the instance, or C's."""

_ASKING_OTHERS = frozenset({super, property, classmethod, staticmethod})
"""Built-in types that look attributes up in what they stand for."""
_PROXIES = frozenset({weakref.ProxyType, weakref.CallableProxyType})

BINDING: set[type] = set()
"""Classes of ours whose ``__get__`` only binds."""


def plain_attribute(value: Any, name: str) -> bool:
    """Whether ``value.name`` looks a name up, and no more."""
    kind = type(value)
    if kind is np.ndarray:
        return True
    if kind is types.ModuleType:
        return name in vars(value)
    if kind is types.MethodType:
        return plain_attribute(value.__func__, name)  # where it looks for what it has not
    if is_builtin(kind) and kind is not type:
        return kind not in _ASKING_OTHERS
    # Of the type itself: isinstance() asks a value for its class.
    if issubclass(kind, type):
        if kind is enumerations.EnumType and enumerations.is_plain_member(value, name):
            return True
        if kind is not type and not is_builtin(kind):
            return False
        for cls in mro_of(value):
            if name in type_dict(cls):
                return is_builtin(cls) or _is_plain(type_dict(cls)[name])
        return True
    if type(kind) is enumerations.EnumType and enumerations.is_plain_member_attribute(value, name):
        return plain_attribute(value, f"_{name}_")
    found: Any = None
    present = False
    for cls in mro_of(kind):
        if cls in _GENERIC:
            continue
        own = type_dict(cls)
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
    return not any("__getattr__" in type_dict(cls) for cls in mro_of(kind))


def plain_store(value: Any, name: str) -> bool:
    """Whether ``value.name = x`` and ``del value.name`` put a reference into a table, and no more."""
    kind = type(value)
    if kind is types.ModuleType:
        return True
    if issubclass(kind, type) or kind is np.ndarray:
        return False
    return plain_store_in(kind, name)


def plain_store_in(kind: type, name: str) -> bool:
    """The same of an instance of a class."""
    for cls in mro_of(kind):
        if cls in _GENERIC:
            continue
        own = type_dict(cls)
        if "__setattr__" in own or "__delattr__" in own:
            return False
        if name in own and type(own[name]) is not types.MemberDescriptorType and _has(type(own[name]), "__set__", "__delete__"):
            return False
    return True


def plain_class(value: Any) -> bool:
    """Whether ``value.__class__`` is its type, and nobody's property: what ``isinstance`` asks for."""
    if type(value) in _PROXIES:
        return False
    for cls in mro_of(type(value)):
        if is_heap_class(cls) and ("__class__" in type_dict(cls) or "__getattribute__" in type_dict(cls)):
            return False
    return True


def is_heap_class(cls: type) -> bool:
    """Whether Python code has made a class."""
    return bool(_flags(cls) & _HEAP)


def _is_plain(found: Any) -> bool:
    if type(found) is classmethod:
        found = found.__func__  # which it asks to bind
    return type(found) in _PLAIN_VALUES or type(found) in BINDING or not _has(type(found), "__get__")


def _has(kind: type, *names: str) -> bool:
    return any(name in type_dict(cls) for cls in mro_of(kind) for name in names)


def is_builtin(kind: type) -> bool:
    """Whether a type is the interpreter's or NumPy's own, whose attributes are C's."""
    return not _flags(kind) & _HEAP and _module(kind) in ("builtins", "numpy", "numpy.dtypes", "numpy.random._generator")


def _instance_dict(value: Any) -> dict[str, Any] | None:
    try:
        return object.__getattribute__(value, "__dict__")  # type: ignore[no-any-return]
    except AttributeError:
        return None
