"""Machine code of one kernel for one architecture: what a device pass makes, a target loads, bundles and caches keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import llvmlite.binding as ll

from numba_offload.errors import TargetError
from numba_offload.targets.codegen import Machine
from numba_offload.targets.layout import Slot
from numba_offload.targets.sites import Site


@dataclass(frozen=True)
class ModuleCode:
    """The optimised LLVM module that an image was emitted from, for inspection."""

    llvm_ir: str
    """Its parameter attributes are LLVM's opinion on the kernel's intents."""
    bitcode: bytes
    machine: Machine

    def assembly(self) -> str:
        """Assembly. Code generation changes a module, so it gets a fresh one."""
        return str(self.machine.target_machine().emit_assembly(ll.parse_bitcode(self.bitcode)))

    def object_file(self) -> bytes:
        """A relocatable object."""
        return bytes(self.machine.target_machine().emit_object(ll.parse_bitcode(self.bitcode)))


@dataclass(frozen=True)
class KernelImage:
    """One kernel's machine code and what a launch must know of it: plain data, but for ``code``."""

    kind: str
    """What the bytes are, in the words of LLVM's offload binaries: one of ``image_data.KINDS``."""
    triple: str
    arch: str
    """LLVM's name of the architecture, or of the processor."""
    entry: str
    data: bytes = field(repr=False)
    parameters: str
    """The ``struct`` format of the arguments that the entry was compiled for; the launch's own follow."""
    may_fail: bool
    """Whether a thread can report a failure; if not, a launch needs no error record."""
    positions: bool
    """Whether threads use their coordinates; if not, a GPU's launch runs along x."""
    sites: Mapping[int, Site] = field(default_factory=dict, repr=False)
    """What the numbers in a failing thread's report stand for."""
    symbols: tuple[str, ...] = ()
    """What the code takes from the process that loads it."""
    assumed: frozenset[tuple[Any, ...]] = frozenset()
    """The facts that a launch must have settled (see ``options.py``): the code does not check them."""
    code: ModuleCode | None = field(default=None, repr=False, compare=False)
    """Where the image was made in this process."""

    @property
    def llvm_ir(self) -> str:
        """The optimised LLVM IR. Raises ValueError for an image that was read from a file."""
        return self._code.llvm_ir

    @property
    def assembly(self) -> str:
        """Assembly. Raises ValueError for an image that was read from a file."""
        return self._code.assembly()

    @property
    def _code(self) -> ModuleCode:
        if self.code is None:
            raise ValueError(f"the image of {self.entry} was read from a file, which keeps no LLVM IR")
        return self.code

    def check_layout(self, name: str, layout: Sequence[Slot]) -> None:
        """Raise TargetError where the code takes other arguments than a launch of the kernel ``name`` would pass."""
        packed = parameter_format(layout)
        if self.parameters != packed:
            raise TargetError(
                f"kernel {name!r}: its {self.arch} code takes arguments laid out as {self.parameters!r}, but the host packs "
                f"{packed!r}; compile it again"
            )


def parameter_format(layout: Sequence[Slot]) -> str:
    """The ``struct`` format of a kernel's own arguments."""
    return "".join(slot.padded for slot in layout)
