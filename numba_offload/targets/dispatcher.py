"""Functions that kernel code calls: compiled per target, per options, per argument types, through our pipeline."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from numba.core import errors, sigutils, types, typing
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import _FunctionCompiler

from numba_offload.diagnostics.refusals import refusal
from numba_offload.targets.options import CompileOptions

if TYPE_CHECKING:
    from numba_offload.targets.toolchain import Toolchain


class EntryKey:
    """Stands for one compiled function in a target context's table of implementations."""

    __slots__ = ("__weakref__", "args", "function", "options")

    def __init__(self, function: Any, args: tuple[types.Type, ...], options: CompileOptions) -> None:
        self.function = function
        self.args = args
        self.options = options


_ENTRY_KEYS: dict[tuple[Any, tuple[types.Type, ...], CompileOptions], EntryKey] = {}

LIBRARY_OPTIONS = CompileOptions(contract=False, partition=True)
"""Strategies' methods: the arithmetic of the check before a launch, on every target."""


def entry_key(function: Any, args: tuple[types.Type, ...], options: CompileOptions) -> EntryKey:
    """The same key for the same function, types and options on every target."""
    wanted = (function, tuple(args), options)
    return _ENTRY_KEYS.setdefault(wanted, EntryKey(*wanted))


def library_entry_key(function: Any, args: tuple[types.Type, ...]) -> EntryKey:
    """The key of a strategy's method."""
    return entry_key(function, args, LIBRARY_OPTIONS)


class _Counter:
    """Depth of running compilations; truthy while one runs, as type inference asks for recursion."""

    def __init__(self) -> None:
        self.depth = 0

    @contextmanager
    def entered(self) -> Iterator[None]:
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1


class DeviceDispatcher:
    """One Python function on one target under one set of options. What Numba's typing expects of a dispatcher."""

    def __init__(self, py_func: Any, toolchain: Toolchain, options: CompileOptions) -> None:
        self.py_func = py_func
        self.toolchain = toolchain
        self.options = options
        self.overloads: dict[tuple[types.Type, ...], Any] = {}
        self.targetdescr = toolchain
        self.targetoptions: dict[str, Any] = {}
        self.pysig = inspect.signature(py_func)
        self._counter = _Counter()
        self._compiler = _FunctionCompiler(py_func, toolchain, {}, {}, toolchain.pipeline)
        self._type = types.Dispatcher(self)

    def __repr__(self) -> str:
        return f"device function {self.py_func.__qualname__}"

    @property
    def is_compiling(self) -> bool:
        return bool(self._counter.depth)

    @property
    def _numba_type_(self) -> types.Type:
        return self._type

    @property
    def nopython_signatures(self) -> list[Any]:
        return [result.signature for result in self.overloads.values()]

    def fold_argument_types(self, args: Any, kws: Any) -> Any:
        """Type inference asks for this only where a function calls itself, directly or through others."""
        code = self.py_func.__code__
        refused = refusal(
            self.py_func.__name__, code.co_filename, code.co_firstlineno, "",
            "it calls itself, and device functions cannot: a GPU thread's stack is small and fixed",
            "write the recursion as a loop",
        )
        self.toolchain.refused.append(refused)
        raise refused

    def get_function_type(self) -> None:
        """A device function is not a value that a variable could hold now one, now another of."""
        return None

    def get_call_template(self, args: Any, kws: Any) -> tuple[Any, Any, Any, dict[str, Any]]:
        pysig, args = self._compiler.fold_argument_types(args, kws)
        self.compile(tuple(args))
        template = typing.make_concrete_template(
            f"CallTemplate({self.py_func.__name__})", key=self.py_func.__name__, signatures=self.nopython_signatures
        )
        return template, pysig, args, {}

    def get_overload(self, sig: Any) -> EntryKey:
        args, _ = sigutils.normalize_signature(sig)
        return entry_key(self.py_func, tuple(args), self.options)

    @global_compiler_lock
    def compile(self, sig: Any) -> Any:
        """Compile for a tuple of argument types (or return what was compiled)."""
        args, return_type = sigutils.normalize_signature(sig)
        key = tuple(args)
        known = self.overloads.get(key)
        if known is not None:
            return known
        with self._counter.entered():
            try:
                result = self.toolchain.compile_function(self.py_func, key, return_type, self.options)
            except errors.ForceLiteralArg as request:
                def folded() -> tuple[Any, ...]:
                    return self._compiler.fold_argument_types(args, {})[1]

                raise request.bind_fold_arguments(lambda _a, _k: folded()) from None
        self.overloads[key] = result
        return result
