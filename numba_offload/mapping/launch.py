"""The mapping of one launch: argument arrays over to the device, results back.

The caller has checked the arrays (``check_array``, ``check_writable``, ``check_aliases``) and refused device
arrays that its target cannot reach.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from numba_offload.diagnostics.launch_log import log_buffers, log_table
from numba_offload.diagnostics.transfer_guard import check_launch
from numba_offload.mapping.arrays import DeviceArray
from numba_offload.mapping.borrow import BORROWS, held_by
from numba_offload.mapping.layout import Layout, address, layout_of
from numba_offload.mapping.plan import ArrayUse, BufferPlan, LaunchPlan, MappedArray, plan_launch
from numba_offload.mapping.present import Claim, Entry, Part
from numba_offload.mapping.residency import Residency, Resident
from numba_offload.mapping.state import DeviceState
from numba_offload.mapping.transfers import Transfers
from numba_offload.targets.base import AskedCopies

__all__ = ["ArrayUse", "LaunchMapping", "MappedArray", "Planned"]


class Planned(NamedTuple):
    """What a launch found out about its arrays, for another launch with the same arrays, unchanged."""

    layouts: tuple[Layout, ...]
    plan: LaunchPlan


class LaunchMapping:
    """Arrays mapped for one launch, from construction to ``finish``.

    ``views`` says where the kernel finds each array, in the order of ``uses``. On unified memory these are
    the host's own addresses, and nothing moves. Arguments of map "none" and arrays without elements have
    address 0 on a discrete device. With a ``residency`` its residents are used, and what the launch used stays
    there; ``may_fail`` says whether a thread can report an error. ``planned`` is that of an earlier launch with
    the same arrays. Raises ``DeviceMemoryError`` or ``TargetError`` where a buffer or a copy fails; then nothing stays
    mapped.
    """

    __slots__ = ("_held", "_launch", "_uses", "planned", "resident_writes", "views")

    def __init__(
        self,
        device: DeviceState,
        uses: Sequence[ArrayUse],
        stream: Any = None,
        kernel: str = "",
        residency: Residency | None = None,
        may_fail: bool = True,
        planned: Planned | None = None,
    ) -> None:
        self._uses = uses  # keeps the arrays alive while the kernel runs
        self._launch: _DiscreteLaunch | None = None
        self.resident_writes: Sequence[tuple[Resident, Layout]] | None = None
        """What an ended launch wrote of what stays on the device; None where not all that it used stays."""
        self.planned: Planned | None = None
        """None where launches with these arrays are not all alike, since something of them was on the device."""
        self.views: list[MappedArray]
        self._held = held = held_by(uses)
        if held:
            BORROWS.begin(held, kernel)
        try:
            if device.memory.unified:
                self.views = [_in_place(use) for use in uses]
            else:
                transfers = Transfers(device.memory, stream, kernel, device.name)
                if residency is None:
                    self._launch = _DiscreteLaunch(device, uses, transfers, planned)
                    self.planned = self._launch.planned
                else:
                    self._launch = _ResidentLaunch(device, uses, transfers, residency, may_fail)
                self.views = self._launch.views
        except BaseException:
            self._end(False)
            raise

    def ask(self) -> None:
        """Have results come back as soon as the kernel ends, which has been queued: ``finish`` will be quicker."""
        if self._launch is not None:
            self._launch.ask()

    def finish(self, ok: bool) -> None:
        """End the launch, after the device's work on it: copy back what it wrote if ``ok``, and free.

        ``ok`` says that it ran without error. After ``finish(False)``, and where a copy back fails, no array
        of the host has changed, with the one exception of ``Transfers.download``. A second call does nothing.
        """
        launch, self._launch = self._launch, None
        try:
            if launch is not None:
                launch.finish(ok)
        finally:
            self._end(ok)
        if ok and isinstance(launch, _ResidentLaunch) and launch.all_stays:
            self.resident_writes = launch.writes

    def _end(self, ok: bool) -> None:
        held, self._held = self._held, ()
        if held:
            BORROWS.end(held, ok)

    def __enter__(self) -> LaunchMapping:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.finish(kind is None)


def _in_place(use: ArrayUse) -> MappedArray:
    array = use.array
    if isinstance(array, DeviceArray):
        return MappedArray(array.pointer, array.strides)
    return MappedArray(use.address if use.address is not None else address(array), array.strides)


class _DiscreteLaunch:
    """A launch on memory of its own: claim, allocate, upload; then download, free, close."""

    __slots__ = ("_asked", "_buffers", "_claim", "_device", "_transfers", "planned", "views")

    def __init__(
        self, device: DeviceState, uses: Sequence[ArrayUse], transfers: Transfers, planned: Planned | None = None
    ) -> None:
        self.planned = planned
        self._asked: AskedCopies | None = None
        self._device = device
        self._transfers = transfers
        self._buffers: list[tuple[BufferPlan, int]] = []
        self._claim: Claim | None = None
        parts: list[Part] = []
        views: Sequence[MappedArray | None] = [None] * len(uses)
        if planned is not None:
            parts += map(Part, uses, planned.layouts)
        else:
            views = self._parts(uses, parts)
        try:
            placed = iter(self._map(parts, transfers.kernel or "the kernel"))
        except BaseException:
            log_table(device, transfers.kernel, ok=False)
            self.release()
            raise
        self.views = [next(placed) if view is None else view for view in views]
        if self.planned is not None and len(self.planned.layouts) < len(uses):
            self.planned = None  # not all of them were moved

    def _parts(self, uses: Sequence[ArrayUse], parts: list[Part]) -> Sequence[MappedArray | None]:
        """Note what there is to be mapped; gives the places of all else, and None for those."""
        views: list[MappedArray | None] = []
        for use in uses:
            if isinstance(use.array, DeviceArray):
                views.append(_in_place(use))
                continue
            if use.place is not None:
                views.append(use.place)  # preloaded: nothing moves, and the preload's own table orders its launches
                continue
            layout = layout_of(use.array)
            if use.map == "none" or layout.begin == layout.end:
                views.append(MappedArray(0, layout.strides))
            else:
                views.append(None)
                parts.append(Part(use, layout))
        return views

    def ask(self) -> None:
        """Have what is to be downloaded come."""
        self._asked = self._transfers.ask([buffer for buffer in self._buffers if buffer[0].download])

    def finish(self, ok: bool) -> None:
        """Copy back if ``ok``, and release everything whatever happens."""
        try:
            if ok:
                asked, self._asked = self._asked, None
                self._transfers.download([buffer for buffer in self._buffers if buffer[0].download], asked)
        except BaseException:
            self.release()
            raise
        self.release(ok)

    def release(self, ok: bool = False) -> None:
        """Give back buffers and claim."""
        asked, self._asked = self._asked, None
        if asked is not None:
            asked.drop()
        buffers, self._buffers = self._buffers, []
        claim, self._claim = self._claim, None
        log_buffers("unmapped", buffers, self._transfers.kernel)
        try:
            for _, address_ in buffers:
                if ok:
                    self._device.pool.free(address_)
                else:  # copies over may be under way
                    self._device.pool.free_behind(address_, self._transfers.stream)
        finally:
            if claim is not None:
                self._device.present.close(claim, ok, self._transfers)

    def _map(self, parts: list[Part], kernel: str) -> list[MappedArray]:
        if not parts:
            return []
        self._claim = claim = self._open(parts, kernel)
        holders = self._holders(parts, claim)
        missing = [part for part, holder in zip(parts, holders, strict=True) if holder is None]
        if self.planned is None or len(missing) < len(parts):
            self.planned = Planned(tuple(layout for _, layout in missing), plan_launch(missing))
        plan = self.planned.plan
        self._check(plan, kernel)
        owner, stream = f"kernel {kernel}" if self._transfers.kernel else kernel, self._transfers.stream
        for buffer in plan.buffers:
            self._buffers.append((buffer, self._allocate(buffer.nbytes, buffer.label, owner, stream)))
        log_buffers("mapped", self._buffers, kernel)
        uploaded = [item for item in self._buffers if item[0].upload]
        self._transfers.upload_all(uploaded)
        self._mapped(missing, plan, [buffer for buffer, _ in uploaded])
        own = iter(plan.placements)
        views: list[MappedArray] = []
        for part, holder in zip(parts, holders, strict=True):
            if holder is not None:
                view = holder.place(part.layout)
                assert view is not None
            else:
                index, place = next(own)
                view = MappedArray(self._buffers[index][1] + place.pointer, place.strides)
            views.append(view)
        return views

    # What a launch whose arrays stay does otherwise

    def _open(self, parts: list[Part], kernel: str) -> Claim:
        return self._device.present.open(parts, kernel)

    def _holders(self, parts: list[Part], claim: Claim) -> Sequence[Entry | Resident | None]:
        """What of the arrays is on the device already."""
        return claim.entries

    def _check(self, plan: LaunchPlan, kernel: str) -> None:
        """Ask the transfer guard for every copy that the launch will make."""
        check_launch(plan.buffers, kernel, self._device.name)

    def _allocate(self, nbytes: int, label: str, owner: str, stream: Any) -> int:
        return self._device.pool.allocate(nbytes, label, owner, stream)

    def _mapped(self, missing: list[Part], plan: LaunchPlan, uploaded: list[BufferPlan]) -> None:
        """All is where the kernel will find it."""

    def __del__(self) -> None:
        # Dropped unfinished, as by an error on the caller's side. A finalizer may run with any lock held, so
        # it only leaves the launch to be released by the next one.
        if getattr(self, "_claim", None) is not None:
            self._device.present.abandon(self)


class _ResidentLaunch(_DiscreteLaunch):
    """A launch of a host function whose arrays stay on the device until the host uses them."""

    __slots__ = ("_added", "_alone", "_may_fail", "_residency", "_used", "_written", "all_stays", "writes")

    def __init__(
        self,
        device: DeviceState,
        uses: Sequence[ArrayUse],
        transfers: Transfers,
        residency: Residency,
        may_fail: bool,
    ) -> None:
        self._residency = residency
        self._may_fail = may_fail
        self._used: list[Resident] = []
        self._written: list[tuple[Resident, Layout]] = []
        self._added: list[tuple[list[ArrayUse], list[Layout]]] = []
        self._alone = False
        """Other threads leave the residents alone until this launch has ended."""
        self.all_stays = False
        self.writes: list[tuple[Resident, Layout]] = []
        """After an error-free end: what of the residents it wrote."""
        super().__init__(device, uses, transfers)

    def _open(self, parts: list[Part], kernel: str) -> Claim:
        return self._device.present.open(parts, kernel, self._residency)

    def _holders(self, parts: list[Part], claim: Claim) -> Sequence[Entry | Resident | None]:
        residency = self._residency
        holders: list[Entry | Resident | None] = list(claim.entries)
        for position, (part, entry) in enumerate(zip(parts, claim.entries, strict=True)):
            resident = residency.find(part.layout) if entry is None else None
            if resident is None:
                continue
            holders[position] = resident
            resident.keep(part.use.array)
            if part.use.written:
                self._written.append((resident, part.layout))
        self._used = list({id(r): r for r in holders if isinstance(r, Resident)}.values())
        residency.begin_launch(self._used)
        return holders

    def _check(self, plan: LaunchPlan, kernel: str) -> None:
        for buffer in plan.buffers:
            if buffer.upload:
                self._residency.check_over(buffer, kernel)

    def _allocate(self, nbytes: int, label: str, owner: str, stream: Any) -> int:
        return self._residency.allocate(nbytes, label, owner, stream)

    def _mapped(self, missing: list[Part], plan: LaunchPlan, uploaded: list[BufferPlan]) -> None:
        self._added = [([], []) for _ in plan.buffers]
        for part, (index, _) in zip(missing, plan.placements, strict=True):
            self._added[index][0].append(part.use)
            if part.use.written:
                self._added[index][1].append(part.layout)
        for buffer in uploaded:
            self._residency.note("h2d", buffer)
        # After the last allocation, which may have made others go.
        self._alone = self._residency.begin_undoable([resident for resident, _ in self._written], self._may_fail)

    def finish(self, ok: bool) -> None:
        """Keep what the launch used, if ``ok``; else leave the residents as they were before it."""
        residency, kernel = self._residency, self._transfers.kernel
        try:
            if ok:
                self.writes = list(self._written)
                buffers, self._buffers = self._buffers, []
                for (plan, address_), (uses, written) in zip(buffers, self._added, strict=True):
                    resident = residency.add(uses, plan, address_)
                    self.writes += [(resident, layout) for layout in written]
                for resident, layout in self.writes:
                    resident.wrote(layout, kernel)
                residency.undo.added(resident for resident, _ in self.writes[len(self._written) :])
                claim = self._claim
                self.all_stays = claim is None or all(entry is None for entry in claim.entries)
            elif self._claim is not None:
                residency.launch_failed(self._written, kernel)
        finally:
            self.release(ok)

    def release(self, ok: bool = False) -> None:
        used, self._used = self._used, []
        self._residency.end_launch(used)
        if self._alone:
            self._alone = self._residency.launching = False
        super().release(ok)
