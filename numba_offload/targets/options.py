"""The options that a kernel's code is compiled under."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class CompileOptions:
    """What changes the code of a kernel and of every device function it calls.

    ``assume_in_range`` compiles the variant whose affine accesses the host has checked before the launch.
    """

    boundscheck: bool = True
    fastmath: bool = False
    contract: bool | None = None
    unsafe: bool = False
    assume_in_range: bool = False

    def for_callees(self) -> CompileOptions:
        """A callee's accesses are not part of the host's check."""
        return replace(self, assume_in_range=False)
