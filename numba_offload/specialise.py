"""The host pass: a kernel and everything it calls is typed and analysed for one tuple of argument types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numba.core import errors, ir, types
from numba.core.compiler_lock import global_compiler_lock

from numba_offload.analysis.affine import affine_accesses
from numba_offload.analysis.intent import analyse
from numba_offload.analysis.values import check_values
from numba_offload.arguments import TypeBuilder
from numba_offload.diagnostics.explain_errors import explain_other
from numba_offload.diagnostics.refusals import refusal
from numba_offload.errors import SafetyError
from numba_offload.launch_facts import decidable_facts
from numba_offload.record import KernelRecord, parameters_of
from numba_offload.specialisation import Specialisation
from numba_offload.targets.dispatcher import entry_key
from numba_offload.targets.entry import flat_slots
from numba_offload.targets.host import host_toolchain
from numba_offload.targets.options import CompileOptions
from numba_offload.targets.source import KernelSource


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
    accesses = tuple(access for _, access in affine_accesses(typed.func_ir, typed.typemap))
    parameters = parameters_of(py_func)
    layout = tuple(flat_slots(tuple(names), argtypes))
    record = KernelRecord(
        name,
        py_func.__code__.co_filename,
        parameters,
        tuple(names[len(parameters) :]),
        options,
        builder.united,
        layout,
        intents.leaves,
        intents.shared_indices,
        accesses,
        decidable_facts(accesses, builder.leaves),
    )
    return Specialisation(record, KernelSource(name, py_func, argtypes, options, layout))
