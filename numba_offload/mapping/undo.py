"""Taking residents back to before a launch that failed.

Where arrays are moved at every launch, a failed launch leaves the host's arrays as they were. Residents may be the only copy
of what earlier launches computed, and a launch that fails has written some of its elements. To copy them aside before each
launch that can fail would cost as much as a short kernel. So that is done once in a while, and launches since then are noted:
after a failure the copies are put back and the launches repeated. What cannot be taken back is lost, and must not reach the
host as if nothing had been.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from numba_offload.errors import TargetError

if TYPE_CHECKING:
    from numba_offload.mapping.residency import Residency, Resident

_MOST_NOTED = 64
"""Launches repeated at most; copies aside are made once in so many."""


class Undo:
    """The checkpoint of one residency. Nothing is kept, and nothing costs anything, before a launch that can fail."""

    def __init__(self, residency: Residency) -> None:
        self._residency = residency
        self._epoch = -1
        self._before: dict[int, tuple[Resident, int | None]] = {}
        """What was written since: where its content of then is; None: on the host."""
        self._noted: list[Callable[[], Any]] = []
        self._stale = False
        self._open = False
        """Of the last launch it is not known yet how it ended."""

    @property
    def active(self) -> bool:
        """Whether launches are being noted."""
        return self._epoch >= 0

    def before(self, written: Iterable[Resident], may_fail: bool) -> None:
        """A launch is going to write these. Call it with the residents marked as used."""
        if self.active and (not self.holds or self._open or len(self._noted) >= _MOST_NOTED):
            self.drop()
        if may_fail and not self.active:
            self._epoch = self._residency.epoch
        if not self.active:
            return
        for resident in written:
            if id(resident) not in self._before:
                self._before[id(resident)] = resident, self._saved(resident)
        self._open = True

    @property
    def holds(self) -> bool:
        """Whether what was there at the checkpoint is there still."""
        return self._epoch == self._residency.epoch and not self._stale

    def _saved(self, resident: Resident) -> int | None:
        if resident.dirty is None:
            return None
        device, nbytes, address = self._residency.device, resident.plan.nbytes, None
        try:
            address = device.pool.allocate(nbytes, resident.plan.label, "a copy aside")
            device.memory.copy_within(address, resident.address, nbytes)
            return address
        except BaseException as error:
            if address is not None:
                device.pool.free_behind(address)
            if not isinstance(error, Exception):
                raise
        # No room, or no way to copy: the host is as good a place.
        self._residency.bring_back_one(resident)
        return None

    def added(self, residents: Iterable[Resident]) -> None:
        """Residents that a launch has made, of what the host holds."""
        if self.active:
            for resident in residents:
                self._before[id(resident)] = resident, None

    def note(self, again: Callable[[], Any]) -> None:
        """A launch has succeeded. ``again`` repeats it."""
        if self.active:
            self._noted.append(again)
            self._open = False

    def roll_back(self, written: Sequence[Resident], kernel: str) -> None:
        """A launch that was to write these has failed: residents are as they were before it.

        Raises TargetError where they cannot be. Then those are gone, and the host's arrays are as they last came back.
        """
        doubtful = written
        try:
            if not self.holds:
                raise TargetError("what it takes for that was used by another thread meanwhile")
            doubtful = [resident for resident, _ in self._before.values()]
            self._restore()
        except BaseException as error:
            self._residency.lose(doubtful, kernel, error)
            if not isinstance(error, Exception):
                raise
        finally:
            self.drop()

    def _restore(self) -> None:
        memory = self._residency.device.memory
        for resident, address in self._before.values():
            if address is not None:
                memory.copy_within(resident.address, address, resident.plan.nbytes)
            elif resident.owners():
                self._residency.copies().upload(resident.plan, resident.address)
        for again in self._noted:
            again()

    def came_back(self, resident: Resident) -> None:
        """The host's copy of a resident is another from now on, or is going to be."""
        if id(resident) in self._before:
            self._stale = True

    def drop(self) -> None:
        """Forget the checkpoint: what has been computed counts."""
        for _, address in self._before.values():
            if address is not None:
                self._residency.device.pool.free_behind(address)
        self._before.clear()
        self._noted.clear()
        self._epoch = -1
        self._stale = self._open = False
