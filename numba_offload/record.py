"""What the host pass found out about one kernel for one tuple of argument types: all that its launches need, as plain data."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from numba_offload.analysis.affine import Access, Key
from numba_offload.analysis.intent import LeafIntent
from numba_offload.analysis.ownership import SharedIndex
from numba_offload.targets.layout import Slot
from numba_offload.targets.options import CompileOptions

PLAIN_DEFAULTS = (bool, int, float, complex)
"""Classes of the defaults that a record keeps, besides None."""


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel."""

    name: str
    positional_only: bool = False
    has_default: bool = False
    default: bool | int | float | complex | None = None


@dataclass(frozen=True)
class KernelRecord:
    """One kernel for one key of a call (see ``arguments.py``). Code for it is elsewhere: by target, and by variant."""

    name: str
    filename: str
    """Where its source is."""
    parameters: tuple[Parameter, ...]
    captured: tuple[str, ...]
    """Names of the arrays that it takes from around it; they follow the parameters."""
    options: CompileOptions
    united: bool
    """Whether its argument types are those of ``TypeBuilder(united=True)``."""
    layout: tuple[Slot, ...]
    leaves: Mapping[str, LeafIntent]
    """What it does with each array."""
    shared_indices: tuple[SharedIndex, ...]
    """Regions that one index serves: a launch checks that they are partitioned alike."""
    accesses: tuple[Access, ...] = field(repr=False)
    """The element accesses that a launch may find to be in range."""
    facts: frozenset[Key] = field(repr=False)
    """All that a launch may settle: a variant of the code assumes some of them."""

    @property
    def argument_names(self) -> tuple[str, ...]:
        """The parameters' names, and those of the hidden arguments."""
        return (*(parameter.name for parameter in self.parameters), *self.captured)


def parameters_of(function: Callable[..., Any]) -> tuple[Parameter, ...]:
    """A kernel's parameters. A default that is no plain number is left out: a call without the source must pass it."""
    out = []
    for name, parameter in inspect.signature(function).parameters.items():
        default = parameter.default
        plain = default is None or type(default) in PLAIN_DEFAULTS
        only = parameter.kind == inspect.Parameter.POSITIONAL_ONLY
        out.append(Parameter(name, only, plain, default if plain else None))
    return tuple(out)
