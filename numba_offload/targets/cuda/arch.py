"""Which NVIDIA architecture, and which version of PTX, code is generated for."""

from __future__ import annotations

import re

from numba_offload.errors import TargetError
from numba_offload.targets.codegen import Machine

TRIPLE = "nvptx64-nvidia-cuda"
DEFAULT_ARCH = "sm_90"

_OLDEST_PTX = 80  # CUDA 12.0: every driver that the project supports reads it.
_NEEDED_PTX = {(10, 0): 86, (10, 1): 86, (10, 3): 88, (12, 0): 87, (12, 1): 88}
_KNOWN = (
    (5, 0), (5, 2), (5, 3), (6, 0), (6, 1), (6, 2), (7, 0), (7, 2), (7, 5), (8, 0), (8, 6), (8, 7), (8, 9), (9, 0),
    (10, 0), (10, 1), (10, 3), (12, 0), (12, 1),
)  # fmt: skip
"""Compute capabilities that LLVM 22 generates code for."""
_TEGRA = {(5, 3), (6, 2), (7, 2), (8, 7), (10, 1)}


def arch_for(capability: tuple[int, int]) -> str:
    """The newest known architecture that a device of this compute capability runs; drivers translate PTX upwards."""
    older = [known for known in _KNOWN if known <= tuple(capability)]
    if not older:
        raise TargetError(
            f"CUDA devices of compute capability {capability[0]}.{capability[1]} are not supported; 5.0 is the oldest"
        )
    major, minor = older[-1]
    return f"sm_{major}{minor}"


def capability_of(arch: str) -> tuple[int, int] | None:
    """The compute capability of ``sm_90`` or alike; None for what is no architecture's name."""
    match = re.fullmatch(r"sm_([0-9]{1,3})([0-9])", arch)
    return (int(match[1]), int(match[2])) if match else None


def known_architectures() -> tuple[str, ...]:
    """The architectures that LLVM generates code for."""
    return tuple(f"sm_{major}{minor}" for major, minor in _KNOWN)


def runs_cubin(device: tuple[int, int], built_for: tuple[int, int]) -> bool:
    """Whether a device of a compute capability runs machine code for another.

    Source: CUDA C++ programming guide, "Binary compatibility": within a major version, upwards, and not to or from Tegra.
    """
    if device in _TEGRA or built_for in _TEGRA:
        return device == built_for
    return device[0] == built_for[0] and built_for[1] <= device[1]


def machine_for(arch: str) -> Machine:
    """What LLVM generates code for, given ``sm_90`` or alike. Raises TargetError for an architecture it lacks."""
    capability = capability_of(arch)
    if capability not in _KNOWN:
        raise TargetError(f"unknown CUDA architecture {arch!r}; expected one of {', '.join(known_architectures())}")
    ptx = max(_OLDEST_PTX, _NEEDED_PTX.get(capability, 0))
    return Machine(TRIPLE, arch, f"+ptx{ptx}")
