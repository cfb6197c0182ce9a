"""The host pass: types a kernel and everything it calls, generates nothing."""

from __future__ import annotations

from typing import Any

import llvmlite.binding as ll
from numba.core.compiler_lock import global_compiler_lock
from numba.core.target_extension import Generic

from numba_offload.targets import codegen
from numba_offload.targets.context import OffloadContext
from numba_offload.targets.pipeline import HostPipeline, TypedFunction
from numba_offload.targets.toolchain import Toolchain


class OffloadHost(Generic):
    """Numba's name for the host pass."""


class OffloadHostContext(OffloadContext):
    """Never lowers."""


class HostToolchain(Toolchain):
    """Keeps the typed IR of every function that it types."""

    typed_functions: dict[Any, TypedFunction]

    def __init__(self) -> None:
        import numba_offload.device  # noqa: F401 - registers what kernel code may use

        codegen.initialise_llvm()
        machine = codegen.Machine(ll.get_process_triple(), jit=True)
        super().__init__("host", OffloadHost, OffloadHostContext, machine, HostPipeline, False)
        self.typed_functions = {}


_toolchain: HostToolchain | None = None


@global_compiler_lock
def host_toolchain() -> HostToolchain:
    """The host pass, made once."""
    global _toolchain
    if _toolchain is None:
        _toolchain = HostToolchain()
    return _toolchain
