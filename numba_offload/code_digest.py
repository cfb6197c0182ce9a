"""A digest of everything that a function's compiled code follows from, the same in every process.

That is its bytecode and constants, those of every function that it calls in any file, and the values that they take from
around them. Bytecode rather than source text: the file may have been edited since it was imported. Two Python versions may
so have two digests for one source.
"""

from __future__ import annotations

import enum
import hashlib
import inspect
import os
import struct
import sys
import sysconfig
import types as python_types
from collections.abc import Iterator
from typing import Any

import numpy as np
from numba.core import types

from numba_offload.captures import Capture, captures, code_objects
from numba_offload.errors import NotPlainError
from numba_offload.targets.context import device_source, indexing_name

VERSIONED = frozenset({"numba", "numba_offload", "partitioning", "llvmlite", "numpy", *sys.stdlib_module_names})
"""Packages whose parts are told by name: whoever keeps a digest keeps their versions."""

_NAMED = (type, python_types.FunctionType, python_types.BuiltinFunctionType, np.ufunc)
_PLAIN_TYPES = (types.Number, types.Boolean, types.NPDatetime, types.NPTimedelta, types.Record)


class CodeDigest:
    """Feed it with functions and values, then ask for ``hexdigest``.

    ``lines``: two functions that differ in their line numbers or files only are different.

    Raises NotPlainError, naming it, for a captured value that has no form of its own (an arbitrary object, a function that
    kernel code cannot call).
    """

    def __init__(self, lines: bool = False) -> None:
        self._lines = lines
        self._hash = hashlib.sha256()
        self._seen: dict[Any, int] = {}
        self._asked: set[str] = set()
        """Every name that code has asked for."""
        self._loose: dict[Any, str] = {}
        """Modules that code holds as values, so that any of the code may take any of these names from them."""
        self._taken: set[tuple[Any, str]] = set()

    def hexdigest(self) -> str:
        """The digest of all that was fed."""
        self._look_into_modules()
        return self._hash.hexdigest()

    def function(self, function: Any) -> None:
        """A Python function, with all that it takes from around it."""
        known = self._seen.get(function)
        if known is not None:
            self._put("seen", str(known).encode())
            return
        self._seen[function] = len(self._seen)
        self._asked.update(n for code in code_objects(function.__code__) for n in code.co_names)
        self._put("function")
        self._code(function.__code__)
        self.value(function.__defaults__, f"a default of {function.__name__}")
        self.value(tuple(sorted((function.__kwdefaults__ or {}).items())), f"a default of {function.__name__}")
        for capture in captures(function):
            self._put("capture", capture.name.encode())
            self._captured(capture)
        self._put("end")

    def value(self, value: Any, name: str) -> None:
        """A value that compiled code may hold. ``name`` is for the error where it has no form."""
        if isinstance(value, types.Type):
            if not isinstance(value, _PLAIN_TYPES):
                raise _no_form(value, name)
            self._put("numba type", str(value).encode())
        elif inspect.iscode(value):
            self._code(value)
        elif isinstance(value, tuple | list | frozenset):
            self._several(value, name)
        elif isinstance(value, enum.Enum):
            self._name(type(value), name)
            self._put("member", value.name.encode())
            self.value(value.value, name)
        elif isinstance(value, np.generic):
            self._put("numpy", repr((value.dtype, value.dtype.isalignedstruct)).encode(), value.tobytes())
        elif isinstance(value, np.dtype):
            self._put("dtype", repr(value).encode())
        elif type(value) is int:
            self._put("int", f"{value:x}".encode())
        elif value is None or value is Ellipsis or type(value) in (bool, str, bytes):
            self._put(type(value).__name__, repr(value).encode())
        elif type(value) in (float, complex):
            parts = complex(value)
            self._put(type(value).__name__, struct.pack("<dd", parts.real, parts.imag))
        else:
            self._other(value, name)

    # ----------------------------------------------------------------------------------------------------- internals

    def _put(self, tag: str, *parts: bytes) -> None:
        # With lengths, so that no two sequences of parts run together into one.
        for part in (tag.encode(), *parts):
            self._hash.update(struct.pack("<q", len(part)))
            self._hash.update(part)
        self._hash.update(struct.pack("<q", -1))

    def _code(self, code: Any) -> None:
        self._put("code", code.co_code, code.co_exceptiontable, code.co_qualname.encode())
        names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        self._put("names", *("\0".join(group).encode("utf-8", "surrogatepass") for group in names))
        counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
        self._put("counts", struct.pack("<4q", *counts))
        if self._lines:
            first = struct.pack("<q", code.co_firstlineno)
            self._put("lines", code.co_filename.encode("utf-8", "surrogatepass"), first, code.co_linetable)
        self.value(code.co_consts, f"a constant of {code.co_name}")

    def _several(self, value: Any, name: str) -> None:
        if isinstance(value, frozenset):
            # In an order that is the same in every process.
            digests = []
            for item in value:
                one = CodeDigest(self._lines)
                one.value(item, name)
                digests.append(one.hexdigest().encode())
            self._put("frozenset", *sorted(digests))
            return
        if hasattr(value, "_fields"):
            self._name(type(value), name)
        self._put(type(value).__name__ if type(value) in (tuple, list) else "tuple", str(len(value)).encode())
        for k, item in enumerate(value):
            self.value(item, f"{name}[{k}]")

    def _captured(self, capture: Capture) -> None:
        try:
            value = capture.read()
        except ValueError:  # an empty cell
            value = None
        if isinstance(value, np.ndarray):
            if "." in capture.name:
                self._array(value, capture.name)
            else:
                self._put("array")  # a hidden argument of the kernel, or refused
        elif isinstance(value, python_types.ModuleType):
            self._module(value, capture)
        else:
            self.value(value, capture.name)

    def _module(self, module: Any, capture: Capture) -> None:
        self._put("module", module.__name__.encode())
        if capture.loose and not _versioned(module.__name__):
            self._loose.setdefault(module, capture.name)

    def _look_into_modules(self) -> None:
        """All that code may come by where a module has another name, or is an argument. It may lead to more code."""
        while left := [
            (module, name, attribute)
            for module, name in self._loose.items()
            for attribute in sorted(self._asked)
            if (module, attribute) not in self._taken and hasattr(module, attribute)
        ]:
            for module, name, attribute in left:
                self._taken.add((module, attribute))
                self._put("attribute", module.__name__.encode(), attribute.encode())
                value = getattr(module, attribute)
                self._captured(Capture(f"{name}.{attribute}", lambda value=value: value, loose=True))  # type: ignore[misc]

    def _array(self, array: np.ndarray, name: str) -> None:
        """An array in a module, whose content code of unsafe kernels freezes."""
        if array.dtype.hasobject:
            raise _no_form(array, name)
        flags = (array.flags.c_contiguous, array.flags.f_contiguous, array.flags.aligned, array.flags.writeable)
        self._put("content", repr((array.dtype, array.dtype.isalignedstruct, array.shape, flags)).encode(), array.tobytes())

    def _other(self, value: Any, name: str) -> None:
        source = device_source(value)
        if source is not None:
            self.function(source)
        elif indexing_name(value) is not None:
            self._other(indexing_name(value), name)
        elif isinstance(value, _NAMED) or _is_versioned(value):
            self._name(value, name)
        elif type(value).__module__.split(".")[0] == "numba_offload" and hasattr(value, "__dict__"):
            # Names of kernel code: target, threadIdx ...
            self._put("ours", type(value).__qualname__.encode())
            self.value(tuple(sorted(vars(value).items())), name)
        else:
            raise _no_form(value, name)

    def _name(self, value: Any, name: str) -> None:
        """A class or a function that is told by where it is found."""
        module, qualname = getattr(value, "__module__", None), getattr(value, "__qualname__", value.__name__)
        if not isinstance(module, str) or _found(module, qualname) is not value:
            raise _no_form(value, name)
        self._put("name", module.encode(), qualname.encode())
        if _versioned(module):
            return
        if not isinstance(value, type):
            raise _no_form(value, name)
        if issubclass(value, enum.Enum):
            for member in value:
                self._put("member", member.name.encode())
                self.value(member.value, name)
        elif hasattr(value, "_fields"):
            self.value(value._fields, name)
            self.value(tuple(sorted(getattr(value, "_field_defaults", {}).items())), name)
        elif not issubclass(value, BaseException):
            raise _no_form(value, name)


def _root(module: str) -> str:
    return module.split(".")[0]


_STANDARD = tuple({sysconfig.get_path(which) + os.sep for which in ("stdlib", "platstdlib")})


def _versioned(module: str) -> bool:
    """Whether a module is one of VERSIONED, and not the user's ``test``, ``code`` or ``profile`` of the same name."""
    root = _root(module)
    if root not in VERSIONED or root not in sys.stdlib_module_names:
        return root in VERSIONED
    origin = getattr(getattr(sys.modules.get(root), "__spec__", None), "origin", None)
    if origin in ("built-in", "frozen"):
        return True
    return isinstance(origin, str) and origin.startswith(_STANDARD) and "-packages" + os.sep not in origin


def _is_versioned(value: Any) -> bool:
    """Whether a value is a function of a VERSIONED package, of whatever class: NumPy has several."""
    module, qualname = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not (callable(value) and isinstance(module, str) and isinstance(qualname, str)):
        return False
    return _versioned(module) and _found(module, qualname) is value


def _found(module: str, qualname: str) -> Any:
    found: Any = sys.modules.get(module)
    for part in qualname.split("."):
        found = getattr(found, part, None)
    return found


def _no_form(value: Any, name: str) -> NotPlainError:
    kind = f"the {type(value).__name__} " if isinstance(value, _NAMED) else "of type "
    shown = getattr(value, "__qualname__", None) if isinstance(value, _NAMED) else type(value).__qualname__
    return NotPlainError(f"{name!r} ({kind}{shown}) has no form that would be the same in another process")


# -------------------------------------------------------------------------------------------------- users' strategies

_PROTOCOL = frozenset({"count", "index", "origin", "local_shape", "step", "readable"})
"""Methods that compiled code calls by itself; the others it comes by through these."""


def strategy_digest(classes: list[type], lines: bool = False) -> str:
    """A digest of what kernels compile of strategies and element maps that work together: methods and class constants."""
    digest = CodeDigest(lines)
    for cls, name, member in _compiled_members(classes):
        if not is_package_class(cls):
            digest.value((cls.__qualname__, name), name)
            if inspect.isfunction(member):
                if not member.__module__.startswith("partitioning."):
                    digest.function(member)
            elif callable(member) or isinstance(member, bool | int | float | tuple):
                digest.value(member, f"{cls.__name__}.{name}")
    return digest.hexdigest()


def is_package_class(cls: type) -> bool:
    """Whether a strategy or an element map is one of the package's own."""
    return _root(cls.__module__) == "partitioning"


def _compiled_members(classes: list[type]) -> Iterator[tuple[type, str, Any]]:
    """Members that compiled code may use: the protocol's methods, and whatever the code of those found so far names."""
    names = set(_PROTOCOL)
    grown = True
    while grown:
        functions = [m for cls in classes for n in names if inspect.isfunction(m := getattr(cls, n, None))]
        more = {n for f in functions for code in code_objects(f.__code__) for n in code.co_names}
        grown = not more <= names
        names |= more
    for cls in classes:
        for name in sorted(names):
            member = getattr(cls, name, None)
            if member is not None:
                yield cls, name, member
