"""One kernel for one tuple of argument types: the host pass's findings, and code per target and variant."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from numba.core import errors, ir, types
from numba.core.compiler_lock import global_compiler_lock

from numba_offload.analysis.affine import affine_accesses
from numba_offload.analysis.intent import Intents, analyse
from numba_offload.analysis.values import check_values
from numba_offload.arguments import TypeBuilder
from numba_offload.device.types import ViewType
from numba_offload.diagnostics.explain_errors import explain_other
from numba_offload.diagnostics.refusals import refusal
from numba_offload.errors import SafetyError
from numba_offload.launch_facts import LaunchFacts
from numba_offload.targets.base import CompiledKernel, Target
from numba_offload.targets.dispatcher import entry_key
from numba_offload.targets.entry import flat_slots
from numba_offload.targets.host import host_toolchain
from numba_offload.targets.options import CompileOptions
from numba_offload.targets.record import KernelRecord


@dataclass
class Specialisation:
    """What is known about a kernel for these argument types."""

    record: KernelRecord
    intents: Intents
    leaves: dict[str, ViewType]
    facts: LaunchFacts
    code: dict[tuple[str, str, frozenset[Any]], CompiledKernel] = field(default_factory=dict)
    plans: dict[Any, Any] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def compiled(self, target: Target, assumed: frozenset[Any]) -> CompiledKernel:
        """Code for a target, in the variant that assumes these facts."""
        key = (target.name, target.arch, assumed)
        known = self.code.get(key)
        if known is None:
            with self.lock:
                known = self.code.get(key)
                if known is None:
                    options = replace(self.record.options, assumed=assumed)
                    known = self.code[key] = self._compile(target, replace(self.record, options=options))
        return known

    def _compile(self, target: Target, record: KernelRecord) -> CompiledKernel:
        try:
            return target.compile(record)
        except SafetyError as told:
            raise SafetyError(told.plain) from told.__cause__
        except errors.NumbaError as error:
            raise explain_other(error, record.py_func) from error


def _type_kernel(py_func: Any, argtypes: tuple[types.Type, ...], options: CompileOptions) -> Any:
    host = host_toolchain()
    host.refused.clear()
    try:
        host.compile_function(py_func, argtypes, None, options)
    except errors.NumbaError as error:
        if host.refused:
            told = host.refused[0]
            raise SafetyError(told.plain) from told.__cause__
        raise explain_other(error, py_func) from error
    return host.typed_functions[entry_key(py_func, argtypes, options)]


def _returns_value(typed: Any) -> SafetyError:
    ends = [b.terminator for b in typed.func_ir.blocks.values() if isinstance(b.terminator, ir.Return)]
    line = next((e.loc.line for e in ends if typed.typemap[e.value.name] != types.none), typed.func_ir.loc.line)
    return refusal(
        typed.py_func.__name__, typed.func_ir.loc.filename, line, "",
        f"it returns a value of type {typed.return_type}, but a kernel returns nothing",
        "write the result into a Region",
    )


@global_compiler_lock
def specialise(
    name: str, py_func: Any, names: Sequence[str], key: Sequence[Any], options: CompileOptions
) -> Specialisation:
    """The host pass.

    Raises SafetyError (a TypingError of Numba's) where the kernel could write what it may not, uses what views do not
    offer, or cannot be compiled for another reason.
    """
    builder = TypeBuilder(options.unsafe)
    argtypes = builder.types(names, key)
    try:
        typed = _type_kernel(py_func, argtypes, options)
    except SafetyError:
        united = TypeBuilder(options.unsafe, united=True)
        again = united.types(names, key)
        if again == argtypes:
            raise
        # Indexing a homogeneous tuple by a variable needs its items to be of one type.
        builder, argtypes = united, again
        typed = _type_kernel(py_func, argtypes, options)
    if typed.return_type not in (types.none, types.void):
        raise _returns_value(typed)
    functions = host_toolchain().typed_functions
    intents = analyse(typed, functions, builder.leaves, options.unsafe)
    check_values(typed, functions, host_toolchain().typing_context)
    record = KernelRecord(
        name,
        py_func,
        tuple(names),
        argtypes,
        options,
        tuple(flat_slots(tuple(names), argtypes)),
        {leaf: intent.map for leaf, intent in intents.leaves.items()},
    )
    accesses = affine_accesses(typed.func_ir, typed.typemap)
    return Specialisation(record, intents, builder.leaves, LaunchFacts(accesses, builder.leaves, record.layout))
