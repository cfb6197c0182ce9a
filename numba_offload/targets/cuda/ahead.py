"""CUDA's names for ``compile_bundle``."""

from __future__ import annotations

from functools import partial

from numba_offload.targets.ahead import CodeTarget
from numba_offload.targets.cuda.arch import capability_of, known_architectures, machine_for
from numba_offload.targets.cuda.compiler import cubin_for, ptx_for
from numba_offload.targets.cuda.ptxas import find_ptxas


def code_target(name: str) -> CodeTarget | None:
    """``sm_NN``, a cubin where NVIDIA's assembler is installed and PTX elsewhere, or ``compute_NN``, PTX.

    None for the name of another vendor's. Raises TargetError for an architecture that LLVM does not know.
    """
    arch = name.replace("compute_", "sm_", 1) if name.startswith("compute_") else name
    if capability_of(arch) is None:
        return None
    machine_for(arch)
    assembled = arch == name and find_ptxas() is not None
    return CodeTarget(name, partial(cubin_for if assembled else ptx_for, arch=arch))


def known_names() -> str:
    """For messages."""
    names = known_architectures()
    return f"{', '.join(names)} (machine code), {names[0].replace('sm_', 'compute_')} ... (PTX)"
