"""One target's compiler: contexts, code generator, pipeline and the functions compiled so far."""

from __future__ import annotations

import os
import threading
from typing import Any

import numba
from numba.core import compiler, types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.target_extension import (
    Generic,
    dispatcher_registry,
    jit_registry,
    target_override,
    target_registry,
)
from numba.core.targetconfig import Option

import numba_offload
import partitioning
from numba_offload.errors import SafetyError
from numba_offload.targets.codegen import Machine, OffloadCodegen
from numba_offload.targets.context import OffloadTypingContext
from numba_offload.targets.dispatcher import DeviceDispatcher
from numba_offload.targets.options import CompileOptions

_LIBRARY_FOLDERS = tuple(os.path.dirname(m.__file__ or "") + os.sep for m in (numba, numba_offload, partitioning))
_DEMO_FOLDER = os.path.join(os.path.dirname(numba_offload.__file__ or ""), "demo") + os.sep


def is_user_source(filename: str) -> bool:
    """Whether a file is the user's rather than Numba's or ours. The demo's kernels stand for a user's."""
    return not filename.startswith(_LIBRARY_FOLDERS) or filename.startswith(_DEMO_FOLDER)


def _as_options(value: CompileOptions) -> CompileOptions:
    """Numba converts each option with its ``type``; ours is passed as it is."""
    return value


class OffloadFlags(compiler.Flags):
    """Numba's flags and our options."""

    offload = Option(type=_as_options, default=CompileOptions(), doc="options of kernel code")


class Toolchain:
    """Compiles kernel code for one target. Also serves Numba as the target's descriptor."""

    def __init__(
        self,
        name: str,
        numba_target: type[Generic],
        context_class: Any,
        machine: Machine,
        pipeline: Any,
        contracts_by_default: bool,
    ) -> None:
        self.name = name
        self.machine = machine
        self.pipeline = pipeline
        self.contracts_by_default = contracts_by_default
        self.refused: list[SafetyError] = []
        self.lowered: tuple[Any, Any] | None = None
        """The last kernel that was lowered, and what became of it."""
        self.helper_caches: dict[Any, dict[Any, Any]] = {}
        self._dispatchers: dict[Any, DeviceDispatcher] = {}
        self._functions: dict[str, Any] = {}
        self._lock = threading.RLock()
        self.numba_name = f"offload_{name}"
        target_registry[self.numba_name] = numba_target
        self.codegen = OffloadCodegen(machine)
        owner = self

        class _Descriptor:
            targetdescr = owner

        dispatcher_registry[numba_target] = _Descriptor
        jit_registry[numba_target] = self._jit
        self.typing_context = OffloadTypingContext()
        self.typing_context.toolchain = self
        # BaseContext.__init__ installs nothing yet; refresh() does, at the first compilation.
        context_class.toolchain = self
        self.target_context = context_class(self.typing_context, self.numba_name)
        self.options = None

    def _jit(self, *args: Any, **kwargs: Any) -> Any:
        """How Numba compiles the implementation of an overload for this target."""

        def decorate(function: Any) -> DeviceDispatcher:
            from numba_offload.targets.context import current_options

            return self.dispatcher(function, current_options().for_callees())

        return decorate(args[0]) if args and callable(args[0]) else decorate

    def contracts(self, options: CompileOptions) -> bool:
        """Whether multiplications and additions may fuse."""
        return self.contracts_by_default if options.contract is None else options.contract

    def dispatcher(self, py_func: Any, options: CompileOptions) -> DeviceDispatcher:
        """The device function for a Python function under options."""
        with self._lock:
            key = (py_func, options)
            known = self._dispatchers.get(key)
            if known is None:
                known = self._dispatchers[key] = DeviceDispatcher(py_func, self, options)
            return known

    def function_of(self, fndesc: Any) -> Any:
        """The Python function that a function descriptor was made from."""
        return self._functions[fndesc.unique_name]

    def note_function(self, unique_name: str, py_func: Any) -> None:
        """Remember where a function descriptor came from."""
        self._functions[unique_name] = py_func

    def flags(self, options: CompileOptions) -> OffloadFlags:
        """Numba's flags for code that only other code of ours calls."""
        flags = OffloadFlags()
        flags.offload = options
        flags.no_cpython_wrapper = True
        flags.no_cfunc_wrapper = True
        return flags

    @global_compiler_lock
    def compile_function(
        self, py_func: Any, args: tuple[types.Type, ...], return_type: Any, options: CompileOptions
    ) -> Any:
        """Run the pipeline. Returns Numba's compile result."""
        flags = self.flags(options)
        flags.enable_pyobject = False
        flags.enable_looplift = False
        flags.nrt = False
        flags.forceinline = True
        with target_override(self.numba_name):
            return compiler.compile_extra(
                self.typing_context,
                self.target_context,
                py_func,
                args,
                return_type,
                flags,
                {},
                pipeline_class=self.pipeline,
            )
