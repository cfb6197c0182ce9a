"""What the host pass found out about one specialisation: the only thing a device pass is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from numba.core import types

from numba_offload.targets.layout import Slot
from numba_offload.targets.options import CompileOptions


@dataclass(frozen=True)
class KernelRecord:
    """One kernel for one tuple of argument types under one set of options."""

    name: str
    py_func: Callable[..., Any] = field(repr=False)
    argument_names: tuple[str, ...]
    argument_types: tuple[types.Type, ...]
    options: CompileOptions
    layout: tuple[Slot, ...]
    mappings: Mapping[str, str] = field(default_factory=dict)
    """Leaf name -> ``none``, ``to``, ``from``, ``tofrom`` or ``literal``."""
