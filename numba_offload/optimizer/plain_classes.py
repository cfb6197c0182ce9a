"""Classes whose construction moves references about, and runs no other code of anybody's.

Asked anew each time: classes can be changed. What is remembered is about code, which cannot.
"""

from __future__ import annotations

import collections
import dis
import types
from functools import cache

from numba_offload.optimizer.attributes import is_heap_class, mro_of, plain_store_in, type_dict

_tuple_new = tuple.__new__
_MOST_REMEMBERED = 256
_stores_of: dict[int, tuple[types.CodeType, frozenset[str] | None]] = {}
"""By identity, as to compare code is to compare its constants."""

_PUSHES = frozenset({"LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW", "LOAD_CONST"})
_PUSHES_TWO = frozenset({"LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW"})
_NOTHING = frozenset({"RESUME", "NOP", "CACHE"})
_ENDS = frozenset({"RETURN_VALUE", "RETURN_CONST"})


def is_named_tuple(kind: type, *overridable: str) -> bool:
    """Whether a class is one that ``namedtuple`` or ``NamedTuple`` has made, and has none of these methods of its own."""
    if type(kind) is not type or mro_of(kind)[1:] != (tuple, object):
        return False
    own = type_dict(kind)
    return "_fields" in own and not any(name in own for name in overridable)


def stores_arguments(cls: type) -> bool:
    """Whether to call a class does no more than to put its arguments into a new object, by itself or as a tuple's elements."""
    if is_named_tuple(cls, "__init__"):
        return _makes_a_tuple(type_dict(cls).get("__new__"))
    *classes, last = mro_of(cls)
    if type(cls) is not type or last is not object:
        return False
    init = None
    for one in classes:
        own = type_dict(one)
        if type(one) is not type or not is_heap_class(one) or "__new__" in own:
            return False
        init = own.get("__init__") if init is None else init
    if init is None:
        return True
    if type(init) is not types.FunctionType:
        return False
    stored = _stored(init.__code__)
    return stored is not None and all(plain_store_in(cls, name) for name in stored)


def _makes_a_tuple(new: object) -> bool:
    """Whether ``__new__`` is what ``namedtuple`` generates."""
    function = new.__func__ if type(new) is staticmethod else None
    if type(function) is not types.FunctionType:
        return False
    code, names = function.__code__, function.__globals__
    return (
        code.co_names == ("_tuple_new",)
        and type(names) is dict
        and names.get("_tuple_new") is _tuple_new
        and code.co_code == _generated(code.co_argcount - 1)
    )


@cache
def _generated(fields: int) -> bytes:
    if fields < 0:
        return b""
    made = collections.namedtuple("made", [f"f{k}" for k in range(fields)])  # type: ignore[misc]
    return made.__new__.__code__.co_code


def _stored(code: types.CodeType) -> frozenset[str] | None:
    """The attributes that an ``__init__`` sets, if it only puts arguments and constants into its first argument."""
    known = _stores_of.get(id(code))
    if known is None:
        if len(_stores_of) >= _MOST_REMEMBERED:
            _stores_of.clear()
        known = _stores_of[id(code)] = code, _stores(code)
    return known[1]


def _stores(code: types.CodeType) -> frozenset[str] | None:
    if not code.co_argcount or code.co_flags & (0x20 | 0x80 | 0x200):  # generators and coroutines
        return None
    instance, names = code.co_varnames[0], set()
    stack: list[object] = []
    for instruction in dis.get_instructions(code):
        what = instruction.opname
        if what in _PUSHES:
            stack.append(None if what == "LOAD_CONST" else instruction.argval)
        elif what in _PUSHES_TWO:
            stack += instruction.argval
        elif what == "STORE_ATTR":
            if stack.pop() != instance:
                return None
            stack.pop()
            names.add(instruction.argval)
        elif what in _ENDS:
            return frozenset(names)
        elif what not in _NOTHING:
            return None
    return None
