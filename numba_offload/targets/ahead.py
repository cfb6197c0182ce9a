"""What code can be compiled for beforehand, by name: ``cpu``, ``sm_90``, ``gfx942`` ... No device is needed.

Each vendor's folder says which names are its own.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass

from numba_offload.errors import TargetError
from numba_offload.targets.image import KernelImage
from numba_offload.targets.registry import known_targets
from numba_offload.targets.source import KernelSource


@dataclass(frozen=True)
class CodeTarget:
    """Something to compile for."""

    name: str
    make: Callable[[KernelSource], KernelImage]
    features: tuple[str, ...] = ()
    """See ``BuiltFor``."""

    def build(self, source: KernelSource) -> KernelImage:
        """The device pass."""
        return self.make(source)


def code_target(name: str) -> CodeTarget:
    """What a name stands for. Raises TargetError, which lists all there are, for an unknown one."""
    vendors = [importlib.import_module(f"numba_offload.targets.{vendor}.ahead") for vendor in known_targets()]
    if isinstance(name, str):
        for vendor in vendors:
            found: CodeTarget | None = vendor.code_target(name)
            if found is not None:
                return found
    known = "; ".join(vendor.known_names() for vendor in vendors)
    raise TargetError(f"unknown target {name!r} to compile for; known: {known}")
