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


_RDNA2 = ("1030",)
_RDNA3 = ("1100", "1036", *_RDNA2)
# Libraries older than an architecture have switches for its predecessors only; those serve.
ARCHITECTURES = {
    arch.name: arch
    for arch in (
        Architecture("gfx900", 64, ("900",)),
        Architecture("gfx906", 64, ("906",)),
        Architecture("gfx908", 64, ("908",)),
        Architecture("gfx90a", 64, ("90a",)),
        Architecture("gfx942", 64, ("942", "940", "90a")),
        Architecture("gfx950", 64, ("950", "942", "940", "90a")),
        *(Architecture(f"gfx{n}", 32, (n, *_RDNA2)) for n in ("1030", "1031", "1032", "1033", "1034", "1035", "1036")),
        *(Architecture(f"gfx{n}", 32, (n, *_RDNA3)) for n in ("1100", "1101", "1102", "1103", "1150", "1151")),
        *(Architecture(f"gfx{n}", 32, (n, "1201", *_RDNA3)) for n in ("1200", "1201")),
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
