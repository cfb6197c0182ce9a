"""Numba's errors, said in the terms of kernels: which argument, which line, what instead."""

from __future__ import annotations

import dis
import os
import re
from typing import Any

from numba.core import errors

from numba_offload.device.types import describe_leaves, views_inside
from numba_offload.diagnostics.explain_typing import Explainer, fallback
from numba_offload.diagnostics.refusals import refusal
from numba_offload.errors import OffloadError, SafetyError
from numba_offload.targets.toolchain import is_user_source


def explain_inference(state: Any, error: BaseException) -> SafetyError:
    """Why a function of the user's cannot be typed."""
    if "Cannot unify" in str(error):
        return _two_kinds(state, error)
    return Explainer(state).explain() or explain_other(error, state.func_id.func)


_KNOWN = (
    ("IMPORT_NAME", "a kernel imports a module, which compiled code cannot", "import it at the top of the file"),
    ("LOAD_BUILD_CLASS", "a kernel defines a class, which compiled code cannot", "use numbers, tuples and named tuples"),
    ("STORE_GLOBAL", "a kernel assigns a global variable, which its threads would share", "write the result into a Region"),
    ("use of yield", "a generator expression is used, which kernel code does not have", "write it as a for loop"),
    (
        "Multiple argument raise", "'raise ... from ...' is not available in kernel code",
        "write 'raise ...' alone: an exception of a kernel has no cause",
    ),
)
"""Words of the compiler's, what they mean, and what to write."""


def explain_other(error: BaseException, py_func: Any) -> SafetyError:
    """Any error of the compiler's, told with the user's line."""
    for words, problem, fix in _KNOWN:
        if words in str(error):
            filename, line = _place(error, py_func)
            if words.startswith("Multiple"):
                line = _raise_from(py_func) or line
            return refusal(py_func.__name__, filename, line, "", problem, fix)
    return fallback(error, py_func.__name__, *_place(error, py_func))


def _raise_from(py_func: Any) -> int | None:
    """The line of the first 'raise ... from ...' of a function."""
    line = None
    for instruction in dis.get_instructions(py_func):
        line = (instruction.positions.lineno if instruction.positions else None) or line
        if instruction.opname == "RAISE_VARARGS" and instruction.arg == 2:
            return line
    return None


def _place(error: BaseException, py_func: Any) -> tuple[str, int]:
    loc = getattr(error, "loc", None)
    if loc is not None and is_user_source(os.path.abspath(loc.filename)):
        return loc.filename, loc.line
    code = py_func.__code__
    return _location(str(error)) or (code.co_filename, code.co_firstlineno)


def _two_kinds(state: Any, error: BaseException) -> SafetyError:
    """A variable that holds now one thing, now another."""
    text = str(error)
    views = {part.name: part for ty in state.args for part in views_inside(ty)}
    name = next((describe_leaves(view.leaves) for shown, view in views.items() if shown in text), None)
    if name is None:
        return explain_other(error, state.func_id.func)
    return refusal(
        state.func_id.func_name, *_place(error, state.func_id.func), name,
        "a variable would hold it on one path and something of another kind on another",
        "give each its own variable, or make both alike: arrays, or Regions of one strategy",
    )


def is_compilers(error: BaseException) -> bool:
    """Whether an error is the compiler's about the user's code, which we tell in our own words."""
    if isinstance(error, OffloadError | errors.ForceLiteralArg):
        return False
    known = AttributeError | ImportError | KeyError | NotImplementedError | TypeError | ValueError | AssertionError
    return isinstance(error, errors.NumbaError | errors.UnsupportedBytecodeError | known)


def _location(text: str) -> tuple[str, int] | None:
    """The innermost line of the user's that Numba's text points to. Numba shows paths relative to the working directory."""
    found = [(os.path.abspath(name), int(line)) for name, line in re.findall(r'File "([^"]+)", line (\d+)', text)]
    found += [(os.path.abspath(name), int(line)) for name, line in re.findall(r"at ([^\s()]+) \((\d+)\)", text)]
    found += [(os.path.abspath(name), int(line)) for name, line in re.findall(r"from ([^\s()]+) \((\d+)\)", text)]
    user = [place for place in found if is_user_source(place[0])]
    return user[-1] if user else None
