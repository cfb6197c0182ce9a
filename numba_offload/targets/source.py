"""What a device pass compiles: the only thing it is given of a kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from numba.core import types

from numba_offload.targets.layout import Slot
from numba_offload.targets.options import CompileOptions


@dataclass(frozen=True)
class KernelSource:
    """One kernel's function for one tuple of argument types under one set of options."""

    name: str
    py_func: Callable[..., Any] = field(repr=False)
    argument_types: tuple[types.Type, ...]
    options: CompileOptions
    layout: tuple[Slot, ...]
    """Of the entry's parameters, as the host packs them."""
