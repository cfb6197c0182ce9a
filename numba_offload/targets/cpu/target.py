"""The CPU target: kernels in this process, the grid on Numba's threading layer."""

from __future__ import annotations

import ctypes
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import llvmlite.binding as ll
from numba.core.compiler_lock import global_compiler_lock

from numba_offload.errors import TargetError
from numba_offload.mapping.discrete import UnifiedHostMemory
from numba_offload.targets.base import (
    BuiltFor,
    CompiledKernel,
    DeviceLimits,
    ErrorReport,
    LaunchConfig,
    Target,
)
from numba_offload.targets.cpu.compiler import (
    LAUNCH_FORMAT,
    host_machine,
    missing_symbols,
    object_for,
)
from numba_offload.targets.cpu.features import missing_here, same_system
from numba_offload.targets.cpu.threads import run_work, useful_chunks
from numba_offload.targets.entry import ERROR_RECORD_FORMAT
from numba_offload.targets.image import KernelImage
from numba_offload.targets.reports import as_asked, read_report
from numba_offload.targets.source import KernelSource

_SERIAL_BELOW = 4096
"""Launches of fewer threads and elements run in the calling thread, unless they have turned out to be long."""

_LONG = 5e-5
"""Seconds: waking other threads costs about as much."""

_FORGETTING = 0.95
"""What is left of that measure after each launch on other threads: once it may only have been an interruption."""


@dataclass(frozen=True)
class _Code:
    """Machine code in this process. ``engine`` keeps it alive."""

    address: int
    packer: struct.Struct
    engine: Any
    may_fail: bool
    positions: bool
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

    @property
    def arch(self) -> str:
        machine = host_machine()
        return f"{machine.cpu},{machine.features}"

    def suits(self, code: BuiltFor) -> tuple[int, ...] | None:
        machine = host_machine()
        if code.kind != "object" or not same_system(code.triple, machine.triple) or missing_here(code.features):
            return None
        return len(code.features), int(code.arch == machine.cpu)

    def described(self) -> str:
        machine = host_machine()
        return f"{self.name} ({machine.cpu} on {machine.triple})"

    def ordered_cores(self) -> int:
        return useful_chunks()

    def build(self, source: KernelSource) -> KernelImage:
        return object_for(source)

    @global_compiler_lock
    def load(self, image: KernelImage, name: str) -> CompiledKernel:
        missing = missing_symbols(image.symbols)
        if missing:
            raise TargetError(f"kernel {name!r}: its code needs {', '.join(missing)}, which this process does not have")
        machine = host_machine()
        empty = ll.parse_assembly(f'target triple = "{machine.triple}"')
        engine = ll.create_mcjit_compiler(empty, machine.target_machine())
        engine.add_object_file(ll.ObjectFileRef.from_data(image.data))
        engine.finalize_object()
        address = engine.get_function_address(image.entry)
        if not address:
            raise TargetError(f"kernel {name!r}: its object has no entry {image.entry}")
        packer = struct.Struct(image.parameters + LAUNCH_FORMAT)
        return CompiledKernel(name, image, _Code(address, packer, engine, image.may_fail, image.positions))

    def launch(
        self,
        kernel: CompiledKernel,
        arguments: Sequence[Any],
        config: LaunchConfig,
        work: int = 0,
        wait: bool = True,
        behind: Callable[[], None] | None = None,
    ) -> ErrorReport | None:
        code: _Code = kernel.handle
        x, y, z = config.threads
        total = x * y * z
        chunks = 1
        if max(total, work) >= _SERIAL_BELOW or code.seconds_per_thread[0] * total > _LONG:
            chunks = min(total, useful_chunks())
            code.seconds_per_thread[0] *= _FORGETTING
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
