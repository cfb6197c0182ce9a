"""The device pass for the CPU: a native object from a kernel's source, for this processor or another of its family."""

from __future__ import annotations

import ctypes
import ctypes.util
import platform
from functools import cache
from typing import Any

import llvmlite.binding as ll
from numba.core import base, externals
from numba.core.compiler_lock import global_compiler_lock
from numba.core.target_extension import CPU

from numba_offload.errors import TargetError
from numba_offload.targets import codegen
from numba_offload.targets.codegen import Machine
from numba_offload.targets.context import OffloadContext
from numba_offload.targets.cpu.entry import build_entry
from numba_offload.targets.cpu.features import named_machine
from numba_offload.targets.image import KernelImage, ModuleCode
from numba_offload.targets.lowering import device_toolchain, lower_kernel
from numba_offload.targets.source import KernelSource
from numba_offload.targets.toolchain import Toolchain

LAUNCH_FORMAT = "9q"
"""What follows a kernel's own arguments: threads, block, error record, number of threads, chunks."""

_BASELINES = {"x86_64": "x86-64-v3", "amd64": "x86-64-v3", "aarch64": "generic", "arm64": "generic"}


class OffloadCPU(CPU):
    """Numba's name for the target; implementations for the CPU apply."""


class OffloadCPUContext(OffloadContext):
    """Numba's lowering, with the C library's mathematics."""

    corrects_cbrt = True
    corrects_angles = True
    joins_sine_and_cosine = True

    def init(self) -> None:
        externals.c_math_functions.install(self)


def baseline() -> str:
    """The processor, in LLVM's words, whose code runs on most machines of this one's family."""
    return _BASELINES.get(platform.machine().lower(), "generic")


@cache
def host_machine() -> Machine:
    """This processor, with all its features."""
    return Machine(
        ll.get_process_triple(), ll.get_host_cpu_name(), ll.get_host_cpu_features().flatten(), jit=True
    )


def machine_for(arch: str) -> Machine:
    """What LLVM generates code for, given the name of a processor. ``host`` is this one.

    Raises TargetError for a name that LLVM does not know.
    """
    if arch == "host":
        return host_machine()
    return named_machine(ll.get_process_triple(), arch)


@global_compiler_lock
def object_for(source: KernelSource, arch: str = "host") -> KernelImage:
    """Compile a kernel for a processor of this machine's family.

    Raises TargetError where the processor is unknown, or the kernel calls what this process does not have.
    """
    machine = machine_for(arch)
    kernel = lower_kernel(source, cpu_toolchain(), build_entry)
    linked = codegen.link(kernel.texts)
    codegen.internalise(linked, [kernel.entry])
    codegen.optimise(linked, machine)
    symbols = tuple(codegen.undefined_symbols(linked))
    missing = missing_symbols(symbols)
    if missing:
        raise TargetError(f"kernel {source.name!r}: the CPU target has no {', '.join(missing)}")
    code = ModuleCode(str(linked), linked.as_bitcode(), machine)
    return KernelImage(
        "object", machine.triple, machine.cpu, kernel.entry, code.object_file(), kernel.parameters, kernel.may_fail,
        kernel.positions, kernel.sites, symbols, source.options.assumed, code,
    )  # fmt: skip


def missing_symbols(symbols: tuple[str, ...]) -> list[str]:
    """The symbols that this process does not have. Linking code that needs one would end it."""
    _install_symbols()
    return [symbol for symbol in symbols if not (ll.address_of_symbol(symbol) or _from_the_math_library(symbol))]


@cache
def _install_symbols() -> None:
    """Numba's names of its helpers and of the C library's mathematics: a compiler installs them, but code may be from a file."""
    base._load_global_helpers()
    externals.c_math_functions.install(None)


def _from_the_math_library(symbol: str) -> bool:
    """Make a function of the C library's mathematics known to LLVM; whether there is one of the name.

    Numba makes those known that it calls itself. Others are found only where another library has loaded them.
    """
    found = getattr(_math_library(), symbol, None)
    if found is None:
        return False
    ll.add_symbol(symbol, ctypes.cast(found, ctypes.c_void_p).value)
    return True


@cache
def _math_library() -> Any:
    name = ctypes.util.find_library("m")
    return None if name is None else ctypes.CDLL(name)


@global_compiler_lock
@cache
def cpu_toolchain() -> Toolchain:
    """The CPU's compiler, made once."""
    return device_toolchain("cpu", OffloadCPU, OffloadCPUContext, host_machine(), False)
