"""The present table: which host memory is on a device, and who is using it.

After libomptarget: entries are found by host byte range; a range inside an entry raises its count and copies
nothing; the last release copies back what a kernel wrote, and frees.

Two kinds of users stand in the table. *Held* entries (a preload's) live between launches; the holder keeps
the host array from being written, so every launch may share them. The buffers of a launch are its own:
another thread's launch makes its own copy, because the host array may have changed since the first one read
it. What the table keeps of a launch is its *claim* on host elements. A launch that conflicts with another
thread's claim (one of them writes an element that both use) waits until that claim is closed.

*Residents* are what a host function's launches leave on the device for its next launch (see ``residency.py``). Another
function's launch or preload that would conflict with one makes it go: it is copied back and forgotten.

A launch makes all its claims at once and waits only where its thread has none open, so waiting cannot lock
up.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from numba_offload.diagnostics.launch_log import log_buffers, log_change, log_existing
from numba_offload.diagnostics.transfer_guard import HostUse, check_transfer
from numba_offload.errors import AliasError, BorrowError
from numba_offload.mapping.alias import shares_elements
from numba_offload.mapping.layout import Layout, layout_of
from numba_offload.mapping.plan import ArrayUse, BufferPlan, MappedArray, plan_launch
from numba_offload.mapping.pool import BufferPool
from numba_offload.mapping.residency import Residency, Resident, bring_back_all
from numba_offload.mapping.transfers import Transfers
from numba_offload.origin import user_line

# How often a waiting launch looks for claims whose owner was dropped without being finished.
_LOOK_AGAIN_SECONDS = 0.05


class Part(NamedTuple):
    """Host elements that a launch uses."""

    use: ArrayUse
    layout: Layout


class Entry:
    """Host memory held on the device. ``count``: its users; ``dirty``: an error-free launch wrote it."""

    __slots__ = ("address", "busy", "count", "dirty", "plan", "use")

    def __init__(self, use: ArrayUse, plan: BufferPlan | None) -> None:
        self.use = use
        self.plan = plan  # None: the array has no elements
        self.address = 0
        self.count = 1
        self.dirty = False
        self.busy = True  # being filled or copied back: nobody may use it now

    @property
    def writable(self) -> bool:
        return self.use.written

    def place(self, layout: Layout) -> MappedArray | None:
        """Where a host array lies on the device, or None where it is not inside this entry."""
        place = self.plan.place(layout) if self.plan is not None else None
        return None if place is None else MappedArray(self.address + place.pointer, place.strides)

    def overlaps(self, layout: Layout) -> bool:
        """Whether the byte ranges meet."""
        return self.plan is not None and layout.begin < self.plan.end and self.plan.begin < layout.end


class Claim:
    """What one open launch uses. ``entries``: each part's held entry, or None: it has its own buffer."""

    __slots__ = ("entries", "parts", "thread")

    def __init__(self, parts: Sequence[Part], entries: list[Entry | None], thread: int) -> None:
        self.parts = parts
        self.entries = entries
        self.thread = thread


class Releasable(Protocol):
    """An open launch that was dropped."""

    def release(self) -> None: ...


class PresentTable:
    """The present table of one device. Any thread may use it."""

    def __init__(self, pool: BufferPool, target: str = "") -> None:
        self._pool = pool
        self._target = target
        self._changed = threading.Condition()
        self._entries: list[Entry] = []
        self._claims: list[Claim] = []
        self._residents: list[Resident] = []
        self._abandoned: deque[Releasable] = deque()

    @property
    def entries(self) -> tuple[Entry, ...]:
        """What is held now."""
        with self._changed:
            return tuple(self._entries)

    def overlapping(self, array: Any) -> tuple[Entry, ...]:
        """Held entries whose byte range meets that of a host array."""
        layout = layout_of(array)
        with self._changed:
            return tuple(entry for entry in self._entries if entry.overlaps(layout))

    # Launches

    def open(
        self, parts: Sequence[Part], kernel: str = "the kernel", residency: Residency | None = None
    ) -> Claim:
        """Claim host elements for a launch, waiting for conflicting launches of other threads.

        ``residency``: the launch is one of a host function that has these residents.

        Raises ``BorrowError`` for a write to what is held for reading, and ``AliasError`` where an array
        overlaps a held one in part and one of them is written, or conflicts with a launch that this thread
        has open.
        """
        thread = threading.get_ident()
        with self._changed:
            while True:
                self._release_abandoned()
                entries = [self._held(part, kernel) for part in parts]
                if self._must_wait(parts, entries, thread, kernel):
                    self._changed.wait(_LOOK_AGAIN_SECONDS)
                elif not self._clear_the_way(parts, entries, residency, kernel):
                    break
            for part, entry in zip(parts, entries, strict=True):
                if entry is not None:
                    entry.count += 1
                    log_existing(part.use.name, entry, kernel)
            claim = Claim(parts, entries, thread)
            self._claims.append(claim)
            return claim

    def close(self, claim: Claim, ok: bool, transfers: Transfers) -> None:
        """End a launch. ``ok``: it ran without error, so held entries that it wrote are to be copied back."""
        with self._changed:
            for part, entry in zip(claim.parts, claim.entries, strict=True):
                if entry is not None and ok and part.use.written:
                    entry.dirty = True
                    log_change("written", entry)
            self._claims.remove(claim)
            self._changed.notify_all()
        for entry in claim.entries:
            if entry is not None:
                self.release(entry, transfers)

    def abandon(self, launch: Releasable) -> None:
        """Release a launch that was dropped unfinished, at the next chance. May be called anywhere."""
        self._abandoned.append(launch)

    # Entries between launches

    def hold(self, use: ArrayUse, stream: Any = None) -> Entry:
        """Keep an array on the device until ``release``; a part of an array held for reading shares it.

        ``use.map`` is "to" for reading or "tofrom" for writing, which excludes every other holder.
        """
        layout = layout_of(use.array)
        part = Part(use, layout)
        thread = threading.get_ident()
        with self._changed:
            while True:
                self._release_abandoned()
                shared = self._shared(part)
                if self._must_wait((part,), (shared,), thread, f"preloading '{use.name}'"):
                    self._changed.wait(_LOOK_AGAIN_SECONDS)
                elif not self._clear_the_way((part,), (shared,), None):
                    break
            if shared is not None:
                shared.count += 1
                log_existing(use.name, shared, "preload")
                return shared
            buffers = plan_launch([(use, layout)]).buffers
            entry = Entry(use, buffers[0] if buffers else None)
            if entry.plan is None:
                entry.busy = False
                return entry
            self._entries.append(entry)
        try:
            check_transfer("h2d", entry.plan.label, entry.plan.nbytes, "", self._target)
            entry.address = self._pool.allocate(entry.plan.nbytes, entry.plan.label, "preloaded", stream)
            try:
                Transfers(self._pool.memory, stream, "", self._target).upload(entry.plan, entry.address)
            except BaseException:
                self._pool.free(entry.address)
                raise
        except BaseException:
            self._forget(entry)
            raise
        log_change("added", entry)
        with self._changed:
            entry.busy = False
            self._changed.notify_all()
        return entry

    def release(self, entry: Entry, transfers: Transfers | None = None) -> None:
        """Give up one use of an entry. The last one copies back, if a launch wrote to it, and frees."""
        with self._changed:
            entry.count -= 1
            if entry.count or entry.plan is None:
                log_change("count", entry)
                return
            entry.busy = True
        try:
            if entry.dirty:
                copies = transfers or Transfers(self._pool.memory, None, "", self._target)
                copies.download([(entry.plan, entry.address)])
        finally:
            self._pool.free(entry.address)
            self._forget(entry)

    # Residents

    @property
    def residents(self) -> tuple[Resident, ...]:
        """What host functions keep here now."""
        with self._changed:
            self._bury()
            return tuple(self._residents)

    def begin_copy(self, resident: Resident) -> bool:
        """Make a resident busy, if it is there and not so already."""
        with self._changed:
            if resident.busy or resident.dead or resident not in self._residents:
                return False
            resident.early = self._make_busy([resident])
            return resident.early

    def end_copy(self, resident: Resident, forget: bool) -> None:
        """A resident is busy no more; ``forget`` it if its copy has not arrived."""
        with self._changed:
            self._make_idle([resident])
            if forget:
                self._drop(resident, used=False)
            self._changed.notify_all()

    def keep_from_others(self, residency: Residency) -> None:
        """Set ``launching``, which keeps other threads from these residents, once nobody is copying any of them.

        Copies that nobody waits for yet go on: they are made for the thread that launches.
        """
        with self._changed:
            while any(r.busy and not r.early for r in self._residents if r.owner is residency):
                self._changed.wait(_LOOK_AGAIN_SECONDS)
            residency.launching = True

    def add_resident(self, resident: Resident) -> None:
        """Keep a buffer of the pool that a launch has left."""
        with self._changed:
            self._residents.append(resident)

    def settle(self, wanted: Callable[[Resident], bool], forget: bool, residency: Residency) -> None:
        """Bring residents of a host function back for itself, and ``forget`` them. Waits for what others do with them.

        Raises what a copy back failed with, or TransferError where the transfer guard refuses one, before any is made; what
        was not copied stays.
        """
        with self._changed:
            while True:
                self._bury()
                chosen = [r for r in self._residents if wanted(r)]
                if not any(r.busy for r in chosen) and self._settle(chosen, forget, residency, residency.check_back):
                    return
                self._changed.wait(_LOOK_AGAIN_SECONDS)

    def forget(self, wanted: Callable[[Resident], bool]) -> list[Resident]:
        """Drop residents as they are; returns those that had something for the host."""
        with self._changed:
            while any(r.busy for r in self._residents if wanted(r)):
                self._changed.wait(_LOOK_AGAIN_SECONDS)
            chosen = [r for r in self._residents if wanted(r)]
            for resident in chosen:
                self._drop(resident)
            self._changed.notify_all()
        return [r for r in chosen if r.dirty is not None and not r.dead]

    def _settle(
        self,
        residents: Sequence[Resident],
        forget: bool,
        residency: Residency | None,
        check: Callable[[Resident], None],
    ) -> bool:
        """With the lock held, which is let go while copies are made. False: some are being launched with."""
        if not residents:
            return True
        if not self._make_busy(residents):
            return False
        self._changed.release()
        try:
            for resident in residents:
                if resident.dirty is not None and not resident.dead:
                    check(resident)
            bring_back_all(residents, None, residency)
        finally:
            self._changed.acquire()
            self._make_idle(residents)
            for resident in residents:
                # One that another thread's launch reads now is clean, which is enough.
                if forget and not resident.users and (resident.dirty is None or resident.dead):
                    self._drop(resident)
            self._changed.notify_all()
        return True

    def _make_busy(self, residents: Sequence[Resident]) -> bool:
        """Mark residents as being copied, but for those whose function launches now; returns whether all could be."""
        for resident in residents:
            resident.busy = True
            resident.owner.busy += 1
        # Asked after busy was set: a launch sets this first, and looks at busy then. So one of the two sees the other.
        if any(resident.owner.launching for resident in residents):
            self._make_idle(residents)
            return False
        return True

    def _make_idle(self, residents: Sequence[Resident]) -> None:
        for resident in residents:
            resident.busy = resident.early = False
            resident.owner.busy -= 1

    def _clear_the_way(
        self,
        parts: Sequence[Part],
        entries: Sequence[Entry | None],
        residency: Residency | None,
        kernel: str = "",
    ) -> bool:
        """Let residents go that a launch must not pass over; returns whether there were any."""
        self._bury()
        if not self._residents:
            return False
        others = [r for r in self._residents if _in_the_way(r, parts, entries, residency)]

        def check(resident: Resident) -> None:
            if residency is not None:
                residency.check_back(resident)
                return
            part, _ = resident.dirty_part()
            use = HostUse(f"launching {kernel}", user_line()) if kernel else None
            check_transfer("d2h", resident.label, part.nbytes, resident.writer if kernel else "", self._target, use)

        if not self._settle(others, True, residency, check):
            self._changed.wait(_LOOK_AGAIN_SECONDS)
        return bool(others)

    def _bury(self) -> None:
        """Drop residents whose host memory is gone."""
        for resident in [r for r in self._residents if r.dead and not (r.busy or r.users or r.owner.launching)]:
            self._drop(resident)

    def _drop(self, resident: Resident, used: bool = True) -> None:
        self._residents.remove(resident)
        # What no launch has been given has been found by none.
        resident.owner.epoch += used
        log_buffers("unmapped", [(resident.plan, resident.address)], resident.writer)
        # Launches need not have been waited for.
        self._pool.free_behind(resident.address)

    # Questions asked with the lock held

    def _held(self, part: Part, kernel: str) -> Entry | None:
        """The held entry that a launch's array lies in."""
        use, layout = part
        for entry in self._entries:
            if entry.busy or not entry.overlaps(layout):
                continue
            if entry.place(layout) is not None:
                if use.written and not entry.writable:
                    raise BorrowError(
                        f"{kernel} writes argument '{use.name}', which is preloaded for reading as "
                        f"'{entry.use.name}'. Preload it with preload_mut, or release the preload first"
                    )
                return entry
            if (use.written or entry.writable) and shares_elements(use.array, entry.use.array) is not False:
                raise AliasError(
                    f"{kernel} uses argument '{use.name}', of which only a part is preloaded as "
                    f"'{entry.use.name}', and one of the two is written. Preload the whole array, or release "
                    "the preload first"
                )
        return None

    def _shared(self, part: Part) -> Entry | None:
        """The entry that another holder of this array shares."""
        use, layout = part
        for entry in self._entries:
            if entry.busy or not entry.overlaps(layout):
                continue
            if not use.written and not entry.writable:
                if entry.place(layout) is not None:
                    return entry
            elif shares_elements(use.array, entry.use.array) is not False:
                raise BorrowError(
                    f"preloading '{use.name}' for {'writing' if use.written else 'reading'}: it shares "
                    f"memory with '{entry.use.name}', which is preloaded for "
                    f"{'writing' if entry.writable else 'reading'}. Release that preload first"
                )
        return None

    def _must_wait(
        self, parts: Sequence[Part], entries: Sequence[Entry | None], thread: int, doing: str
    ) -> bool:
        # Entries that are being filled or copied back wait for nobody, so waiting for one is always safe.
        busy = any(entry.busy and entry.overlaps(part.layout) for entry in self._entries for part in parts) or any(
            resident.busy and resident.meets(part.layout.begin, part.layout.end)
            for resident in self._residents
            for part in parts
        )
        wait = own_open = False
        for claim in self._claims:
            own_open = own_open or claim.thread == thread
            name = _conflict(parts, entries, claim, thread)
            if name is None:
                continue
            if claim.thread == thread:
                raise AliasError(
                    f"{doing}: argument '{name}' conflicts with a launch of this thread that has not ended. "
                    "Synchronize with that launch first"
                )
            wait = True
        if wait and own_open:
            raise AliasError(
                f"{doing}: its arrays are in use by another thread, and this thread has a launch that has "
                "not ended. Synchronize with that launch first"
            )
        return wait or busy

    def _release_abandoned(self) -> None:
        while self._abandoned:
            self._abandoned.popleft().release()

    def _forget(self, entry: Entry) -> None:
        with self._changed:
            self._entries.remove(entry)
            self._changed.notify_all()
        log_change("removed", entry)


def _in_the_way(
    resident: Resident, parts: Sequence[Part], entries: Sequence[Entry | None], residency: Residency | None
) -> bool:
    """Whether a launch cannot leave a resident as it is."""
    for part, entry in zip(parts, entries, strict=True):
        layout = part.layout
        if entry is not None or not resident.meets(layout.begin, layout.end) or not resident.shares(part.use.array):
            continue
        if resident.owner is residency:
            if resident.place(layout) is None:
                return True
        elif resident.dirty is not None or part.use.written:
            return True
    return False


def _conflict(
    parts: Sequence[Part], entries: Sequence[Entry | None], claim: Claim, thread: int
) -> str | None:
    """Name of an argument of which an open claim uses the same elements, one of the two writing."""
    for part, entry in zip(parts, entries, strict=True):
        for other, other_entry in zip(claim.parts, claim.entries, strict=True):
            if not (part.use.written or other.use.written):
                continue
            if part.layout.begin >= other.layout.end or other.layout.begin >= part.layout.end:
                continue
            if claim.thread == thread and entry is not None and entry is other_entry:
                continue  # one thread's launches on a held array are ordered by their stream
            if shares_elements(part.use.array, other.use.array) is not False:
                return part.use.name
    return None
