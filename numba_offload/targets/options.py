"""The options that a kernel's code is compiled under."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

THREADS_FIT = "threads fit"
"""Fact ``(THREADS_FIT, leaf)``: a launch has no more threads than the Region has elements (along each axis).

``(THREADS_FIT, "leaf.strategy.name")``: no more than that index array of its strategy has entries.
"""


@dataclass(frozen=True)
class CompileOptions:
    """What changes the code of a kernel and of every device function it calls.

    ``assumed`` are the facts that the host settles before each launch of this variant (see ``launch_facts``).
    """

    boundscheck: bool = True
    fastmath: bool = False
    contract: bool | None = None
    unsafe: bool = False
    partition: bool = False
    """The code is a strategy's: checked on the host before a launch, so it must compute the same on every target."""
    assumed: frozenset[tuple[Any, ...]] = frozenset()

    def for_callees(self) -> CompileOptions:
        """The facts are about the kernel's own source, not its callees'."""
        return replace(self, assumed=frozenset())
