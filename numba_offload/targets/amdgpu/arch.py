"""AMD architectures: what LLVM is asked to generate code for."""

from __future__ import annotations

from dataclasses import dataclass

from numba_offload.errors import TargetError
from numba_offload.targets.codegen import Machine

TRIPLE = "amdgcn-amd-amdhsa"
CODE_OBJECT_VERSION = 500
"""Version 5: where a kernel finds its block's size depends on it (LLVM's default moves on with LLVM)."""


@dataclass(frozen=True)
class Architecture:
    """One architecture: the lanes of a wavefront, and under which names device libraries may know it, best first."""

    name: str
    wavefront: int
    library_names: tuple[str, ...]


ARCHITECTURES = {
    arch.name: arch
    for arch in (
        Architecture("gfx908", 64, ("908",)),
        Architecture("gfx90a", 64, ("90a",)),
        # Libraries older than these architectures have controls for their predecessors only.
        Architecture("gfx942", 64, ("942", "940", "90a")),
        Architecture("gfx950", 64, ("950", "942", "940", "90a")),
        Architecture("gfx1030", 32, ("1030",)),
        Architecture("gfx1100", 32, ("1100", "1036", "1030")),
        Architecture("gfx1101", 32, ("1101", "1100", "1036", "1030")),
        Architecture("gfx1201", 32, ("1201", "1100", "1036", "1030")),
    )
}
DEFAULT_ARCH = "gfx90a"


def architecture(name: str) -> Architecture:
    """An architecture by name. Raises TargetError where it is unknown."""
    found = ARCHITECTURES.get(name)
    if found is None:
        raise TargetError(f"unknown AMD architecture {name!r}; known: {', '.join(ARCHITECTURES)}")
    return found


def machine_for(arch: str) -> Machine:
    """LLVM's machine for an architecture."""
    return Machine(TRIPLE, architecture(arch).name)
