"""The CPU's names for ``compile_bundle``."""

from __future__ import annotations

from functools import partial

from numba_offload.targets.ahead import CodeTarget
from numba_offload.targets.cpu.compiler import baseline, machine_for, object_for
from numba_offload.targets.cpu.features import features_of


def code_target(name: str) -> CodeTarget | None:
    """``cpu``, ``cpu:host`` or ``cpu:PROCESSOR``; None for the name of another vendor's.

    Raises TargetError for a processor that LLVM does not know.
    """
    kind, colon, processor = name.partition(":")
    if kind != "cpu" or (colon and not processor):
        return None
    arch = processor or baseline()
    return CodeTarget(name, partial(object_for, arch=arch), features_of(machine_for(arch)))


def known_names() -> str:
    """For messages."""
    return f"cpu ({baseline()}), cpu:host, cpu:PROCESSOR with LLVM's name of one"
