"""ld.lld, which makes a code object of an object file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from numba_offload.errors import TargetError
from numba_offload.targets.inputs import described
from numba_offload.targets.tools import ToolFailedError, converted, first_program

_VARIABLE = "NUMBA_OFFLOAD_LLD"


def _candidates() -> Iterator[str]:
    named = os.environ.get(_VARIABLE)
    if named:
        yield named
    for variable in ("ROCM_PATH", "HIP_PATH"):
        root = os.environ.get(variable)
        if root:
            yield str(Path(root, "llvm", "bin", "ld.lld"))
    yield "/opt/rocm/llvm/bin/ld.lld"
    yield "ld.lld"
    yield from (f"ld.lld-{version}" for version in range(25, 14, -1))


def find_linker() -> str | None:
    """The first ld.lld there is, or None."""
    return first_program(_candidates())


def linker_inputs() -> tuple[str, ...]:
    """What tells the linker from another one; nothing where there is none."""
    found = find_linker()
    return () if found is None else (described(Path(found)),)


def link_code_object(relocatable: bytes, kernel: str) -> bytes:
    """A code object, in which nothing is left undefined. Raises TargetError where it cannot be linked."""
    linker = find_linker()
    if linker is None:
        raise TargetError(
            f"kernel {kernel!r}: code for AMD GPUs is linked by ld.lld, which was not found. Install ROCm, or the "
            f"distribution's package lld, or set {_VARIABLE} to the program"
        )
    try:
        return converted(relocatable, lambda source, result: [linker, "-shared", "--no-undefined", source, "-o", result])
    except ToolFailedError as told:
        raise TargetError(f"kernel {kernel!r}: {linker} failed: {told}") from None
