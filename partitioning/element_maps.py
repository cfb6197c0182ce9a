"""The element maps that come with the package: reverse, transpose, roll, group, swizzle.

Each has a function for the user and one class per number of axes for the compiler, written as plain
arithmetic.
"""

from __future__ import annotations

from typing import Any

from partitioning.algebra import ElementMap, MapFamily
from partitioning.checks import at_least, integer

Pair = tuple[int, int]
Triple = tuple[int, int, int]


def reverse(axis: int | None = None) -> MapFamily:
    """The strategy partitions `numpy.flip(a, axis)`: element i of an axis of n is the array's n - 1 - i.

    axis None reverses every axis. Blocks stay blocks.
    """
    return _Reverse(None if axis is None else int(integer(axis, "reverse's axis")))


def transpose(*axes: int) -> MapFamily:
    """The strategy partitions `a.transpose(*axes)`; with no axes, their order is reversed, as in NumPy.

    Tiles stay tiles, with their sides exchanged. A thread coordinate per axis stays with the axis of the
    transposed array.
    """
    order = axes[0] if len(axes) == 1 and isinstance(axes[0], tuple | list) else axes
    return _Transpose(tuple(int(integer(axis, f"transpose's axes[{at}]")) for at, axis in enumerate(order)))


def roll(shift: int, axis: int | None = None) -> MapFamily:
    """Element i of an axis of n goes to (i + shift) % n, as `numpy.roll` moves contents.

    shift is any integer, or `Runtime(shift)`. axis may be left out for arrays of one axis only.
    """
    return _Roll(integer(shift, "roll's shift"), None if axis is None else int(integer(axis, "roll's axis")))


def group(g: int) -> ElementMap:
    """Each run of g consecutive source elements is dealt out over the array, one to each of g equal parts.

    With m = n // g whole groups, source element q*g + r (q < m, r < g) is element r*m + q; the n % g elements
    at the end stay where they are. So `Chunked1D(g).then(group(g))` gives thread q the elements q, q + m, q +
    2m ...: neighbouring threads touch neighbouring elements, and accesses coalesce. Injective by mixed radix:
    (q, r) are the digits of source and element alike, in opposite order. g >= 1, or `Runtime(g)`; arrays of
    one axis.
    """
    return Group(g)


def swizzle(factor: int = 1) -> ElementMap:
    """Row r of an array of two axes is rotated by r * factor: (r, c) goes to (r, (c + r*factor) % columns).

    A column of the source lies on a diagonal of the array, so that the threads of one column touch different
    banks or cache sets. Injective because each row is rotated within itself. factor >= 0, or
    `Runtime(factor)`.
    """
    return Swizzle(factor)


def _axis(axis: int, ndim: int, what: str) -> int:
    if not -ndim <= axis < ndim:
        raise ValueError(f"{what} is {axis}; arrays of {ndim} axes have axes 0 to {ndim - 1}")
    return axis % ndim


def _no_such(what: str, ndim: int, some: str) -> ValueError:
    return ValueError(
        f"{what} is for arrays of {some} axes; it cannot follow a strategy over arrays of {ndim}"
    )


class _Reverse(MapFamily):
    def __init__(self, axis: int | None) -> None:
        self.axis = axis

    def __repr__(self) -> str:
        return "reverse()" if self.axis is None else f"reverse({self.axis})"

    def bind(self, ndim: int) -> ElementMap:
        if ndim not in (1, 2, 3):
            raise _no_such(repr(self), ndim, "1 to 3")
        only = None if self.axis is None else _axis(self.axis, ndim, "reverse's axis")
        flips = [only in (None, axis) for axis in range(ndim)]
        return Reverse1D() if ndim == 1 else Reverse2D(*flips) if ndim == 2 else Reverse3D(*flips)


class _Transpose(MapFamily):
    def __init__(self, axes: tuple[int, ...]) -> None:
        self.axes = axes

    def __repr__(self) -> str:
        return f"transpose({', '.join(map(str, self.axes))})"

    def bind(self, ndim: int) -> ElementMap:
        if ndim not in (2, 3):
            raise _no_such(repr(self), ndim, "2 or 3")
        order = [_axis(axis, ndim, f"{self!r}: an axis") for axis in self.axes] or list(range(ndim))[::-1]
        if sorted(order) != list(range(ndim)):
            raise ValueError(f"{self!r} must name each of the {ndim} axes of the array once")
        return Transpose3D(*order) if ndim == 3 else Transpose2D(order == [1, 0])


class _Roll(MapFamily):
    def __init__(self, shift: int, axis: int | None) -> None:
        self.shift = shift
        self.axis = axis

    def __repr__(self) -> str:
        return f"roll({self.shift!r})" if self.axis is None else f"roll({self.shift!r}, axis={self.axis})"

    def bind(self, ndim: int) -> ElementMap:
        if ndim not in (1, 2, 3):
            raise _no_such(repr(self), ndim, "1 to 3")
        if self.axis is None and ndim > 1:
            raise ValueError(f"{self!r} must name its axis to follow a strategy over arrays of {ndim} axes")
        axis = _axis(self.axis or 0, ndim, "roll's axis")
        if ndim == 1:
            return Roll1D(self.shift)
        return Roll2D(self.shift, axis) if ndim == 2 else Roll3D(self.shift, axis)


class _Mirror(ElementMap):
    def mirrored(self, flip: bool, origin: int, length: int, step: int, n: int) -> int:
        # The image of the last element: mirrored, the lattice is walked from its other end with the same
        # step.
        return n - 1 - origin - (length - 1) * step if flip else origin

    def map_shape(self, local: Any) -> Any:
        return local

    def map_step(self, step: Any) -> Any:
        return step


class Reverse1D(_Mirror):
    """`reverse()` for one axis."""

    ndim = 1

    def apply(self, index: int, shape: tuple[int, ...]) -> int:
        return shape[0] - 1 - index

    def map_origin(self, origin: int, local: int, step: int, shape: tuple[int, ...]) -> int:
        return self.mirrored(True, origin, local, step, shape[0])


class Reverse2D(_Mirror):
    """`reverse(...)` for two axes; each is a flag for its axis."""

    ndim = 2

    def __init__(self, rows: bool, columns: bool) -> None:
        self.rows = bool(rows)
        self.columns = bool(columns)

    def apply(self, index: Pair, shape: Pair) -> Pair:
        return (
            self.mirrored(self.rows, index[0], 1, 1, shape[0]),
            self.mirrored(self.columns, index[1], 1, 1, shape[1]),
        )

    def map_origin(self, origin: Pair, local: Pair, step: Pair, shape: Pair) -> Pair:
        return (
            self.mirrored(self.rows, origin[0], local[0], step[0], shape[0]),
            self.mirrored(self.columns, origin[1], local[1], step[1], shape[1]),
        )


class Reverse3D(_Mirror):
    """`reverse(...)` for three axes; each is a flag for its axis."""

    ndim = 3

    def __init__(self, planes: bool, rows: bool, columns: bool) -> None:
        self.planes = bool(planes)
        self.rows = bool(rows)
        self.columns = bool(columns)

    def apply(self, index: Triple, shape: Triple) -> Triple:
        return (
            self.mirrored(self.planes, index[0], 1, 1, shape[0]),
            self.mirrored(self.rows, index[1], 1, 1, shape[1]),
            self.mirrored(self.columns, index[2], 1, 1, shape[2]),
        )

    def map_origin(self, origin: Triple, local: Triple, step: Triple, shape: Triple) -> Triple:
        return (
            self.mirrored(self.planes, origin[0], local[0], step[0], shape[0]),
            self.mirrored(self.rows, origin[1], local[1], step[1], shape[1]),
            self.mirrored(self.columns, origin[2], local[2], step[2], shape[2]),
        )


class Transpose2D(ElementMap):
    """`transpose(...)` for two axes; without `swap` it changes nothing."""

    ndim = 2

    def __init__(self, swap: bool) -> None:
        self.swap = bool(swap)

    def swapped(self, pair: Pair) -> Pair:
        return (pair[1], pair[0]) if self.swap else (pair[0], pair[1])

    def apply(self, index: Pair, shape: Pair) -> Pair:
        return self.swapped(index)

    def source_shape(self, shape: Pair) -> Pair:
        return self.swapped(shape)

    def map_origin(self, origin: Pair, local: Pair, step: Pair, shape: Pair) -> Pair:
        return self.swapped(origin)

    def map_shape(self, local: Pair) -> Pair:
        return self.swapped(local)

    def map_step(self, step: Pair) -> Pair:
        return self.swapped(step)


class Transpose3D(ElementMap):
    """`transpose(a, b, c)`: axes of the array, in the order in which the source array has them."""

    ndim = 3

    def __init__(self, a: int, b: int, c: int) -> None:
        self.a = a
        self.b = b
        self.c = c

    def at_axis(self, axis: int, source: Triple) -> int:
        # What the source array's axis that stands for this axis of the array says.
        return source[0] if self.a == axis else source[1] if self.b == axis else source[2]

    def restored(self, source: Triple) -> Triple:
        return (self.at_axis(0, source), self.at_axis(1, source), self.at_axis(2, source))

    def entry(self, axis: int, shape: Triple) -> int:
        return shape[0] if axis == 0 else shape[1] if axis == 1 else shape[2]

    def apply(self, index: Triple, shape: Triple) -> Triple:
        return self.restored(index)

    def source_shape(self, shape: Triple) -> Triple:
        return (self.entry(self.a, shape), self.entry(self.b, shape), self.entry(self.c, shape))

    def map_origin(self, origin: Triple, local: Triple, step: Triple, shape: Triple) -> Triple:
        return self.restored(origin)

    def map_shape(self, local: Triple) -> Triple:
        return self.restored(local)

    def map_step(self, step: Triple) -> Triple:
        return self.restored(step)


class _Rotation(ElementMap):
    def rotated(self, i: int, by: int, n: int) -> int:
        # (i + by) % n for 0 <= by < n, without a sum that could overflow and without a second division.
        return i - (n - by) if i >= n - by else i + by


class Roll1D(_Rotation):
    """`roll(shift)` for one axis."""

    ndim = 1

    def __init__(self, shift: int) -> None:
        self.shift = shift

    def apply(self, index: int, shape: tuple[int, ...]) -> int:
        return self.rotated(index, self.shift % shape[0], shape[0])


class Roll2D(_Rotation):
    """`roll(shift, axis)` for two axes."""

    ndim = 2

    def __init__(self, shift: int, axis: int) -> None:
        self.shift = shift
        self.axis = axis

    def apply(self, index: Pair, shape: Pair) -> Pair:
        return (
            self.rotated(index[0], self.shift % shape[0], shape[0]) if self.axis == 0 else index[0],
            self.rotated(index[1], self.shift % shape[1], shape[1]) if self.axis == 1 else index[1],
        )


class Roll3D(_Rotation):
    """`roll(shift, axis)` for three axes."""

    ndim = 3

    def __init__(self, shift: int, axis: int) -> None:
        self.shift = shift
        self.axis = axis

    def apply(self, index: Triple, shape: Triple) -> Triple:
        return (
            self.rotated(index[0], self.shift % shape[0], shape[0]) if self.axis == 0 else index[0],
            self.rotated(index[1], self.shift % shape[1], shape[1]) if self.axis == 1 else index[1],
            self.rotated(index[2], self.shift % shape[2], shape[2]) if self.axis == 2 else index[2],
        )


class Group(ElementMap):
    """`group(g)`."""

    ndim = 1

    def __init__(self, g: int) -> None:
        self.g = at_least(g, 1, "group's size g")

    def apply(self, index: int, shape: tuple[int, ...]) -> int:
        groups = shape[0] // self.g
        return index % self.g * groups + index // self.g if index < groups * self.g else index


class Swizzle(_Rotation):
    """`swizzle(factor)`."""

    ndim = 2

    def __init__(self, factor: int = 1) -> None:
        self.factor = at_least(factor, 0, "swizzle's factor")

    def apply(self, index: Pair, shape: Pair) -> Pair:
        # Both are reduced first: their product is then at most rows * columns.
        by = (self.factor % shape[1]) * (index[0] % shape[1]) % shape[1]
        return (index[0], self.rotated(index[1], by, shape[1]))
