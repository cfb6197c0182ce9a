"""AMD's names for ``compile_bundle``."""

from __future__ import annotations

from functools import partial

from numba_offload.targets.ahead import CodeTarget
from numba_offload.targets.amdgpu.arch import ARCHITECTURES, architecture
from numba_offload.targets.amdgpu.compiler import code_object_for


def code_target(name: str) -> CodeTarget | None:
    """``gfx90a`` and the like; None for the name of another vendor's. Raises TargetError for an unknown architecture."""
    if not name.startswith("gfx"):
        return None
    return CodeTarget(name, partial(code_object_for, arch=architecture(name).name))


def known_names() -> str:
    """For messages."""
    return ", ".join(ARCHITECTURES)
