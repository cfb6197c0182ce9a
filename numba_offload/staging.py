"""preload and preload_mut: arrays that stay on the device for many launches, under rules that keep both sides apart."""

from __future__ import annotations

from types import FrameType
from typing import Any, overload

import numpy as np

from numba_offload.accumulator import Accumulator
from numba_offload.errors import BorrowError, UnsupportedArrayError
from numba_offload.handle import Handle, Handles, leave, release_at_exit
from numba_offload.mapping.alias import check_aliases
from numba_offload.mapping.arrays import DeviceArray, as_array, check_array, check_writable
from numba_offload.mapping.borrow import BORROWS, Borrow
from numba_offload.mapping.borrow_debug import HostWatch, copy_alike
from numba_offload.mapping.layout import raw_view
from numba_offload.mapping.plan import ArrayUse
from numba_offload.mapping.settings import debugging_borrows
from numba_offload.origin import Origin, argument_names, origin_of, user_frame
from numba_offload.region import Region
from numba_offload.targets.registry import TargetState, current_target


@overload
def preload(array: Any, /) -> Handle: ...


@overload
def preload(first: Any, second: Any, /, *more: Any) -> Handles: ...


def preload(*arrays: Any) -> Any:
    """Copy arrays to the device, for kernels to read in any number of launches.

    Use it as a context manager, or call ``release()`` on what it returns. Until then the host may read the arrays, but not
    write them: ``flags.writeable`` is off for each array and for the arrays that it is a view of. Preloads for reading may
    be nested and repeated; the array, or a part of it, is copied once.

    Parameters
    ----------
    arrays
        NumPy arrays of any layout, or handles.

    Returns
    -------
    Handle or tuple of Handle
        One for each array, in their order. Kernels take handles as they take arrays.

    Raises
    ------
    BorrowError
        An array shares elements with one that ``preload_mut`` holds.
    UnsupportedArrayError
        Something is no array (a TypeError), lies in device memory already, or has a dtype that kernels cannot take.
    DeviceMemoryError
        The device has no room. Nothing stays preloaded.
    """
    return _preload(arrays, mutable=False, frame=user_frame())


@overload
def preload_mut(array: Any, /) -> Handle: ...


@overload
def preload_mut(first: Any, second: Any, /, *more: Any) -> Handles: ...


def preload_mut(*arrays: Any) -> Any:
    """Copy arrays to the device, for kernels to read and write in any number of launches.

    Use it as a context manager, or call ``release()`` on what it returns: what kernels wrote is copied back then, once, also
    where an exception ends the block. Until then the array is the handle's alone. The host may not write it, and must not
    read it, which NumPy cannot prevent: ``NUMBA_OFFLOAD_DEBUG=borrow`` makes such reads show.

    Parameters
    ----------
    arrays
        Writable NumPy arrays of any layout whose elements each have memory of their own.

    Returns
    -------
    Handle or tuple of Handle
        One for each array, in their order. Pass ``Region(handle, strategy)`` where a kernel writes it.

    Raises
    ------
    BorrowError
        An array shares elements with one that is preloaded already.
    LaunchError
        An array is read-only (a ValueError), or elements of it share memory (AliasError).
    UnsupportedArrayError
        Something is no array (a TypeError), lies in device memory already, or has a dtype that kernels cannot take.
    DeviceMemoryError
        The device has no room. Nothing stays preloaded.
    """
    return _preload(arrays, mutable=True, frame=user_frame())


def _preload(arrays: tuple[Any, ...], mutable: bool, frame: FrameType | None) -> Any:
    verb = "preload_mut" if mutable else "preload"
    if not arrays:
        raise TypeError(f"{verb}() takes one array or more")
    origin, names = origin_of(frame), argument_names(frame, len(arrays))
    state = current_target()
    BORROWS.run_abandoned()
    made: list[Handle] = []
    try:
        for name, given in zip(names, arrays, strict=True):
            made.append(_hold(name, given, mutable, origin, state))
    except BaseException as error:
        leave(tuple(made), error)
        raise
    release_at_exit()
    return made[0] if len(made) == 1 else Handles(made)


def _hold(name: str, given: Any, mutable: bool, origin: Origin, state: TargetState) -> Handle:
    array = _host_array(name, given, mutable, origin)
    borrow = Borrow(name, array, mutable, origin, state)
    BORROWS.take(borrow, given)
    try:
        _fill(borrow, state)
    except BaseException:
        borrow.released = origin
        try:
            if borrow.entry is not None:
                state.device.present.release(borrow.entry)
        finally:
            BORROWS.drop(borrow)
        raise
    device = None
    if borrow.entry is not None:
        place = borrow.entry.place(borrow.layout)
        if place is not None:
            raw = raw_view(place.pointer, array.shape, place.strides, array.dtype.itemsize)
            device = raw.view(array.dtype)
    return Handle(borrow, array, borrow.working, device)


def _fill(borrow: Borrow, state: TargetState) -> None:
    """Copy an array to the device, and in the debug mode poison the host's own if it may not be read."""
    array = borrow.array
    watching = debugging_borrows()
    if state.device.memory.unified:
        if watching and borrow.mutable and array.size:
            borrow.working = copy_alike(array)
    elif array.size:
        borrow.entry = state.device.present.hold(ArrayUse(borrow.name, array, "tofrom" if borrow.mutable else "to"))
        # Kernels may be launched on any stream, and the copy was made on the default one.
        state.target.synchronize(0)
    if watching:
        borrow.watch = HostWatch(array, poison=borrow.mutable)


def _host_array(name: str, given: Any, mutable: bool, origin: Origin) -> np.ndarray:
    """The array to hold. Raises what a preload refuses for the array's own sake."""
    verb = "preload_mut" if mutable else "preload"
    if isinstance(given, Handle):
        if mutable:
            raise BorrowError(
                f"preload_mut({name}) at {origin}: this is the handle of '{given.borrow.name}', which is preloaded already, "
                f"since {given.borrow.origin} ({given.borrow.verb}). Pass the array, after that handle's release"
            )
        return given.host
    if isinstance(given, Region | Accumulator):
        kind = type(given).__name__
        raise UnsupportedArrayError(f"{verb}({name}) takes an array, not a {kind}: preload the array, and pass {kind}(handle)")
    array = as_array(given, name)
    if array is None:
        hint = f"; for several arrays write {verb}(x, y)" if isinstance(given, tuple | list) else ""
        raise UnsupportedArrayError(
            f"{verb}({name}) takes an array, not {type(given).__name__}; convert it with numpy.asarray first{hint}"
        )
    if isinstance(array, DeviceArray):
        raise UnsupportedArrayError(
            f"{verb}({name}): this {type(given).__name__} lies in device memory already; pass it to kernels as it is"
        )
    check_array(array, name)
    array = array.view()  # whose shape nobody else can assign
    if mutable:
        # A preload that is in the way is told of, rather than that it has made the array read-only.
        remedy = "Release it first, or use its handle"
        BORROWS.check_host_use(array, True, f"preload_mut({name}) at {origin}", f"'{name}'", remedy)
        if not BORROWS.host_writable(array):
            check_writable(array, name, "preload_mut")
        check_aliases([(name, array, True)], "preload_mut")
    return array
