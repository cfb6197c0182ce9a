"""Which device buffers a launch needs, what is copied into and out of them, where arguments lie in them.

A pure function of the arguments: nothing is allocated or copied here.

* A dense array (its elements fill its byte range) is its byte range, with the host's own strides.
* Read-only ranges that overlap become one buffer; a strided read inside such a range shares it.
* Any other strided array is packed in C order, and unpacked element by element, so that nothing between its
elements is ever written.
* A broadcast axis holds one element and keeps stride 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from numba_offload.mapping.arrays import Array, c_strides
from numba_offload.mapping.layout import Layout, distinct_shape, fills_its_range, has_padding

if TYPE_CHECKING:
    from numba_offload.mapping.borrow import Borrow

MAPS = ("none", "to", "from", "tofrom")


class ArrayUse(NamedTuple):
    """One array argument of a launch: its leaf name, and what the kernel does with it (one of ``MAPS``)."""

    name: str
    array: Array
    map: str
    address: int | None = None
    """Of the host array's element [0, ..., 0], where the caller has asked already."""
    borrow: Borrow | None = None
    """Of an array that was passed as a preload's handle."""
    place: MappedArray | None = None
    """Where that handle's array lies on a device with memory of its own."""

    @property
    def written(self) -> bool:
        return self.map in ("from", "tofrom")


class MappedArray(NamedTuple):
    """Where the kernel finds an array: address of element [0, ..., 0], and strides in bytes."""

    pointer: int
    strides: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BufferPlan:
    """One device buffer. ``packed``: the strided layout that it holds in C order; None: the range itself."""

    names: tuple[str, ...]
    begin: int
    end: int
    packed: Layout | None
    nbytes: int
    upload: bool
    download: bool

    @property
    def label(self) -> str:
        """The arguments that share this buffer, for messages and profiles."""
        return ", ".join(self.names)

    def place(self, layout: Layout) -> MappedArray | None:
        """Where a host array lies, with the buffer's start as address 0; None where it is not inside."""
        if self.packed is None:
            if self.begin <= layout.begin and layout.end <= self.end:
                return MappedArray(layout.pointer - self.begin, layout.strides)
            return None
        if layout != self.packed:
            return None  # another view: its elements may be anywhere in this buffer, or not in it
        return MappedArray(0, packed_strides(layout))


class Placement(NamedTuple):
    """Where one argument lies: the buffer's position in the plan, and the place inside it. No buffer: -1."""

    buffer: int
    place: MappedArray


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """Buffers, and for each use (in the given order) its placement."""

    buffers: tuple[BufferPlan, ...]
    placements: tuple[Placement, ...]


def packed_strides(layout: Layout) -> tuple[int, ...]:
    """Strides of an array's packed copy: C order over the distinct elements, 0 for broadcast axes."""
    distinct = distinct_shape(layout)
    strides = c_strides(distinct, layout.itemsize)
    return tuple(
        0 if distinct_size != size else stride
        for size, distinct_size, stride in zip(layout.shape, distinct, strides, strict=True)
    )


def plan_launch(uses: Sequence[tuple[ArrayUse, Layout]]) -> LaunchPlan:
    """Plan the buffers of a launch whose written arrays are disjoint from all others."""
    buffers: list[BufferPlan] = []
    placements: dict[int, Placement] = {}
    ranges: list[int] = []  # positions of what is read as a range
    range_buffers: list[int] = []  # and the buffer of each
    strided: list[int] = []  # positions of the other reads
    for position, (use, layout) in enumerate(uses):
        if use.map == "none" or layout.begin == layout.end:
            placements[position] = Placement(-1, MappedArray(0, layout.strides))
        elif use.written:
            buffers.append(_written(use, layout))
            placements[position] = _inside(buffers[-1], len(buffers) - 1, layout)
        elif layout.end - layout.begin <= _packed_bytes(layout):
            # Dense, or overlapping itself like a sliding window: the range is the least that can be moved.
            ranges.append(position)
        else:
            strided.append(position)
    first_read = len(buffers)
    ranges.sort(key=lambda position: uses[position][1].begin)
    for position in ranges:
        use, layout = uses[position]
        if len(buffers) > first_read and layout.begin < buffers[-1].end:
            united = buffers.pop()
            names, begin, end = (*united.names, use.name), united.begin, max(united.end, layout.end)
        else:
            names, begin, end = (use.name,), layout.begin, layout.end
        range_buffers.append(len(buffers))
        buffers.append(BufferPlan(names, begin, end, None, end - begin, upload=True, download=False))
    for position in strided:
        use, layout = uses[position]
        index = _holding(buffers, first_read, layout)
        if index is None:
            index = len(buffers)
            buffers.append(_packed(use, layout, upload=True, download=False))
        else:
            buffers[index] = replace(buffers[index], names=(*buffers[index].names, use.name))
        placements[position] = _inside(buffers[index], index, layout)
    for position, index in zip(ranges, range_buffers, strict=True):
        placements[position] = _inside(buffers[index], index, uses[position][1])
    return LaunchPlan(tuple(buffers), tuple(placements[position] for position in range(len(uses))))


def _holding(buffers: list[BufferPlan], first: int, layout: Layout) -> int | None:
    for index in range(first, len(buffers)):
        if buffers[index].place(layout) is not None:
            return index
    return None


def _inside(buffer: BufferPlan, index: int, layout: Layout) -> Placement:
    place = buffer.place(layout)
    assert place is not None
    return Placement(index, place)


def _packed_bytes(layout: Layout) -> int:
    return math.prod(distinct_shape(layout)) * layout.itemsize


def _packed(use: ArrayUse, layout: Layout, upload: bool, download: bool) -> BufferPlan:
    return BufferPlan((use.name,), layout.begin, layout.end, layout, _packed_bytes(layout), upload, download)


def _written(use: ArrayUse, layout: Layout) -> BufferPlan:
    # A kernel that writes every field of a padded record leaves its padding as it was in the buffer: upload
    # it.
    upload = use.map == "tofrom" or has_padding(use.array.dtype)
    if fills_its_range(layout):
        nbytes = layout.end - layout.begin
        return BufferPlan((use.name,), layout.begin, layout.end, None, nbytes, upload, download=True)
    return _packed(use, layout, upload, download=True)
