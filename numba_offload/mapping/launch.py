"""The mapping of one launch: argument arrays over to the device, results back.

The caller has checked the arrays (``check_array``, ``check_writable``, ``check_aliases``) and refused device
arrays that its target cannot reach.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numba_offload.diagnostics.launch_log import log_buffers, log_table
from numba_offload.diagnostics.transfer_guard import check_launch
from numba_offload.mapping.arrays import DeviceArray
from numba_offload.mapping.layout import address, layout_of
from numba_offload.mapping.plan import ArrayUse, BufferPlan, MappedArray, plan_launch
from numba_offload.mapping.present import Claim, Part
from numba_offload.mapping.state import DeviceState
from numba_offload.mapping.transfers import Transfers

__all__ = ["ArrayUse", "LaunchMapping", "MappedArray"]


class LaunchMapping:
    """Arrays mapped for one launch, from construction to ``finish``.

    ``views`` says where the kernel finds each array, in the order of ``uses``. On unified memory these are
    the host's own addresses, and nothing moves. Arguments of map "none" and arrays without elements have
    address 0 on a discrete device. Raises ``DeviceMemoryError`` or ``TargetError`` where a buffer or a copy
    fails; then nothing stays mapped.
    """

    __slots__ = ("_launch", "_uses", "views")

    def __init__(
        self, device: DeviceState, uses: Sequence[ArrayUse], stream: Any = None, kernel: str = ""
    ) -> None:
        self._uses = uses  # keeps the arrays alive while the kernel runs
        self._launch: _DiscreteLaunch | None = None
        self.views: list[MappedArray]
        if device.memory.unified:
            self.views = [_in_place(use) for use in uses]
        else:
            self._launch = _DiscreteLaunch(
                device, uses, Transfers(device.memory, stream, kernel, device.name)
            )
            self.views = self._launch.views

    def finish(self, ok: bool) -> None:
        """End the launch, after the device's work on it: copy back what it wrote if ``ok``, and free.

        ``ok`` says that it ran without error. After ``finish(False)``, and where a copy back fails, no array
        of the host has changed. A second call does nothing.
        """
        launch, self._launch = self._launch, None
        if launch is not None:
            launch.finish(ok)

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

    __slots__ = ("_buffers", "_claim", "_device", "_transfers", "views")

    def __init__(self, device: DeviceState, uses: Sequence[ArrayUse], transfers: Transfers) -> None:
        self._device = device
        self._transfers = transfers
        self._buffers: list[tuple[BufferPlan, int]] = []
        self._claim: Claim | None = None
        views: list[MappedArray | None] = []
        parts: list[Part] = []
        for use in uses:
            if isinstance(use.array, DeviceArray):
                views.append(_in_place(use))
                continue
            layout = layout_of(use.array)
            if use.map == "none" or layout.begin == layout.end:
                views.append(MappedArray(0, layout.strides))
            else:
                views.append(None)  # follows with the parts
                parts.append(Part(use, layout))
        try:
            placed = iter(self._map(parts, transfers.kernel or "the kernel"))
        except BaseException:
            log_table(device, transfers.kernel, ok=False)
            self.release()
            raise
        self.views = [next(placed) if view is None else view for view in views]

    def finish(self, ok: bool) -> None:
        """Copy back if ``ok``, and release everything whatever happens."""
        try:
            if ok:
                self._transfers.download([buffer for buffer in self._buffers if buffer[0].download])
        except BaseException:
            self.release()
            raise
        self.release(ok)

    def release(self, ok: bool = False) -> None:
        """Give back buffers and claim."""
        buffers, self._buffers = self._buffers, []
        claim, self._claim = self._claim, None
        log_buffers("unmapped", buffers, self._transfers.kernel)
        try:
            for _, address_ in buffers:
                self._device.pool.free(address_)
        finally:
            if claim is not None:
                self._device.present.close(claim, ok, self._transfers)

    def _map(self, parts: list[Part], kernel: str) -> list[MappedArray]:
        if not parts:
            return []
        self._claim = claim = self._device.present.open(parts, kernel)
        plan = plan_launch([part for part, entry in zip(parts, claim.entries, strict=True) if entry is None])
        check_launch(plan.buffers, kernel, self._device.name)
        for buffer in plan.buffers:
            self._buffers.append((buffer, self._device.pool.allocate(buffer.nbytes, buffer.label)))
        log_buffers("mapped", self._buffers, kernel)
        for buffer, device_address in self._buffers:
            if buffer.upload:
                self._transfers.upload(buffer, device_address)
        own = iter(plan.placements)
        views: list[MappedArray] = []
        for part, entry in zip(parts, claim.entries, strict=True):
            if entry is not None:
                view = entry.place(part.layout)
                assert view is not None
            else:
                index, place = next(own)
                view = MappedArray(self._buffers[index][1] + place.pointer, place.strides)
            views.append(view)
        return views

    def __del__(self) -> None:
        # Dropped unfinished, as by an error on the caller's side. A finalizer may run with any lock held, so
        # it only leaves the launch to be released by the next one.
        if getattr(self, "_claim", None) is not None:
            self._device.present.abandon(self)
