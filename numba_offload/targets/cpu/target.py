"""The CPU target: Numba's CPU lowering under our conventions, the grid on Numba's threading layer."""

from __future__ import annotations

import ctypes
import itertools
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import llvmlite.binding as ll
from numba.core import externals, types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.target_extension import CPU

from numba_offload.errors import TargetError
from numba_offload.mapping.discrete import UnifiedHostMemory
from numba_offload.targets import codegen
from numba_offload.targets.base import CompiledKernel, DeviceLimits, ErrorReport, LaunchConfig, Target
from numba_offload.targets.context import OffloadContext
from numba_offload.targets.cpu.entry import build_entry
from numba_offload.targets.cpu.threads import run_work, useful_chunks
from numba_offload.targets.entry import ERROR_RECORD_FORMAT, needs_positions
from numba_offload.targets.pipeline import DevicePipeline
from numba_offload.targets.record import KernelRecord
from numba_offload.targets.reports import as_asked, read_report
from numba_offload.targets.toolchain import Toolchain

_SERIAL_BELOW = 4096
"""Launches of fewer threads and elements run in the calling thread: waking others costs more."""


class OffloadCPU(CPU):
    """Numba's name for the target; implementations for the CPU apply."""


class OffloadCPUContext(OffloadContext):
    """Numba's lowering, with the C library's mathematics."""

    def init(self) -> None:
        externals.c_math_functions.install(self)


@dataclass(frozen=True)
class _Code:
    """Machine code in this process. ``engine`` keeps it alive."""

    address: int
    packer: struct.Struct
    engine: Any
    may_fail: bool
    positions: bool
    llvm_ir: str


class CPUTarget(Target):
    """Runs kernels in this process. ``memory`` decides between the unified and the discrete model."""

    name = "cpu"
    limits = DeviceLimits(
        threads_per_block=2**31 - 1, block=(2**31 - 1,) * 3, grid=(2**63 - 1,) * 3, total_threads=2**63 - 1
    )

    def __init__(self, memory: Any = None) -> None:
        self.memory = memory if memory is not None else UnifiedHostMemory()
        self._numbers = itertools.count()

    @property
    def toolchain(self) -> Toolchain:
        return cpu_toolchain()

    @global_compiler_lock
    def compile(self, record: KernelRecord) -> CompiledKernel:
        toolchain = self.toolchain
        body = toolchain.compile_function(record.py_func, record.argument_types, types.none, record.options)
        context = toolchain.target_context
        libraries = body.library.closure()
        may_fail = any(lib.can_fail for lib in libraries)
        positions = any(lib.uses_position for lib in libraries) or needs_positions(record.argument_types)
        module = context.create_module(f"{record.name}.entry")
        name = f"kernel.{next(self._numbers)}.{record.name}"
        build_entry(
            context, module, name, body.fndesc, record.argument_types, list(record.layout), record.options.unsafe,
            positions, may_fail, record.options.assumed,
        )
        linked = codegen.link([str(module), *(text for lib in libraries for text in lib.texts)])
        codegen.internalise(linked, [name])
        tm = codegen.optimise(linked, toolchain.machine)
        missing = [s for s in codegen.undefined_symbols(linked) if not ll.address_of_symbol(s)]
        if missing:
            # An unresolved symbol would end the process.
            raise TargetError(f"kernel {record.name}: the CPU target has no {', '.join(missing)}")
        text = str(linked)
        engine = ll.create_mcjit_compiler(linked, tm)
        engine.finalize_object()
        packer = struct.Struct("".join(s.padded for s in record.layout) + "9q")
        code = _Code(engine.get_function_address(name), packer, engine, may_fail, positions, text)
        return CompiledKernel(record.name, code, layout=tuple(s.code for s in record.layout))

    def launch(
        self,
        kernel: CompiledKernel,
        arguments: Sequence[Any],
        config: LaunchConfig,
        work: int = 0,
        wait: bool = True,
    ) -> ErrorReport | None:
        code: _Code = kernel.handle
        record = (ctypes.c_char * struct.calcsize(ERROR_RECORD_FORMAT))()
        total = config.threads[0] * config.threads[1] * config.threads[2]
        chunks = 1
        if max(total, work) >= _SERIAL_BELOW:
            chunks = min(total, useful_chunks())
        packed = code.packer.pack(
            *arguments, *config.threads, *config.block, ctypes.addressof(record), total, chunks
        )
        run_work(code.address, chunks, packed)
        report = read_report(bytes(record)) if code.may_fail else None
        return None if report is None else as_asked(report, config, code.positions)


_toolchain: Toolchain | None = None


@global_compiler_lock
def cpu_toolchain() -> Toolchain:
    """The CPU's compiler, made once."""
    global _toolchain
    if _toolchain is None:
        import numba_offload.device  # noqa: F401 - registers what kernel code may use

        codegen.initialise_llvm()
        machine = codegen.Machine(
            ll.get_process_triple(), ll.get_host_cpu_name(), ll.get_host_cpu_features().flatten(), jit=True
        )
        _toolchain = Toolchain("cpu", OffloadCPU, OffloadCPUContext, machine, DevicePipeline, False)
    return _toolchain
