"""Whether arguments that a kernel writes share memory with other arguments.

Decided on elements, exactly: interleaved views that have no byte in common are allowed. NumPy's solver
decides, with a bound on its work; host and device arrays are asked about alike, by address, and nothing is
dereferenced.

Not seen: two memory maps of one file, whose addresses differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from numba_offload.errors import AliasError
from numba_offload.mapping.arrays import Array, DeviceArray
from numba_offload.mapping.layout import address, byte_range, raw_view
from numba_offload.mapping.plan import ArrayUse

MAX_WORK = 100_000
"""Bound for NumPy's solver, in its own unit: a few milliseconds at most."""

# NumPy's stubs know only its two special bounds.
_shares_memory: Any = np.shares_memory

_Span = tuple[int, int, int, str, Array, bool]


def check_aliases(uses: Iterable[tuple[str, Array, bool]], kernel: str = "the kernel") -> None:
    """Raise ``AliasError`` where a written array shares element memory with itself or another array.

    ``uses`` are ``(name, array, written)``. Arrays without elements share nothing.
    """
    spans: list[_Span] = []
    any_written = False
    for name, array, written in uses:
        if isinstance(array, DeviceArray):
            begin, end = byte_range(array.pointer, array.shape, array.strides, array.dtype.itemsize)
            contiguous = False
        else:
            contiguous = array.flags.forc
            if contiguous:
                begin = address(array)
                end = begin + array.nbytes
            else:
                begin, end = byte_range(address(array), array.shape, array.strides, array.dtype.itemsize)
        if begin == end:
            continue
        if written:
            any_written = True
            if not contiguous:
                _check_itself(name, array, kernel)
        spans.append((begin, end, len(spans), name, array, written))
    if not any_written or len(spans) < 2:
        return
    spans.sort()  # by address; the position keeps arrays out of the comparison
    reach = 0
    for span in spans:
        if span[0] < reach:
            _check_pairs(spans, kernel)
            return
        reach = span[1]


def check_uses(uses: Sequence[ArrayUse], kernel: str = "the kernel") -> None:
    """`check_aliases` for the arguments of a launch: those of map "none" are not touched. Fast where few are written."""
    written = [use for use in uses if use.map in ("from", "tofrom")]
    if not written:
        return
    if len(written) > _FEW or any(isinstance(use.array, DeviceArray) for use in uses):
        check_aliases([(u.name, u.array, u.written) for u in uses if u.map != "none"], kernel)
        return
    bounds = [(*_host_bounds(use), use) for use in written]
    for use in written:
        if isinstance(use.array, np.ndarray) and not use.array.flags.forc:
            _check_itself(use.name, use.array, kernel)
    for use in uses:
        if use.map == "none":
            continue
        begin, end = _host_bounds(use)
        for first, last, other in bounds:
            if begin < last and first < end and other is not use:
                check_aliases([(u.name, u.array, u.written) for u in uses if u.map != "none"], kernel)
                return


_FEW = 8
"""Up to so many written arrays every other is compared with each; beyond that sorting is quicker."""


def _host_bounds(use: ArrayUse) -> tuple[int, int]:
    array = use.array
    assert isinstance(array, np.ndarray)
    begin = use.address if use.address is not None else address(array)
    if array.flags.forc:
        return begin, begin + array.nbytes
    return byte_range(begin, array.shape, array.strides, array.dtype.itemsize)


def shares_elements(a: Array, b: Array) -> bool | None:
    """Whether elements of two arrays have a byte in common; None where it is too costly to say."""
    try:
        return _shares_memory(_host_view(a), _host_view(b), max_work=MAX_WORK)
    except (np.exceptions.TooHardError, OverflowError):
        return None


def overlaps_itself(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> bool | None:
    """Whether two elements of one array share a byte; None where it is too costly to say."""
    if 0 in shape:
        return False
    axes = sorted((abs(stride), size) for size, stride in zip(shape, strides, strict=True) if size > 1)
    if axes and axes[0][0] == 0:
        return True
    extent = itemsize
    for stride, size in axes:
        if stride < extent:
            break
        extent += (size - 1) * stride
    else:
        return False
    # Two elements overlap where their distance, a combination of strides, is less than an item. Of the axes
    # in which their indices differ, let `first` be the first: the distance is positive along it (else swap
    # the two), free in the axes behind it. All such distances form a box that NumPy's solver can be asked
    # about.
    item = raw_view(_SOMEWHERE, (1,), (itemsize,), itemsize)
    for first, (stride, size) in enumerate(axes):
        behind = axes[first + 1 :]
        offset = stride - sum((n - 1) * s for s, n in behind)
        distances = (size - 1, *(2 * n - 1 for _, n in behind))
        try:
            box = raw_view(_SOMEWHERE + offset, distances, (stride, *(s for s, _ in behind)), itemsize)
            if _shares_memory(box, item, max_work=MAX_WORK):
                return True
        except (np.exceptions.TooHardError, OverflowError, ValueError):
            return None
    return False


_SOMEWHERE = 1 << 60
"""An address for questions about distances only."""


def _host_view(array: Array) -> np.ndarray:
    if isinstance(array, DeviceArray):
        return raw_view(array.pointer, array.shape, array.strides, array.dtype.itemsize)
    return array


def _check_itself(name: str, array: Array, kernel: str) -> None:
    verdict = overlaps_itself(array.shape, array.strides, array.dtype.itemsize)
    if verdict is False:
        return
    found = (
        "elements that share memory"
        if verdict
        else "elements of which it is too costly to say whether they overlap"
    )
    raise AliasError(
        f"{kernel} writes argument '{name}', which has {found} (shape {array.shape}, strides "
        f"{array.strides}): each element must have memory of its own. Pass a copy of it: {name}.copy()"
    )


def _check_pairs(spans: list[_Span], kernel: str) -> None:
    for position, (_, end, _, name, array, written) in enumerate(spans):
        for begin, _, _, other_name, other, other_written in spans[position + 1 :]:
            if begin >= end:
                break
            if not (written or other_written):
                continue
            verdict = shares_elements(array, other)
            if verdict is False:
                continue
            first, second = (name, other_name) if written else (other_name, name)
            raise AliasError(_message(kernel, first, second, written and other_written, verdict))


def _message(kernel: str, written: str, other: str, both: bool, verdict: bool | None) -> str:
    use = "also writes" if both else "reads"
    if verdict is None:
        found = "their memory overlaps in a way that is too costly to decide element by element"
    else:
        found = "they share memory"
    return (
        f"{kernel} writes argument '{written}' and {use} argument '{other}', and {found}. A written argument "
        f"must share no element with another one. Pass a copy of one of them, such as {other}.copy()"
        + ("" if both else f"; where a thread reads only elements that it writes, pass '{written}' alone, and read it there")
    )
