"""Who has borrowed which host array, for reading or for writing, and since which line: the rules of preloads.

One table for all devices, because what a rule protects is the host's array. Readers may be many; a writer is alone. Whether
two uses meet is decided on elements. A managed launch, which names the array itself, may read what is borrowed for reading;
everything else must go through the handle.

Launches on handles take no claims in the present table, as nothing moves. Instead they are counted here while they run: a
release waits for them, and of several threads' launches one that writes is alone with its array.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from numba_offload.errors import BorrowError
from numba_offload.mapping.alias import shares_elements
from numba_offload.mapping.arrays import Array
from numba_offload.mapping.host_locks import HostLocks
from numba_offload.mapping.layout import layout_of
from numba_offload.mapping.plan import ArrayUse
from numba_offload.origin import Origin

if TYPE_CHECKING:
    from numba_offload.mapping.borrow_debug import HostWatch
    from numba_offload.mapping.present import Entry
    from numba_offload.targets.registry import TargetState


_NOTHING = np.empty(0)


class Borrow:
    """One preload of one array, from its line to its release. The table's lock guards what changes."""

    __slots__ = (
        "array",
        "chain",
        "entry",
        "inherited",
        "layout",
        "leaving",
        "mutable",
        "name",
        "origin",
        "released",
        "state",
        "users",
        "watch",
        "working",
        "written",
    )

    def __init__(self, name: str, array: np.ndarray, mutable: bool, origin: Origin, state: TargetState) -> None:
        self.name = name
        self.array = array
        self.working = array
        """What kernels are given: the array, or the copy that stands for it in the debug mode."""
        self.layout = layout_of(array)
        self.mutable = mutable
        self.origin = origin
        self.state = state
        self.entry: Entry | None = None
        """What holds it on the device; None in unified memory."""
        self.watch: HostWatch | None = None
        self.written = False
        """An error-free launch wrote it."""
        self.leaving = False
        self.released: Origin | None = None
        self.users: list[tuple[int, bool]] = []
        """Launches under way: the thread, and whether it writes."""
        self.chain: list[np.ndarray] = []
        self.inherited = False
        """This process was forked from the one that preloaded."""

    @property
    def verb(self) -> str:
        return "preload_mut" if self.mutable else "preload"

    def overlaps(self, array: np.ndarray) -> bool:
        """Whether a host array has an element in common with this one; also where that is too costly to say."""
        layout = layout_of(array)
        if layout.begin >= self.layout.end or self.layout.begin >= layout.end:
            return False
        return shares_elements(array, self.array) is not False

    def check_usable(self, doing: str) -> None:
        """Raise BorrowError where the handle is of no use any more."""
        if self.released is not None:
            raise BorrowError(
                f"{doing}: the handle of '{self.name}' ({self.verb} at {self.origin}) was released at {self.released}; use the "
                "array itself, or preload it again"
            )
        if self.inherited:
            raise BorrowError(
                f"{doing}: '{self.name}' was preloaded at {self.origin} by the process that this one was forked from; preload "
                "it again in this process"
            )


Held = tuple[tuple[Borrow, bool], ...]
"""The borrows whose handles a launch was given, and whether it writes each."""


class BorrowTable:
    """All borrows of this process. Any thread may use it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._locks = HostLocks()
        self._abandoned: deque[Callable[[], None]] = deque()
        self.live: tuple[Borrow, ...] = ()
        """Replaced whole, never changed in place: read without the lock, to see that there is nothing to ask."""
        self.version = 0
        """Changes with every borrow and release: what a launch found out about its arrays holds as long as it does not."""

    # Borrowing

    def take(self, borrow: Borrow, given: Any) -> None:
        """Enter a borrow, and lock its array against writes by the host. ``given``: the object that the user passed.

        Raises BorrowError, with the line of the first borrow, where the two may not be at once.
        """
        doing = f"{borrow.verb}({borrow.name})"
        with self._changed:
            while True:
                other = self._excluding(borrow.array, borrow.mutable)
                if other is None:
                    break
                if not other.leaving:
                    purpose = "writing" if other.mutable else "reading"
                    raise BorrowError(
                        f"{doing} at {borrow.origin}: it shares elements with '{other.name}', which is preloaded for {purpose} "
                        f"since {other.origin} ({other.verb}). Release that preload first, or use its handle"
                    )
                self._changed.wait()
            borrow.chain = self._locks.lock(borrow.array)
            if isinstance(given, np.ndarray):  # the user's own object, where the borrow's is a view of what that is a view of
                borrow.chain = [*self._locks.lock(given), *borrow.chain]
            self.live = (*self.live, borrow)
            self.version += 1

    def abandon(self, release: Callable[[], None]) -> None:
        """Have a borrow that nobody will release any more released at the next chance. May be called anywhere."""
        self._abandoned.append(release)

    def run_abandoned(self) -> None:
        """Release what was abandoned."""
        while self._abandoned:
            self._abandoned.popleft()()

    def retire(self, borrow: Borrow, where: Origin) -> bool:
        """Begin a release: no launch may start on the handle, and those under way are waited for.

        False where another has released it, which is then done.
        """
        with self._changed:
            if borrow.released is not None:
                while borrow.leaving:
                    self._changed.wait()
                return False
            borrow.released = where
            borrow.leaving = True
            self.version += 1
            try:
                while borrow.users:
                    self._changed.wait()
            except BaseException:  # interrupted: nothing was given back yet
                borrow.released, borrow.leaving = None, False
                raise
            return True

    def drop(self, borrow: Borrow) -> None:
        """End a borrow: the host may write its array again."""
        with self._changed:
            self._locks.unlock(borrow.chain)
            # Launches that may be repeated remember their borrows, and are not to keep arrays alive.
            borrow.chain, borrow.entry, borrow.watch = [], None, None
            borrow.array = borrow.working = _NOTHING
            borrow.leaving = False
            self.live = tuple(one for one in self.live if one is not borrow)
            self.version += 1
            self._changed.notify_all()

    # Rules for arrays that are used otherwise than by a handle

    def host_writable(self, array: Array) -> bool:
        """Whether an array is one of the host's and writable, but for the locks of preloads."""
        if not isinstance(array, np.ndarray) or not self.live:
            return isinstance(array, np.ndarray) and bool(array.flags.writeable)
        with self._changed:
            return self._locks.writable(array)

    def check_host_use(self, array: np.ndarray, written: bool, doing: str, name: str, remedy: str) -> None:
        """Raise BorrowError where an array itself is used in a way that a preload of its elements forbids."""
        if not self.live:
            return
        with self._changed:
            while True:
                other = self._excluding(array, written)
                if other is None:
                    return
                if not other.leaving:
                    break
                self._changed.wait()
        if other.mutable:
            fault = f"is preloaded for writing since {other.origin}, so the host's copy may be out of date"
        else:
            fault = f"is preloaded for reading since {other.origin}, and would be written"
            remedy = f"Preload it with preload_mut, or release the handle of '{other.name}' first"
        raise BorrowError(f"{doing}: {name} shares elements with '{other.name}', which {fault}. {remedy}")

    def _excluding(self, array: np.ndarray, written: bool) -> Borrow | None:
        """A borrow that a use of an array may not be beside. One that is being released is waited for."""
        for borrow in self.live:
            if (written or borrow.mutable) and borrow.overlaps(array):
                return borrow
        return None

    # Launches on handles

    def begin(self, held: Held, kernel: str) -> None:
        """Count a launch on handles as under way, waiting for other threads' launches that it may not run beside.

        All of them at once, so that waiting cannot lock up. Raises BorrowError where a handle was released.
        """
        thread = threading.get_ident()
        with self._changed:
            while True:
                busy = False
                for borrow, write in held:
                    if borrow.released is not None or borrow.inherited:
                        borrow.check_usable(f"launching {kernel}")
                    if borrow.users:
                        busy = busy or any(other != thread and (write or writes) for other, writes in borrow.users)
                if not busy:
                    break
                self._changed.wait()
            for borrow, write in held:
                borrow.users.append((thread, write))

    def end(self, held: Held, ok: bool) -> None:
        """The launch has ended. ``ok``: without an error, so that what it wrote is to be copied back."""
        thread = threading.get_ident()
        with self._changed:
            for borrow, write in held:
                borrow.users.remove((thread, write))
                if write and ok:
                    borrow.written = True
                    if borrow.entry is not None:
                        borrow.entry.dirty = True
            self._changed.notify_all()

    def after_fork(self) -> None:
        """In a child: the parent's threads are gone, with the locks that they held and the launches that they ran."""
        self._changed = threading.Condition()
        for borrow in self.live:
            borrow.users.clear()
            borrow.leaving = False
            borrow.inherited = True


BORROWS = BorrowTable()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=BORROWS.after_fork)


def held_by(uses: Sequence[ArrayUse]) -> Held:
    """What a launch holds while it runs."""
    return tuple([(use.borrow, use.written) for use in uses if use.borrow is not None])


def check_borrows(kernel: str, uses: Sequence[ArrayUse]) -> None:
    """Raise BorrowError where a launch uses an array, or a handle, against the rules of the preload that holds it."""
    if not BORROWS.live:
        return
    BORROWS.run_abandoned()
    for use in uses:
        if use.borrow is None:
            if isinstance(use.array, np.ndarray):
                remedy = "Pass the handle instead, or release it first"
                BORROWS.check_host_use(use.array, use.written, f"launching {kernel}", f"argument '{use.name}'", remedy)
        elif use.written and not use.borrow.mutable:
            raise BorrowError(
                f"launching {kernel}: it writes argument '{use.name}', the handle of '{use.borrow.name}', which is preloaded for "
                f"reading since {use.borrow.origin}. Preload it with preload_mut"
            )
