"""What one benchmark consists of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .checksum import checksum

Data = dict[str, Any]
"""A benchmark's arrays and scalars by name. Views lie beside the arrays that own their memory."""

DEFAULT_SIZE = 1_000_000


@dataclass(frozen=True)
class Launch:
    """One call of a kernel, bound to its arguments."""

    kernel: Callable[..., Any]
    arguments: tuple[Any, ...]

    def __call__(self) -> None:
        self.kernel(*self.arguments)


@dataclass(frozen=True)
class HandwrittenCall:
    """A hand-written kernel's name, its number of iterations and its arguments."""

    kernel: str
    iterations: int
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class Benchmark:
    """A benchmark of the suite. ``checksum`` belongs to the default size and ``reps`` repetitions."""

    name: str
    reps: int
    checksum: str
    kernels: tuple[str, ...]
    outputs: tuple[str, ...]
    """The arrays the checksum covers."""
    written: tuple[str, ...]
    """The arrays the kernels write, as they are passed to them."""
    set_up: Callable[..., Data]
    """Make the data of a problem of about ``size`` elements. ``data["size"]`` is the exact number."""
    launches: Callable[[Data], list[Launch]]
    """The safe kernels' calls of one repetition. Regions are built here, once."""
    handwritten: Callable[[Data], list[HandwrittenCall]]
    """The hand-written kernels' calls of one repetition."""
    reference: Callable[[Data], None]
    """One repetition in NumPy."""
    partition: tuple[str, ...] = ()
    """Index arrays that a safe kernel does not receive: they went into a Region's strategy."""
    accumulates: bool = False
    """Each repetition adds to the result of the one before, so the checksum grows in proportion."""

    def run(self, data: Data) -> None:
        """One repetition with the safe kernels."""
        for launch in self.launches(data):
            launch()

    def result(self, data: Data) -> np.longdouble:
        """The checksum of what is in ``data``."""
        return checksum(data[name] for name in self.outputs)

    def expected(self, reps: int) -> np.longdouble:
        """The reference checksum at the default size after ``reps`` repetitions."""
        reference = np.longdouble(self.checksum)
        return reference * reps / self.reps if self.accumulates else reference
