"""Ways that an array can lie in memory: views of a base array, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import as_strided


@dataclass(frozen=True)
class Layout:
    """A view of shape ``shape`` into an array of shape ``base``. ``writable``: no element lies under two indices."""

    name: str
    base: tuple[int, ...]
    of: Callable[[np.ndarray], np.ndarray]
    writable: bool = True

    @property
    def ndim(self) -> int:
        return self.of(np.zeros(self.base)).ndim


LAYOUTS = (
    Layout("whole", (23,), lambda b: b),
    Layout("every second", (23,), lambda b: b[::2]),
    Layout("every third from 1", (23,), lambda b: b[1::3]),
    Layout("reversed", (23,), lambda b: b[::-1]),
    Layout("reversed by 2", (23,), lambda b: b[-2:2:-2]),
    Layout("part", (23,), lambda b: b[5:18]),
    Layout("one element", (23,), lambda b: b[7:8]),
    Layout("column", (6, 5), lambda b: b[:, 2]),
    Layout("diagonal", (6, 6), lambda b: as_strided(b, (6,), (b.strides[0] + b.strides[1],))),
    Layout("broadcast scalar", (1,), lambda b: np.broadcast_to(b, (9,)), writable=False),
    Layout("overlapping windows", (12,), lambda b: as_strided(b, (9, 3), 2 * b.strides), writable=False),
    Layout("C", (6, 5), lambda b: b),
    Layout("transposed", (6, 5), lambda b: b.T),
    Layout("Fortran", (6, 5), lambda b: b.reshape(5, 6, order="F") if b.flags.f_contiguous else b.T),
    Layout("columns 1 to 3", (6, 5), lambda b: b[:, 1:3]),
    Layout("rows 1 to 4", (6, 5), lambda b: b[1:4]),
    Layout("every second of the transposed", (6, 5), lambda b: b.T[::2]),
    Layout("both reversed", (6, 5), lambda b: b[::-1, ::-1]),
    Layout("lattice", (9, 10), lambda b: b[1::3, ::4]),
    Layout("new last axis", (11,), lambda b: b[..., None]),
    Layout("new first axis", (11,), lambda b: b[None, ::2]),
    Layout("broadcast rows", (5,), lambda b: np.broadcast_to(b, (4, 5)), writable=False),
    Layout("broadcast columns", (5, 1), lambda b: np.broadcast_to(b, (5, 4)), writable=False),
    Layout("3-D", (3, 4, 5), lambda b: b),
    Layout("3-D part", (3, 4, 5), lambda b: b[:, 1:3, ::2]),
    Layout("3-D axes moved", (3, 4, 5), lambda b: b.transpose(2, 0, 1)),
    Layout("3-D reversed", (3, 4, 5), lambda b: b[::-1, :, ::-2]),
    Layout("3-D new axis", (3, 4), lambda b: b[:, None, ::-1]),
    Layout("3-D broadcast", (3, 1, 5), lambda b: np.broadcast_to(b, (3, 4, 5)), writable=False),
)

WRITABLE = tuple(layout for layout in LAYOUTS if layout.writable)
