"""Which device buffers one launch needs, what is copied into and out of each, and where each argument lies in them.

A pure function of the arguments: nothing is allocated or copied here.

* A dense array (its elements fill its byte range) is its byte range, with the host's own strides.
* Read-only ranges that overlap become one buffer; a strided read inside such a range shares it.
* Any other strided array is packed in C order, and unpacked element by element, so that nothing between its elements
  is ever written.
* A broadcast axis holds one element and keeps stride 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from numba_offload.mapping.arrays import Array, c_strides
from numba_offload.mapping.layout import (
    Layout,
    byte_range,
    distinct_shape,
    fills_its_range,
    has_padding,
)

MAPS = ("none", "to", "from", "tofrom")


class ArrayUse(NamedTuple):
    """One array argument of a launch: its leaf name, and what the kernel does with it (one of ``MAPS``)."""

    name: str
    array: Array
    map: str

    @property
    def written(self) -> bool:
        return self.map in ("from", "tofrom")


class MappedArray(NamedTuple):
    """Where the kernel finds an array: address of element [0, ..., 0], and strides in bytes."""

    pointer: int
    strides: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BufferPlan:
    """One device buffer. ``packed`` is the strided host layout that it holds in C order; None: the range as it is."""

    name: str
    begin: int
    end: int
    packed: Layout | None
    nbytes: int
    upload: bool
    download: bool

    def place(self, layout: Layout) -> MappedArray | None:
        """Where an array of the host lies, with the buffer's start as address 0; None where it is not inside."""
        if self.packed is None:
            if self.begin <= layout.begin and layout.end <= self.end:
                return MappedArray(layout.pointer - self.begin, layout.strides)
            return None
        if layout[:4] != self._packed_key():
            # Not the view that was packed: one element of it may be anywhere or nowhere in the buffer.
            return None
        return MappedArray(0, packed_strides(layout))

    def _packed_key(self) -> tuple:
        assert self.packed is not None
        return self.packed[:4]


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
    """Strides of an array's packed copy: C order over the distinct elements, 0 where the host's axis is broadcast."""
    distinct = distinct_shape(layout)
    strides = c_strides(distinct, layout.itemsize)
    return tuple(
        0 if distinct_size != size else stride
        for size, distinct_size, stride in zip(layout.shape, distinct, strides, strict=True)
    )


def plan_launch(uses: Sequence[tuple[ArrayUse, Layout]]) -> LaunchPlan:
    """Plan the buffers of a launch. Written arrays are taken to be disjoint from all others (``check_aliases``)."""
    buffers: list[BufferPlan] = []
    placements: dict[int, Placement] = {}
    ranges: list[tuple[int, int, int]] = []  # (begin, end, position) of what is read as a range
    strided: list[int] = []
    for position, (use, layout) in enumerate(uses):
        if use.map == "none" or layout.begin == layout.end:
            placements[position] = Placement(-1, MappedArray(0, layout.strides))
        elif use.written:
            buffer = _written(use, layout)
            placements[position] = _placed(len(buffers), buffer, layout)
            buffers.append(buffer)
        elif layout.end - layout.begin <= _packed_bytes(layout):
            # Dense, or overlapping itself like a sliding window: the range is the least that can be moved.
            ranges.append((layout.begin, layout.end, position))
        else:
            strided.append(position)
    united = _unite(ranges, [use.name for use, _ in uses])
    packed: dict[tuple, int] = {}
    shared_names: dict[int, list[str]] = {}
    first_united = len(buffers)
    buffers.extend(united)
    for position in strided:
        use, layout = uses[position]
        for index in range(first_united, first_united + len(united)):
            place = buffers[index].place(layout)
            if place is not None:
                placements[position] = Placement(index, place)
                shared_names.setdefault(index, [buffers[index].name]).append(use.name)
                break
        else:
            key = layout[:4]
            index = packed.get(key, -1)
            if index < 0:
                index = packed[key] = len(buffers)
                buffers.append(
                    BufferPlan(use.name, layout.begin, layout.end, layout, _packed_bytes(layout), True, False)
                )
            else:
                shared_names.setdefault(index, [buffers[index].name]).append(use.name)
            placements[position] = _placed(index, buffers[index], layout)
    for begin, _, position in ranges:
        for index in range(first_united, first_united + len(united)):
            if buffers[index].begin <= begin < buffers[index].end:
                placements[position] = _placed(index, buffers[index], uses[position][1])
    for index, names in shared_names.items():
        old = buffers[index]
        buffers[index] = BufferPlan(
            ", ".join(names), old.begin, old.end, old.packed, old.nbytes, old.upload, old.download
        )
    return LaunchPlan(tuple(buffers), tuple(placements[position] for position in range(len(uses))))


def _placed(index: int, buffer: BufferPlan, layout: Layout) -> Placement:
    place = buffer.place(layout)
    assert place is not None
    return Placement(index, place)


def _packed_bytes(layout: Layout) -> int:
    return math.prod(distinct_shape(layout)) * layout.itemsize


def _written(use: ArrayUse, layout: Layout) -> BufferPlan:
    # A kernel that writes every field of a padded record leaves its padding as it was in the buffer: upload it.
    upload = use.map == "tofrom" or has_padding(use.array.dtype)
    core = layout._replace(
        shape=distinct_shape(layout),
        strides=tuple(stride for stride in layout.strides),
    )
    if fills_its_range(core):
        return BufferPlan(use.name, layout.begin, layout.end, None, layout.end - layout.begin, upload, True)
    return BufferPlan(use.name, layout.begin, layout.end, layout, _packed_bytes(layout), upload, True)


def _unite(ranges: list[tuple[int, int, int]], names: list[str]) -> list[BufferPlan]:
    """Buffers for read-only ranges: those that overlap are one."""
    groups: list[tuple[int, int, list[str]]] = []
    for begin, end, position in sorted(ranges):
        if groups and begin < groups[-1][1]:
            first, reach, group = groups[-1]
            groups[-1] = (first, max(reach, end), [*group, names[position]])
        else:
            groups.append((begin, end, [names[position]]))
    return [BufferPlan(", ".join(group), begin, end, None, end - begin, True, False) for begin, end, group in groups]


__all__ = [
    "MAPS",
    "ArrayUse",
    "BufferPlan",
    "LaunchPlan",
    "MappedArray",
    "Placement",
    "byte_range",
    "packed_strides",
    "plan_launch",
]
