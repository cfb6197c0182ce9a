"""Sources of kernels for tests that compile without a device, and checks of what comes out."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

from numba_offload.kernel import OffloadKernel
from numba_offload.targets.cuda.ptxas import find_ptxas
from numba_offload.targets.source import KernelSource


def source_of(kernel: OffloadKernel, *args: Any) -> KernelSource:
    """What a device pass is given of a kernel called with these arguments."""
    source = kernel._prepare(args, {})[1].source
    assert source is not None
    return source


def instructions(ptx: str) -> list[str]:
    """The opcodes of a PTX kernel, in order."""
    return re.findall(r"^\s+(?:@!?%p\d+ )?([a-z]\w*(?:\.\w+)*)\s", ptx, re.MULTILINE)


def assembles(ptx: str, arch: str, folder: Path) -> str | None:
    """What ptxas objects to; None if nothing, or if it is not installed."""
    ptxas = find_ptxas()
    if ptxas is None:
        return None
    source = folder / "kernel.ptx"
    source.write_text(ptx)
    command = [ptxas, f"-arch={arch}", str(source), "-o", str(folder / "kernel.cubin")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    return ran.stderr if ran.returncode else None
