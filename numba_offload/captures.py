"""What a kernel takes from around it: arrays become hidden arguments, other values are part of its identity."""

from __future__ import annotations

import dis
import inspect
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from numba_offload.targets.context import device_source

_PLAIN = (bool, int, float, complex, str, bytes, np.generic)
_UNCHANGING = {math, np}
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")


@dataclass(frozen=True)
class Capture:
    """A global or closure variable, possibly an attribute of a module, that a function refers to.

    It is read anew from where the name begins: each name on the way may be given another value.
    """

    name: str
    read: Callable[[], Any]
    loose: bool = False
    """Whether it is used otherwise than for an attribute: a module then goes where this function does not show."""


def _closure(function: Any) -> Iterator[Capture]:
    names = function.__code__.co_freevars
    for name, cell in zip(names, function.__closure__ or (), strict=True):
        yield Capture(name, lambda cell=cell: cell.cell_contents)  # type: ignore[misc]


def code_objects(code: Any) -> Iterator[Any]:
    """A code object and those of the functions defined inside it."""
    yield code
    for constant in code.co_consts:
        if inspect.iscode(constant):
            yield from code_objects(constant)


def _outside(function: Any) -> Iterator[Capture]:
    """Globals, and attributes of modules however deep: ``package.module.value``."""
    enclosing = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    namespace = function.__globals__
    for code in code_objects(function.__code__):
        module: Capture | None = None
        # A prefix stands before an instruction whose name has a number beyond 255.
        instructions = [one for one in dis.get_instructions(code) if one.opname != "EXTENDED_ARG"]
        for instruction, following in zip(instructions, [*instructions[1:], None], strict=True):
            name = instruction.argval
            loose = following is None or following.opname not in _ATTRIBUTES
            if instruction.opname == "LOAD_GLOBAL":
                found = Capture(name, lambda name=name: namespace.get(name), loose)  # type: ignore[misc]
            elif instruction.opname in ("LOAD_DEREF", "LOAD_CLASSDEREF") and name in enclosing:
                found = Capture(name, lambda cell=enclosing[name]: cell.cell_contents, loose)  # type: ignore[misc]
            elif instruction.opname in _ATTRIBUTES and module is not None:
                found = Capture(f"{module.name}.{name}", lambda of=module, a=name: getattr(of.read(), a, None), loose)  # type: ignore[misc]
            else:
                module = None
                continue
            yield found
            value = _read(found)
            module = found if inspect.ismodule(value) and value not in _UNCHANGING else None


def captures(function: Any) -> tuple[Capture, ...]:
    """Everything that a function takes from around it, each name once."""
    found: dict[str, Capture] = {}
    for capture in (*_closure(function), *_outside(function)):
        if found.setdefault(capture.name, capture).loose < capture.loose:
            found[capture.name] = capture
    return tuple(found.values())


def captured_arrays(function: Any) -> dict[str, Callable[[], Any]]:
    """Captured NumPy arrays by name, with how to read their current value."""
    out = {}
    for capture in captures(function):
        if isinstance(_read(capture), np.ndarray) and "." not in capture.name:
            out[capture.name] = capture.read
    return out


def holds_arrays(value: Any) -> bool:
    """Whether a captured value is an array or contains one."""
    if isinstance(value, np.ndarray):
        return True
    return isinstance(value, tuple | list) and any(holds_arrays(v) for v in value)


def fingerprint(value: Any) -> Any:
    """What stands for a captured value in a key: numbers by value, functions of ours by their source, others as they are."""
    kind = type(value)
    if isinstance(value, _PLAIN):
        # Classes that Python code has made may be shown alike whatever they hold.
        return (kind, repr(value)) if kind in _PLAIN or kind.__module__ == "numpy" else (kind, _Same(value))
    if isinstance(value, tuple):
        parts = tuple([fingerprint(v) for v in value])
        return parts if kind is tuple else (kind, parts)
    source = device_source(value)
    if source is not None:
        return source
    if isinstance(value, np.ndarray):
        return None
    return _Same(value)


class _Same:
    """Equal for one object only, which it keeps: an id alone may come to mean another object."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


class Fingerprint:
    """The values that compiled code freezes, of a function and of all the functions it calls, cheap to read again."""

    def __init__(self, function: Any) -> None:
        self.captures: list[Capture] = []
        self._owners: list[Any] = []
        """The function that takes each of them."""
        self._collect(function, set())
        self._whose = tuple((owner, capture.name) for owner, capture in zip(self._owners, self.captures, strict=True))

    def _collect(self, function: Any, seen: set[Any]) -> None:
        seen.add(function)
        for capture in captures(function):
            value = _read(capture)
            self.captures.append(capture)
            self._owners.append(function)
            callee = device_source(value)
            if callee is not None and callee not in seen:
                self._collect(callee, seen)

    def current(self) -> tuple[Any, ...]:
        """Hashable; equal exactly while nothing that compiled code has frozen has changed.

        Whose values they are is a part of it, as another function in a callee's place takes other ones.
        """
        if not self.captures:
            return ()
        return (self._whose, *[fingerprint(_read(capture)) for capture in self.captures])


def _read(capture: Capture) -> Any:
    try:
        return capture.read()
    except ValueError:  # an empty cell
        return None
