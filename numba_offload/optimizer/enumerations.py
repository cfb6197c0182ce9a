"""Members of enumerations: what can be done with them without running code of the class that they are of."""

from __future__ import annotations

import enum
from typing import Any

EnumType = enum.EnumType
_property = enum.property
_getter = vars(_property).get("__get__")
_of_members: dict[str, Any] = dict(vars(enum.Enum))
_member_attributes: dict[str, tuple[Any, Any]] = {name: (_of_members[name], _of_members[name].fget) for name in ("name", "value")}
_hash = _of_members["__hash__"]
_mro = type.__dict__["__mro__"].__get__
_type_dict = type.__dict__["__dict__"].__get__
_MIXED_IN = frozenset({object, int, str, float})
"""Built-in classes whose comparisons, truth and hash look at nothing else."""
_COMPARISONS = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")


def is_plain_member(cls: Any, name: str) -> bool:
    """Whether ``cls.name`` gives a member, and no more. ``cls`` is of the exact type ``EnumType``."""
    if any(name in vars(one) for one in _mro(EnumType)) or "__getattribute__" in vars(EnumType):
        return False
    own = _type_dict(cls)
    members = own.get("_member_map_")
    if type(members) is not dict or name not in members or type(members[name]) is not cls:
        return False
    found = own.get(name)
    if found is members[name]:
        return not _defines(cls, "__get__")
    return type(found) is _property and _is_unchanged() and found.name == name


def is_plain_member_attribute(member: Any, name: str) -> bool:
    """Whether ``member.value`` or ``member.name`` are the enumeration's own. ``_value_`` and ``_name_`` are asked for then."""
    kind = type(member)
    if type(kind) is not EnumType or name not in _member_attributes or not _is_unchanged():
        return False
    found = next((_type_dict(cls)[name] for cls in _mro(kind) if name in _type_dict(cls)), None)
    wanted, getter = _member_attributes[name]
    return wanted.fget is getter and found is wanted


def compares_plainly(member: Any) -> bool:
    """Whether a value is a member that is compared by identity, or as the number or string that it is too."""
    return type(type(member)) is EnumType and not _defines(type(member), *_COMPARISONS)


def is_true_plainly(member: Any) -> bool:
    """Whether a value is a member whose truth is no method of its class."""
    return type(type(member)) is EnumType and not _defines(type(member), "__bool__", "__len__")


def hashes_plainly(member: Any) -> bool:
    """Whether a value is a member whose hash is that of its name, or of the number or string that it is too."""
    if not compares_plainly(member) or _defines(type(member), "__getattribute__"):
        return False
    hashes = [_type_dict(cls)["__hash__"] for cls in _mro(type(member)) if "__hash__" in _type_dict(cls)]
    # What stands behind the built-in class' is never asked.
    return all(one is _hash or any(one is _type_dict(cls)["__hash__"] for cls in _MIXED_IN) for one in hashes) and (
        type(object.__getattribute__(member, "__dict__").get("_name_")) is str
    )


def _defines(kind: type, *names: str) -> bool:
    return any(
        name in _type_dict(cls) for cls in _mro(kind) if cls not in _MIXED_IN for name in names
    )


def _is_unchanged() -> bool:
    return vars(_property).get("__get__") is _getter
