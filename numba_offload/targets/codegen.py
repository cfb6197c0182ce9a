"""LLVM for every target: collect a kernel's modules as text, link them late, optimise, emit.

Nothing here knows a vendor. A target hands in its machine (triple, processor, features) and gets assembly or an object.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import llvmlite.binding as ll
from llvmlite import ir
from numba.core import codegen

from numba_offload.errors import TargetError
from numba_offload.targets.sites import SITES, Site

_TARGETS_READY = False


def initialise_llvm() -> None:
    """Register every back end once."""
    global _TARGETS_READY
    if not _TARGETS_READY:
        ll.initialize_all_targets()
        ll.initialize_all_asmprinters()
        _TARGETS_READY = True


@dataclass(frozen=True)
class Machine:
    """What code is generated for."""

    triple: str
    cpu: str = ""
    features: str = ""
    jit: bool = False
    data_layout: str = field(default="", compare=False)

    def target_machine(self, speed: int = 3) -> Any:
        """A fresh LLVM target machine."""
        initialise_llvm()
        model = "jitdefault" if self.jit else "default"
        reloc = "default" if self.jit else "pic"
        return ll.Target.from_triple(self.triple).create_target_machine(
            cpu=self.cpu, features=self.features, opt=speed, reloc=reloc, codemodel=model, jit=self.jit
        )


class OffloadCodeLibrary(codegen.CodeLibrary):
    """Modules as text, and the libraries they call. Linking waits until a whole kernel is asked for."""

    def __init__(self, owner: OffloadCodegen, name: str) -> None:
        super().__init__(owner, name)
        self.texts: list[str] = []
        self.linked: dict[int, OffloadCodeLibrary] = {}
        self.can_fail = False
        self.sites: set[int] = set()
        self.uses_position = False

    def add_linking_library(self, library: Any) -> None:
        if library is not self:
            self.linked[id(library)] = library

    def add_ir_module(self, ir_module: ir.Module) -> None:
        self._codegen.adjust_module(ir_module)
        self.texts.append(str(ir_module))

    def finalize(self) -> None:
        self._finalized = True

    def enable_object_caching(self) -> None:
        """Objects are cached a whole kernel at a time, not per library."""

    def closure(self) -> list[OffloadCodeLibrary]:
        """This library and all that it calls, each once."""
        seen: dict[int, OffloadCodeLibrary] = {}
        waiting = [self]
        while waiting:
            library = waiting.pop()
            if id(library) not in seen:
                seen[id(library)] = library
                waiting.extend(library.linked.values())
        return list(seen.values())

    def may_fail(self) -> bool:
        """Whether any code in here can report a failure."""
        return any(library.can_fail for library in self.closure())

    def all_sites(self) -> dict[int, Site]:
        """What the numbers stand for that code in here may report."""
        numbers = sorted(set().union(*(library.sites for library in self.closure())))
        return {number: SITES.known(number) for number in numbers}

    def get_function(self, name: str) -> Any:
        raise NotImplementedError("kernel code is called through its entry only")

    def get_llvm_str(self) -> str:
        return "\n".join(self.texts)

    def get_asm_str(self) -> str:
        raise NotImplementedError("assembly exists per kernel, not per library")


class OffloadCodegen(codegen.Codegen):
    """Makes modules and libraries for one machine."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        tm = machine.target_machine()
        self._data_layout = machine.data_layout or str(tm.target_data)
        self._target_data = ll.create_target_data(self._data_layout)
        self.contract = False

    @property
    def target_data(self) -> Any:
        return self._target_data

    def _create_empty_module(self, name: str) -> ir.Module:
        module = ir.Module(re.sub(r"[^\w.$-]", "_", name))
        module.triple = self.machine.triple
        module.data_layout = self._data_layout
        return module

    def _library_class(self, *args: Any) -> OffloadCodeLibrary:
        return OffloadCodeLibrary(*args)

    def create_library(self, name: str, **kwargs: Any) -> OffloadCodeLibrary:
        return OffloadCodeLibrary(self, name)

    def insert_unresolved_ref(self, builder: ir.IRBuilder, fnty: ir.FunctionType, name: str) -> ir.Function:
        """Recursion: the callee is declared now and defined when the kernel is linked."""
        known = builder.module.globals.get(name)
        return known if known is not None else ir.Function(builder.module, fnty, name)

    def adjust_module(self, module: ir.Module) -> None:
        """Last changes to a module before it becomes text."""
        if self.contract:
            allow_contraction(module)

    def _add_module(self, module: Any) -> None:
        """Nothing is loaded until a kernel is linked."""

    def magic_tuple(self) -> tuple[str, str, str]:
        return (self.machine.triple, self.machine.cpu, self.machine.features)


def allow_contraction(module: ir.Module) -> None:
    """Let multiplications and additions fuse, as nvcc and hipcc do by default."""
    for function in module.functions:
        for block in function.blocks:
            for instruction in block.instructions:
                if instruction.opname in ("fadd", "fsub", "fmul") and not instruction.flags:
                    instruction.flags = ["contract"]


def link(texts: Iterable[str], bitcode: Iterable[bytes] = ()) -> Any:
    """One verified LLVM module from texts, with the needed parts of bitcode libraries.

    Raises TargetError for a library that this LLVM cannot read.
    """
    module = None
    for text in texts:
        part = ll.parse_assembly(text)
        if module is None:
            module = part
        else:
            module.link_in(part)
    assert module is not None
    for blob in bitcode:
        try:
            library = ll.parse_bitcode(blob)
        except RuntimeError as error:
            version, said = ".".join(map(str, ll.llvm_version_info)), " ".join(str(error).split())
            raise TargetError(
                f"LLVM {version} of this llvmlite cannot read the vendor's library of device functions: {said}. It may be of a "
                "newer LLVM; install a newer llvmlite, or older device libraries"
            ) from error
        module.link_in(library)
    module.verify()
    return module


def internalise(module: Any, keep: Iterable[str]) -> None:
    """Make every definition but the entries private, so that unused code disappears."""
    kept = set(keep)
    for function in module.functions:
        if not function.is_declaration and function.name not in kept:
            function.linkage = "internal"
    for variable in module.global_variables:
        if not variable.is_declaration and variable.name not in kept and not variable.name.startswith("llvm."):
            variable.linkage = "internal"


def drop_unused(module: Any, machine: Machine) -> None:
    """Remove private functions and variables that nothing uses, and declarations that nothing calls."""
    manager = ll.create_new_module_pass_manager()
    manager.add_global_dead_code_eliminate_pass()
    manager.add_strip_dead_prototype_pass()
    options = ll.create_pipeline_tuning_options(speed_level=0)
    builder = ll.create_pass_builder(machine.target_machine(0), options)
    manager.run(module, builder)


def optimise(module: Any, machine: Machine, speed: int = 3) -> Any:
    """Run LLVM's pipeline in place; returns the target machine it ran for."""
    tm = machine.target_machine(speed)
    options = ll.create_pipeline_tuning_options(speed_level=speed)
    options.loop_vectorization = True
    options.slp_vectorization = True
    options.loop_interleaving = True
    options.loop_unrolling = True
    builder = ll.create_pass_builder(tm, options)
    builder.getModulePassManager().run(module, builder)
    return tm


def undefined_symbols(module: Any) -> list[str]:
    """Functions that are called and not defined, intrinsics aside."""
    return sorted(f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm."))
