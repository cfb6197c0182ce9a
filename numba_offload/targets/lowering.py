"""From a kernel's source to LLVM text, on every target: what a device pass does before it looks at an architecture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.target_extension import Generic

from numba_offload.targets import codegen
from numba_offload.targets.codegen import Machine
from numba_offload.targets.entry import entry_name, needs_positions
from numba_offload.targets.image import parameter_format
from numba_offload.targets.pipeline import DevicePipeline
from numba_offload.targets.sites import Site
from numba_offload.targets.source import KernelSource
from numba_offload.targets.toolchain import Toolchain


def device_toolchain(
    name: str, numba_target: type[Generic], context_class: Any, machine: Machine, contracts_by_default: bool
) -> Toolchain:
    """A target's compiler; its architectures differ only after lowering. A target makes its own once."""
    import numba_offload.device  # noqa: F401 - registers what kernel code may use

    codegen.initialise_llvm()
    return Toolchain(name, numba_target, context_class, machine, DevicePipeline, contracts_by_default)


@dataclass(frozen=True)
class LoweredKernel:
    """A kernel and all that it calls as LLVM text, before anything depends on an architecture."""

    entry: str
    texts: tuple[str, ...]
    parameters: str
    may_fail: bool
    positions: bool
    sites: dict[int, Site]


@global_compiler_lock
def lower_kernel(
    source: KernelSource,
    toolchain: Toolchain,
    build_entry: Callable[..., None],
    adjust: Callable[[ir.Module], None] | None = None,
) -> LoweredKernel:
    """Type and lower. ``build_entry`` emits the entry; ``adjust`` may change its module (flags, metadata).

    The last result is kept: the same kernel is often wanted for one architecture after the other.
    """
    key = (source.name, source.py_func, source.argument_types, source.options, source.layout)
    if toolchain.lowered is not None and toolchain.lowered[0] == key:
        known: LoweredKernel = toolchain.lowered[1]
        return known
    body = toolchain.compile_function(source.py_func, source.argument_types, types.none, source.options)
    context = toolchain.target_context
    libraries = body.library.closure()
    may_fail = body.library.may_fail()
    positions = any(lib.uses_position for lib in libraries) or needs_positions(source.argument_types)
    name = entry_name(source.name)
    module = context.create_module(f"{name}.entry")
    build_entry(
        context, module, name, body.fndesc, source.argument_types, list(source.layout), source.options.unsafe,
        positions, may_fail, source.options.assumed,
    )  # fmt: skip
    if adjust is not None:
        adjust(module)
    texts = (str(module), *(text for lib in libraries for text in lib.texts))
    sites = body.library.all_sites() if may_fail else {}
    made = LoweredKernel(name, texts, parameter_format(source.layout), may_fail, positions, sites)
    toolchain.lowered = (key, made)
    return made
