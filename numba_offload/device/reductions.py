"""Reductions that only read: ``x.sum()``, ``np.max(x)`` and their kin, in the order NumPy's plain loop would take."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types
from numba.core.extending import overload, overload_method
from numba.np import numpy_support

from numba_offload.device.types import MutableArrayType, ReadArrayType

_VIEWS = (ReadArrayType, MutableArrayType)


def _zero(dtype: types.Type) -> Any:
    """What a sum starts from: bools and small integers widen to 64 bits, as in NumPy.

    float32 and complex64 widen too, and the result is narrowed: NumPy sums in pairs, which keeps the same accuracy.
    """
    if dtype == types.float32:
        return np.float64(0)
    if dtype == types.complex64:
        return np.complex128(0)
    if isinstance(dtype, types.Boolean) or (isinstance(dtype, types.Integer) and dtype.signed):
        return np.int64(0)
    if isinstance(dtype, types.Integer):
        return np.uint64(0)
    return numpy_support.as_dtype(dtype).type(0)


def _numeric(view: Any) -> bool:
    return isinstance(view, _VIEWS) and isinstance(view.dtype, types.Number | types.Boolean)


def _ordered(view: Any) -> bool:
    return isinstance(view, _VIEWS) and isinstance(view.dtype, types.Integer | types.Float | types.Boolean)


def _result(dtype: types.Type) -> Any:
    """The type of a sum or product."""
    return numpy_support.as_dtype(dtype).type if dtype in (types.float32, types.complex64) else type(_zero(dtype))


def wide_sum(a: Any) -> Any:
    """The sum before it is narrowed to the result's type. Kernel code only."""
    raise NotImplementedError


@overload(wide_sum, strict=False)
def _wide_sum(a: Any) -> Any:
    if not _numeric(a):
        return None
    zero = _zero(a.dtype)
    if a.ndim == 1:

        def impl(a: Any) -> Any:
            total = zero
            for value in a:
                total += value
            return total
    else:

        def impl(a: Any) -> Any:
            total = zero
            for part in a:
                total += wide_sum(part)
            return total

    return impl


def _sum(a: Any) -> Any:
    if not _numeric(a):
        return None
    narrow = _result(a.dtype)
    return lambda a: narrow(wide_sum(a))


def _prod(a: Any) -> Any:
    if not _numeric(a):
        return None
    one = _zero(a.dtype) + type(_zero(a.dtype))(1)
    if a.ndim == 1:

        def impl(a: Any) -> Any:
            total = one
            for value in a:
                total *= value
            return total
    else:

        def impl(a: Any) -> Any:
            total = one
            for part in a:
                total *= part.prod()
            return total

    return impl


def _mean(a: Any) -> Any:
    if not _numeric(a):
        return None
    if isinstance(a.dtype, types.Integer | types.Boolean):
        return lambda a: np.float64(a.sum()) / a.size
    narrow = numpy_support.as_dtype(a.dtype).type
    return lambda a: narrow(wide_sum(a) / a.size)


def _extreme(name: str) -> Any:
    largest = name == "max"

    def chosen(a: Any) -> Any:
        if not _ordered(a):
            return None
        floating = isinstance(a.dtype, types.Float)
        if a.ndim == 1:

            def impl(a: Any) -> Any:
                if a.size == 0:
                    raise ValueError("zero-size array to reduction operation which has no identity")
                best = a[0]
                for value in a:
                    if floating and value != value:
                        return value
                    if (largest and value > best) or (not largest and value < best):
                        best = value
                return best
        elif largest:

            def impl(a: Any) -> Any:
                if a.size == 0:
                    raise ValueError("zero-size array to reduction operation which has no identity")
                best = a[0].max()
                for part in a:
                    value = part.max()
                    if floating and value != value:
                        return value
                    if value > best:
                        best = value
                return best
        else:

            def impl(a: Any) -> Any:
                if a.size == 0:
                    raise ValueError("zero-size array to reduction operation which has no identity")
                best = a[0].min()
                for part in a:
                    value = part.min()
                    if floating and value != value:
                        return value
                    if value < best:
                        best = value
                return best

        return impl

    return chosen


def _any(a: Any) -> Any:
    if not _numeric(a):
        return None
    if a.ndim == 1:

        def impl(a: Any) -> Any:
            for value in a:
                if value:
                    return True
            return False
    else:

        def impl(a: Any) -> Any:
            for part in a:
                if part.any():
                    return True
            return False

    return impl


def _all(a: Any) -> Any:
    if not _numeric(a):
        return None
    if a.ndim == 1:

        def impl(a: Any) -> Any:
            for value in a:
                if not value:
                    return False
            return True
    else:

        def impl(a: Any) -> Any:
            for part in a:
                if not part.all():
                    return False
            return True

    return impl


REDUCTIONS: dict[str, Any] = {
    "sum": _sum,
    "prod": _prod,
    "mean": _mean,
    "max": _extreme("max"),
    "min": _extreme("min"),
    "any": _any,
    "all": _all,
}
"""Method name -> implementation; intent analysis counts each as a read."""

for _name, _implementation in REDUCTIONS.items():
    for _view in _VIEWS:
        overload_method(_view, _name, strict=False)(_implementation)
    overload(getattr(np, _name), strict=False)(_implementation)
overload(np.amax, strict=False)(REDUCTIONS["max"])
overload(np.amin, strict=False)(REDUCTIONS["min"])
