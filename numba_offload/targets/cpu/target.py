"""The CPU target: Numba's CPU lowering under our conventions, the grid on Numba's threading layer."""

from __future__ import annotations

import ctypes
import itertools
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
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
"""Launches of fewer threads and elements run in the calling thread, unless they have turned out to be long."""

_LONG = 5e-5
"""Seconds: waking other threads costs about as much."""


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
    seconds_per_thread: list[float] = field(default_factory=lambda: [0.0])
    """Of the last launch that ran in the calling thread."""


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

    def ordered_cores(self) -> int:
        return useful_chunks()

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
        return CompiledKernel(record.name, code)

    def launch(
        self,
        kernel: CompiledKernel,
        arguments: Sequence[Any],
        config: LaunchConfig,
        work: int = 0,
        wait: bool = True,
    ) -> ErrorReport | None:
        code: _Code = kernel.handle
        x, y, z = config.threads
        total = x * y * z
        chunks = 1
        if max(total, work) >= _SERIAL_BELOW or code.seconds_per_thread[0] * total > _LONG:
            chunks = min(total, useful_chunks())
        record = _Record() if code.may_fail else None
        where = ctypes.addressof(record) if record is not None else 0
        packed = code.packer.pack(*arguments, x, y, z, *config.block, where, total, chunks)
        if chunks > 1:
            run_work(code.address, chunks, packed)
        else:
            started = time.perf_counter()
            run_work(code.address, 1, packed)
            code.seconds_per_thread[0] = (time.perf_counter() - started) / total
        report = read_report(bytes(record)) if record is not None else None
        return None if report is None else as_asked(report, config, code.positions)


_Record = ctypes.c_char * struct.calcsize(ERROR_RECORD_FORMAT)

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
