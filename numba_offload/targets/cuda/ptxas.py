"""ptxas, NVIDIA's assembler: makes machine code of PTX beforehand, so that no driver need translate it at each load."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

from numba_offload.errors import TargetError
from numba_offload.targets.tools import ToolFailedError, converted, first_program


def _candidates() -> Iterator[str]:
    for variable in ("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"):
        root = os.environ.get(variable)
        if root:
            yield str(Path(root, "bin", "ptxas"))
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        yield from (str(found) for found in sorted(Path(folder).glob("*/bin/ptxas*"), reverse=True))
    yield "ptxas"
    yield "/usr/local/cuda/bin/ptxas"


def find_ptxas() -> str | None:
    """The first ptxas there is - of a toolkit, the wheel nvidia-cuda-nvcc, or on the path - or None."""
    return first_program(_candidates())


def assemble(ptx: bytes, arch: str, kernel: str) -> bytes:
    """A cubin. Raises TargetError where there is no ptxas, or it refuses."""
    ptxas = find_ptxas()
    if ptxas is None:
        raise TargetError(
            f"kernel {kernel!r}: machine code for {arch} is made by ptxas, which was not found. Install the CUDA toolkit or "
            f"the wheel nvidia-cuda-nvcc, or compile PTX: {arch.replace('sm_', 'compute_')}"
        )
    try:
        return converted(ptx, lambda source, result: [ptxas, f"-arch={arch}", source, "-o", result])
    except ToolFailedError as told:
        raise TargetError(
            f"kernel {kernel!r}: {ptxas} made no machine code for {arch}: {told}. Another version of ptxas may know it; PTX "
            f"needs none: {arch.replace('sm_', 'compute_')}"
        ) from None
