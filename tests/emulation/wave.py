"""The registers of a wavefront, as the emulator keeps them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

VCC, NULL, EXEC, PC = 106, 124, 126, 256
"""Scalar registers: the lanes' conditions, the one that is not there, the active lanes; the program counter beside them."""

LITERAL = 255
"""As a source: the word after the instruction."""

_SCALARS, _VECTOR_REGISTERS = 260, 256


@dataclass(frozen=True)
class Wave:
    """The registers of one wavefront."""

    scalars: Any
    vectors: Any
    accumulators: Any

    @property
    def lanes(self) -> int:
        return int(self.vectors.shape[1])

    def pair(self, index: int) -> int:
        """Two scalar registers as one value."""
        return int(self.scalars[index]) | int(self.scalars[index + 1]) << 32

    def set_pair(self, index: int, value: int) -> None:
        self.scalars[index], self.scalars[index + 1] = value & 0xFFFFFFFF, value >> 32 & 0xFFFFFFFF

    def mask(self, index: int) -> Any:
        """A lane mask as booleans."""
        value = self.pair(index) if self.lanes == 64 else int(self.scalars[index])
        return np.array([value >> lane & 1 for lane in range(self.lanes)], bool)

    def set_mask(self, index: int, value: Any, active: Any) -> None:
        """Write the bits of active lanes; those of others are zero."""
        if index == NULL and self.lanes == 32:
            return  # what the emulator reads there is to stay zero
        number = sum(1 << lane for lane in np.flatnonzero(value & active))
        self.scalars[index] = number & 0xFFFFFFFF
        if self.lanes == 64:
            self.scalars[index + 1] = number >> 32

    def double(self, register: int) -> Any:
        """A pair of vector registers as 64-bit values."""
        low, high = self.vectors[register], self.vectors[register + 1]
        return low.astype(np.uint64) | high.astype(np.uint64) << np.uint64(32)


Execute = Callable[[Wave, Callable[[], None]], bool]
"""Execute an instruction on a wave; False where that was left to the emulator, which advances the program counter."""


@lru_cache(maxsize=4096)
def wave_at(scalars: int, vectors: int, accumulators: int, lanes: int) -> Wave:
    """The wave whose registers are at these addresses."""

    def view(address: int, *shape: int) -> Any:
        count = int(np.prod(shape))
        return np.ctypeslib.as_array((ctypes.c_uint32 * count).from_address(address)).reshape(shape)

    registers = (_VECTOR_REGISTERS, lanes)
    return Wave(view(scalars, _SCALARS), view(vectors, *registers), view(accumulators, *registers))
