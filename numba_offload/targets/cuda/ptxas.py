"""ptxas, NVIDIA's assembler: makes machine code of PTX beforehand, so that no driver need translate it at each load."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from numba_offload.errors import TargetError


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
    return next((found for found in map(shutil.which, _candidates()) if found), None)


def assemble(ptx: bytes, arch: str, kernel: str) -> bytes:
    """A cubin. Raises TargetError where there is no ptxas, or it refuses."""
    ptxas = find_ptxas()
    if ptxas is None:
        raise TargetError(
            f"kernel {kernel!r}: machine code for {arch} is made by ptxas, which was not found. Install the CUDA toolkit or "
            f"the wheel nvidia-cuda-nvcc, or compile PTX: {arch.replace('sm_', 'compute_')}"
        )
    with tempfile.TemporaryDirectory() as folder:
        source, result = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_bytes(ptx)
        done = subprocess.run(
            [ptxas, f"-arch={arch}", str(source), "-o", str(result)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise TargetError(
                f"kernel {kernel!r}: {ptxas} made no machine code for {arch}: {(done.stderr or done.stdout).strip()}. Another "
                f"version of ptxas may know it; PTX needs none: {arch.replace('sm_', 'compute_')}"
            )
        return result.read_bytes()
