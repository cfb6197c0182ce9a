"""From a kernel's source to one optimised LLVM module for a GPU: all but the last step of every GPU target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba.core.compiler_lock import global_compiler_lock

from numba_offload.analysis.llvm_attributes import entry_attributes
from numba_offload.targets import codegen
from numba_offload.targets.codegen import Machine
from numba_offload.targets.gpu.entry import build_entry
from numba_offload.targets.gpu.mathlib import MathLibrary
from numba_offload.targets.image import KernelImage, ModuleCode
from numba_offload.targets.lowering import lower_kernel
from numba_offload.targets.sites import Site
from numba_offload.targets.source import KernelSource
from numba_offload.targets.toolchain import Toolchain


@dataclass(frozen=True)
class GPUModule:
    """An optimised module with one kernel in it."""

    entry: str
    code: ModuleCode
    parameters: str
    may_fail: bool
    positions: bool
    sites: dict[int, Site]
    assumed: frozenset[tuple[Any, ...]]

    def image(self, kind: str, data: bytes) -> KernelImage:
        """What was emitted from the module, with what a launch must know of it."""
        machine = self.code.machine
        return KernelImage(
            kind, machine.triple, machine.cpu, self.entry, data, self.parameters, self.may_fail, self.positions,
            self.sites, assumed=self.assumed, code=self.code,
        )  # fmt: skip


@dataclass(frozen=True)
class DeviceLibrary:
    """A vendor's bitcode. ``load`` is called only for kernels that need it; ``prefix`` begins its symbols."""

    prefix: str
    load: Callable[[], list[bytes]]


@global_compiler_lock
def build_module(
    source: KernelSource,
    toolchain: Toolchain,
    machine: Machine,
    mathematics: MathLibrary,
    library: DeviceLibrary,
    adjust: Callable[[ir.Module], None] | None = None,
) -> GPUModule:
    """Compile a kernel and what it calls, for one machine."""
    kernel = lower_kernel(source, toolchain, build_entry, adjust)
    texts = list(map(mathematics.rename, kernel.texts))
    texts += mathematics.helpers(texts)
    needed = any(f'@"{library.prefix}' in text for text in texts)
    linked = codegen.link(texts, library.load() if needed else ())
    codegen.internalise(linked, [kernel.entry])
    codegen.drop_unused(linked, machine)
    codegen.optimise(linked, machine)
    codegen.drop_unused(linked, machine)
    mathematics.check(linked, source.name)
    text = str(linked)
    # What LLVM has proved safe fails no more.
    may_fail = kernel.may_fail and "readnone" not in entry_attributes(text, kernel.entry)["launch.error"]
    code = ModuleCode(text, linked.as_bitcode(), machine)
    sites = kernel.sites if may_fail else {}
    return GPUModule(kernel.entry, code, kernel.parameters, may_fail, kernel.positions, sites, source.options.assumed)
