"""Handle: an array that a preload keeps on a device, as the user holds it."""

from __future__ import annotations

import atexit
import sys
import warnings
import weakref
from collections.abc import Iterator
from types import EllipsisType
from typing import Any, NoReturn

import numpy as np

from numba_offload.errors import BorrowError
from numba_offload.mapping.arrays import Array, as_array
from numba_offload.mapping.borrow import BORROWS, Borrow
from numba_offload.mapping.layout import address
from numba_offload.mapping.plan import MappedArray
from numba_offload.origin import Origin, inside_package, origin_of, user_frame

_BASIC = (int, np.integer, slice, EllipsisType, type(None))


class Handle:
    """A preloaded array. Kernels take it wherever they take an array; ``Region(handle)`` if it is from ``preload_mut``.

    It has the array's ``shape``, ``dtype``, ``ndim``, ``size`` and ``nbytes``. Slices of a handle are handles of a part of
    the array, and end with it. ``numpy.asarray(handle)`` is a read-only view of the host's array, from ``preload``; what
    ``preload_mut`` holds cannot be read on the host before the release (BorrowError).

    As a context manager it is released at the end of the block.
    """

    __slots__ = ("__weakref__", "_borrow", "_device", "_finalizer", "_host", "_root", "_working")

    def __init__(
        self, borrow: Borrow, host: np.ndarray, working: np.ndarray, device: np.ndarray | None, root: Handle | None = None
    ) -> None:
        self._borrow = borrow
        self._host = host
        self._working = working
        self._device = device
        """Never read: a stand-in for the array at its place on the device, so that NumPy slices addresses."""
        self._root = root
        self._finalizer: Any = None
        if root is None:
            self._finalizer = weakref.finalize(self, _dropped, borrow)
            self._finalizer.atexit = False

    # What kernels need of it

    @property
    def borrow(self) -> Borrow:
        """The hold that this handle is of."""
        return self._borrow

    @property
    def array(self) -> np.ndarray:
        """The array that kernels are given. Raises BorrowError after the release."""
        self._borrow.check_usable("using a handle")
        return self._working

    @property
    def host(self) -> np.ndarray:
        """The host's array. Raises BorrowError after the release."""
        self._borrow.check_usable("using a handle")
        return self._host

    @property
    def place(self) -> MappedArray | None:
        """Where it lies on a device with memory of its own."""
        device = self._device
        return None if device is None else MappedArray(address(device), device.strides)

    @property
    def hold(self) -> tuple[Borrow, MappedArray | None]:
        """Both, as a launch takes them."""
        return self._borrow, self.place

    # What it shows

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements along each axis."""
        return self._host.shape

    @property
    def dtype(self) -> np.dtype:
        """Of an element."""
        return self._host.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._host.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._host.size

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self._host.nbytes

    @property
    def mutable(self) -> bool:
        """Whether kernels may write it: it is from ``preload_mut``."""
        return self._borrow.mutable

    @property
    def released(self) -> bool:
        """Whether it was released."""
        return self._borrow.released is not None

    def __len__(self) -> int:
        return len(self._host)

    def __repr__(self) -> str:
        state = ", released" if self.released else ""
        return f"<{self._borrow.verb} handle of '{self._borrow.name}': {self.dtype}, shape {self.shape}{state}>"

    # Reading on the host, and parts

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        view = self._readable("reading it on the host").view()
        view.flags.writeable = False
        if dtype is not None and np.dtype(dtype) != view.dtype:
            if copy is False:
                raise ValueError(f"a view of a {view.dtype} array as {np.dtype(dtype)} needs a copy")
            return view.astype(dtype)
        return view.copy() if copy else view

    def __getitem__(self, index: Any) -> Any:
        self._borrow.check_usable(f"indexing the handle of '{self._borrow.name}'")
        parts = index if isinstance(index, tuple) else (index,)
        basic = all(isinstance(part, _BASIC) and not isinstance(part, bool) for part in parts)
        host = self._host[index] if basic or isinstance(index, str) else None
        if not isinstance(host, np.ndarray):
            # An element, or a selection, which is a copy: this reads.
            return self._readable("indexing it on the host")[index]
        device = None if self._device is None else self._device[index]
        return Handle(self._borrow, host, self._working[index], device, self if self._root is None else self._root)

    def __getattr__(self, name: str) -> NoReturn:
        # Only what is not there comes here.
        message = f"a handle has no attribute {name!r}"
        if not name.startswith("_") and hasattr(np.ndarray, name):
            borrow = self._borrow
            message += ", which arrays have: " + (
                f"'{borrow.name}' is preloaded for writing since {borrow.origin}, and its current content is on the device. "
                "Release it first, and use the array"
                if borrow.mutable
                else f"use the array itself, or numpy.asarray(handle).{name}"
            )
        raise AttributeError(message, name=name, obj=self)

    def __iter__(self) -> Iterator[Any]:
        return iter(np.asarray(self))

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        raise BorrowError(
            f"writing '{self._borrow.name}' on the host, which is preloaded since {self._borrow.origin}: a handle is written by "
            "kernels only. Release it first"
        )

    def __reduce__(self) -> NoReturn:
        raise BorrowError(
            f"the handle of '{self._borrow.name}' (preloaded at {self._borrow.origin}) cannot be copied or pickled: it is a hold "
            "on this process's array. Preload the array where it is used"
        )

    def _readable(self, doing: str) -> np.ndarray:
        borrow = self._borrow
        borrow.check_usable(f"{doing}: '{borrow.name}'")
        if borrow.mutable:
            raise BorrowError(
                f"{doing}: '{borrow.name}' is preloaded for writing since {borrow.origin}, and its current content is on the "
                "device. Release it first"
            )
        return self._host

    # The end

    def release(self) -> None:
        """End the hold: copy back, if a kernel wrote, and let the host write again. A second call does nothing.

        Waits for launches of other threads that use the handle. Raises BorrowError for a slice of a handle, which has no hold
        of its own, and in the debug mode where the host wrote the array meanwhile; TargetError where the copy back fails.
        """
        if self._root is not None:
            raise BorrowError(
                f"this is a part of the handle of '{self._borrow.name}' (preloaded at {self._borrow.origin}), which has no hold "
                "of its own. Release the whole handle"
            )
        fault = self._release()
        if fault is not None:
            raise BorrowError(fault)

    def _release(self) -> str | None:
        try:
            return release(self._borrow, origin_of(user_frame()))
        finally:
            if self._borrow.released is not None:
                self._finalizer.detach()

    def __enter__(self) -> Handle:
        self._borrow.check_usable("entering a preload's block")
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        leave((self,), error)


def written_array(array: Any, wrapper: str) -> Array | None:
    """The array to write behind what a Region or an Accumulator is given; None where that is no array.

    Raises BorrowError for a handle to read from, and for an array itself whose elements ``preload_mut`` holds.
    """
    if isinstance(array, Handle):
        if not array.mutable:
            raise BorrowError(
                f"{wrapper}(handle): '{array.borrow.name}' is preloaded for reading since {array.borrow.origin}. Preload it with "
                "preload_mut where a kernel writes it"
            )
        return array.array
    found = as_array(array, "array")
    if BORROWS.live and isinstance(found, np.ndarray):
        remedy = f"Pass {wrapper}(handle) instead, or release it first"
        BORROWS.check_host_use(found, False, f"{wrapper}(array)", "the array", remedy)
    return found


class Handles(tuple[Handle, ...]):
    """The handles of a preload of several arrays, in their order. As a context manager all are released at the block's end."""

    __slots__ = ()

    def release(self) -> None:
        """Release them all, the last one first."""
        leave(self, None)

    def __enter__(self) -> Handles:
        for handle in self:
            handle.__enter__()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        leave(self, error)


def leave(handles: tuple[Handle, ...], error: BaseException | None) -> None:
    """Release handles, the last one first, all of them whatever happens.

    ``error``: what is on its way already; faults of releases are added to it as notes, as they are not what went wrong first.
    """
    first = error
    for handle in reversed(handles):
        try:
            handle.release()
        except BaseException as fault:
            if first is None or (isinstance(first, Exception) and not isinstance(fault, Exception)):
                first = fault
            else:
                first.add_note(f"then, releasing {handle!r}: {type(fault).__name__}: {fault}")
    if first is not None and first is not error:
        raise first


def release(borrow: Borrow, where: Origin) -> str | None:
    """Give a hold back; returns what the debug mode has found to be wrong.

    What kernels have finished comes back before anything is raised.
    """
    if not BORROWS.retire(borrow, where):
        return None
    changed, failed = False, None
    try:
        if borrow.watch is not None:
            changed = borrow.watch.end()
        if borrow.inherited:
            # Results on a device, or in what stands for it in the debug mode, are the parent's.
            return _left_behind(borrow) if borrow.written and (borrow.entry or borrow.watch) else None
        if borrow.entry is None:
            if borrow.watch is not None and borrow.written:
                borrow.watch.take_from(borrow.working)
        else:
            if borrow.entry.dirty:
                try:
                    # Another launch's asynchronous failure would be raised by the copy, and keep these results away.
                    borrow.state.target.synchronize(0)
                except Exception as earlier:
                    failed = earlier
            borrow.state.device.present.release(borrow.entry)
    finally:
        BORROWS.drop(borrow)
    if failed is not None:
        raise failed
    if not changed:
        return None
    lost = " What the host wrote is lost, and what kernels wrote is there." if borrow.mutable else ""
    return (
        f"'{borrow.name}' was written on the host, through a view from before its {borrow.verb} at {borrow.origin}, and before "
        f"its release at {where}.{lost} Write it before the preload or after the release"
    )


def _left_behind(borrow: Borrow) -> str:
    return (
        f"the handle of '{borrow.name}', preloaded at {borrow.origin}, was released in a process that was forked since. What "
        "kernels wrote comes back in the process that preloaded it"
    )


# Handles that nobody released

def _dropped(borrow: Borrow) -> None:
    """The last reference to a handle is gone. A finalizer: it may run in the middle of anything."""
    if borrow.inherited:
        return
    if inside_package(sys._getframe(1)):
        # Locks may be held here; the next call that asks for arrays takes care of it.
        BORROWS.abandon(lambda: _release_leaked(borrow, "was dropped"))
    else:
        _release_leaked(borrow, "was dropped")


def _release_leaked(borrow: Borrow, how: str) -> None:
    message = (
        f"the handle of '{borrow.name}', preloaded at {borrow.origin}, {how} without a release. It is released now; use "
        f"'with {borrow.verb}(...)', or call release()"
    )
    try:
        warnings.warn_explicit(message, ResourceWarning, borrow.origin.filename, borrow.origin.line)
    finally:
        fault = release(borrow, Origin("the end of its last reference", 0))
        if fault is not None:
            warnings.warn_explicit(fault, ResourceWarning, borrow.origin.filename, borrow.origin.line)


def _release_all() -> None:
    for borrow in reversed(BORROWS.live):
        if not borrow.inherited:
            _release_leaked(borrow, "was alive at the program's end")


_registered = False


def release_at_exit() -> None:
    """Let handles be released at the interpreter's exit.

    Asked for when a device is in use already, so that it comes before what its library does at exit.
    """
    global _registered
    if not _registered:
        _registered = True
        atexit.register(_release_all)
