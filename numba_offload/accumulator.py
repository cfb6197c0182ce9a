"""Accumulator: an array that all threads add up into, on the host."""

from __future__ import annotations

from typing import Any

from numba.np import numpy_support

from numba_offload.device.accumulators import OPERATIONS, supports
from numba_offload.errors import UnsupportedArrayError
from numba_offload.handle import written_array
from numba_offload.mapping.arrays import Array, check_array


class Accumulator:
    """An array that every thread of a kernel may update at any index, atomically, with one operation.

    In the kernel: ``acc.update(index, value)``, which does ``acc[index] = acc[index] <op> value``. The order of updates
    is not determined, so floating-point sums may differ in the last bits from run to run.

    Parameters
    ----------
    array
        A NumPy array, a device array, or the handle of a ``preload_mut``; its present content is the starting value.
    op
        ``"+"``, ``"min"``, ``"max"``, ``"&"``, ``"|"`` or ``"^"``. A minimum or maximum of floats ignores NaN.

    Raises
    ------
    UnsupportedArrayError
        ``array`` is not an array, or the operation does not exist for its dtype.
    BorrowError
        ``array`` is a handle for reading, or ``preload_mut`` holds it and its handle is to be passed.
    """

    __slots__ = ("array", "op", "source")

    def __init__(self, array: Any, op: str = "+") -> None:
        found = written_array(array, "Accumulator")
        if found is None:
            raise UnsupportedArrayError(
                f"Accumulator(...) takes an array, not {type(array).__name__}; convert it with numpy.asarray first"
            )
        if op not in OPERATIONS:
            raise UnsupportedArrayError(f"Accumulator(array, {op!r}): the operation is one of {', '.join(OPERATIONS)}")
        check_array(found, "array")
        if not supports(op, numpy_support.from_dtype(found.dtype)):
            possible = ", ".join(other for other in OPERATIONS if supports(other, numpy_support.from_dtype(found.dtype)))
            raise UnsupportedArrayError(
                f"Accumulator(array, {op!r}): not for an array of {found.dtype}, "
                + (f"which has {possible}" if possible else "which has no atomic operation; use an array of numbers")
            )
        self.source = array
        self.array: Array = found
        self.op = op

    def __repr__(self) -> str:
        return f"Accumulator(<{self.array.dtype} array of shape {tuple(self.array.shape)}>, {self.op!r})"
