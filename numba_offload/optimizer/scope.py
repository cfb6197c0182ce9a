"""What one call of a host function keeps on devices, and the record of what it moved and why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from numba_offload.diagnostics.transfer_guard import HostUse, check_transfer, guards_launches
from numba_offload.mapping.arrays import DeviceArray
from numba_offload.mapping.early import bring_back_early, take_over_early
from numba_offload.mapping.launch import LaunchMapping
from numba_offload.mapping.layout import Layout, layout_of
from numba_offload.mapping.plan import ArrayUse
from numba_offload.mapping.residency import Moved, Residency, Resident
from numba_offload.optimizer.repeats import Repeat, Repeats
from numba_offload.optimizer.report import Report
from numba_offload.optimizer.sites import Site
from numba_offload.origin import user_frame
from numba_offload.relaunch import Relaunch
from numba_offload.targets.registry import TargetState, current_target

_REMEMBERED = 256
_ELSEWHERE = Site(0, "a launch or preload of another thread", -1)


@dataclass(frozen=True, slots=True)
class _Watched:
    """Bytes of an array that a launch is expected to take over, or that are being taken over (``resident``)."""

    begin: int
    end: int
    early: dict[int, bool]
    site: int
    resident: Resident | None


class Scope:
    """The residents of one call of a host function, on each device that its launches use.

    Functions that it calls, and whose transfers are optimised too, share it.
    """

    def __init__(self, limit: int | None = None) -> None:
        self.active = False
        """Whether anything is resident: if not, no use of the host's matters."""
        self.here: tuple[Report, int, Site] | None = None
        """Whose launch or use is being made: its function's report, the number of the site, the site."""
        self._limit = limit
        self._names: dict[str, str] = {}
        self._residencies: list[tuple[TargetState, Residency]] = []
        self._given_up: list[tuple[Resident, int, str]] = []
        """What was on a device, and the line and text of what made it go."""
        self._repeats = Repeats()
        self._watched: list[_Watched] = []
        self._certain = False
        """What needs the arrays now runs in any case: the transfer guard tells of their copies, and refuses none."""
        self._residency: Residency | None = None
        self._writes: Sequence[tuple[Resident, Layout]] | None = None

    # Uses by the host

    def read(self, array: np.ndarray) -> None:
        """The host is going to read an array's elements."""
        layout = layout_of(array)
        for _, residency in self._residencies:
            residency.bring_back(layout.begin, layout.end)

    def write(self, array: np.ndarray) -> None:
        """The host is going to write some of an array's elements."""
        layout = layout_of(array)
        self._remember(layout.begin, layout.end)
        self._unwatch(layout.begin, layout.end)
        for _, residency in self._residencies:
            residency.give_up(layout.begin, layout.end)
        self._look()

    def everything(self, certainly: bool = False) -> None:
        """Code that cannot be seen is going to run: it may read and write any array.

        ``certainly``: also after an exception, so that nothing may stay. What cannot be brought back is lost then.
        """
        self._remember(0, 1 << 64)
        self._unwatch(0, 1 << 64)
        if certainly:
            before, self._certain = self._certain, True
            try:
                self._for_all(partial(Residency.close, why="code that may use any array runs next"))
            finally:
                self._certain = before
        else:
            self._for_all(Residency.give_up_all)
        for resident, _, _ in self._given_up:
            resident.let_go()

    def close(self) -> None:
        """The host function ends. Raises what a copy back failed with, after all others were tried; nothing stays."""
        self._certain = True
        self._unwatch(0, 1 << 64)
        self._for_all(Residency.close)

    def _for_all(self, settle: Callable[[Residency], None]) -> None:
        failed: BaseException | None = None
        for _, residency in self._residencies:
            try:
                settle(residency)
            except BaseException as error:
                if failed is not None:
                    failed.add_note(f"and on {residency.device.name}: {error}")
                failed = failed or error
        self._look()
        if failed is not None:
            raise failed

    def _look(self) -> None:
        self.active = any(not residency.empty for _, residency in self._residencies)
        if not self.active:
            self._repeats.clear()

    # Copies that begin before they are waited for

    def bring_back_early(self, array: np.ndarray) -> None:
        """The host reads an array later, and no launch uses it before."""
        layout = layout_of(array)
        for _, residency in self._residencies:
            for resident in residency.dirty_in(layout.begin, layout.end):
                part, _ = resident.dirty_part()
                resident.told = True
                if bring_back_early(residency, resident):
                    self._moved(Moved("d2h", resident.label, part.nbytes, part.begin, part.end))
                else:
                    resident.told = False

    def take_over_early(self, array: np.ndarray, name: str, early: dict[int, bool], site: int) -> None:
        """A launch may use an array later, and the host does not write it before.

        It is taken over now if the last time a launch did so (``early``); else what happens to it is watched.
        """
        state = current_target()
        if state.device.memory.unified:
            return
        layout = layout_of(array)
        resident = None
        if early.get(site):
            resident = take_over_early(self._residency_on(state), array, name)
            if resident is not None:
                self.active = True
                self._moved(Moved("h2d", name, resident.plan.nbytes, layout.begin, layout.end))
        self._watched = [w for w in self._watched if w.site != site or w.early is not early]
        self._watched.append(_Watched(layout.begin, layout.end, early, site, resident))

    def _unwatch(self, begin: int, end: int) -> None:
        """The host may write bytes: what was to go over would have gone in vain, unless a launch has used it."""
        for watched in [w for w in self._watched if w.begin < end and begin < w.end]:
            self._watched.remove(watched)
            if watched.resident is None or not watched.resident.used:
                watched.early[watched.site] = False

    # Launches

    def for_launch(self, state: TargetState, uses: Sequence[ArrayUse]) -> Residency | None:
        """The residents on the device of a launch. What it uses of them on other devices comes back first."""
        for other, residency in self._residencies:
            if other is not state and not residency.empty:
                for use in uses:
                    if not isinstance(use.array, DeviceArray) and use.map != "none":
                        self._on(residency, use)
        self._residency = self._writes = None
        if state.device.memory.unified:
            return None
        self.active = True
        self._residency = self._residency_on(state)
        return self._residency

    def _residency_on(self, state: TargetState) -> Residency:
        for known, residency in self._residencies:
            if known is state:
                return residency
        made = Residency(state.device, self._moved, self._limit, self._check)
        made.names = self._names
        made.on_eviction = self._evicted
        self._residencies.append((state, made))
        return made

    def ended(self, mapping: LaunchMapping, again: Callable[[], Any]) -> None:
        """A launch has ended without error. ``again`` repeats it."""
        self._writes = mapping.resident_writes
        if self._residency is not None:
            self._residency.undo.note(again)

    def remember(self, kernel: Any, args: tuple[Any, ...], relaunch: Relaunch) -> None:
        """The launch that has ended is one that can be repeated."""
        residency, launched = self._residency, relaunch.launched
        if residency is None or self._writes is None or launched.config.stream is not None:
            return
        if len(self._residencies) == 1:
            repeat = Repeat(kernel, args, relaunch, residency, self._writes)
            self._repeats.remember(relaunch.asked, repeat)

    def another_form(self, array: np.ndarray) -> None:
        """The memory, shape, dtype or flags of an array, which was given up, are going to change.

        A launch on the same object would be taken for one like the last: of an array that kernels only ask for its shape
        nothing is on a device, so that to give it up shows nowhere. And NumPy resizes only what nobody else refers to.
        """
        self._repeats.clear()
        layout = layout_of(array)
        for _, residency in self._residencies:
            residency.undo.drop()
        for resident, _, _ in self._given_up:
            if resident.meets(layout.begin, layout.end):
                resident.let_go()

    def another_target(self) -> None:
        """Launches may go elsewhere from now on."""
        self._repeats.clear()

    def repeat(self, kernel: Any, asked: Any, args: tuple[Any, ...]) -> bool:
        """Launch like an earlier launch; returns whether there was one like it."""
        # A stream of the caller's may be any object, and its launches are never remembered.
        return self.active and (asked is None or asked[2] is None) and self._repeats.run(kernel, asked, args)

    def _on(self, residency: Residency, use: ArrayUse) -> None:
        layout = layout_of(use.array)
        if use.written:
            self._remember(layout.begin, layout.end)
        (residency.give_up if use.written else residency.bring_back)(layout.begin, layout.end)

    # The record

    def name_arguments(self, names: dict[str, str]) -> None:
        """What the next launch's arguments are called in the host function."""
        self._names = names
        for _, residency in self._residencies:
            residency.names = names

    def _moved(self, moved: Moved) -> None:
        if self.here is None:
            return
        report, number, site = self.here
        if moved.elsewhere:
            number, site = -1, _ELSEWHERE
        because: tuple[int, str] | None = None
        if moved.kind == "h2d":
            for watched in list(self._watched):
                if watched.resident is None and watched.begin < moved.end and moved.begin < watched.end:
                    watched.early[watched.site] = True
                    self._watched.remove(watched)
            for resident, line, text in reversed(self._given_up):
                if resident.meets(moved.begin, moved.end) and not resident.dead:
                    because = line, text
                    break
        report.add(number, site, moved, because)

    def _check(self, kind: str, label: str, nbytes: int, kernel: str, target: str, written: bool) -> None:
        """Ask the transfer guard for a copy that the launch or use at hand needs."""
        if self.here is None or not guards_launches():
            return
        _, _, site = self.here
        frame = user_frame()
        use = HostUse(site.text, f"{frame.f_code.co_filename}:{site.line}" if frame is not None else f"line {site.line}")
        check_transfer(kind, label, nbytes, kernel, target, use, written, may_refuse=not self._certain)

    def _remember(self, begin: int, end: int) -> None:
        """What is on devices of these bytes is going to be given up."""
        if self.here is not None and self.active:
            _, _, site = self.here
            for _, residency in self._residencies:
                gone = [r for r in residency.residents_in(begin, end) if not r.keeps_memory]
                self._given_up += [(r, site.line, site.text) for r in gone]
            del self._given_up[:-_REMEMBERED]

    def _evicted(self, resident: Resident) -> None:
        if self.here is not None and not resident.keeps_memory:
            _, _, site = self.here
            self._given_up.append((resident, site.line, f"{site.text}, which needed its memory"))


def argument_names(parameters: Sequence[str], site: Site) -> dict[str, str]:
    """What a call's arguments are called where it stands, by the callee's parameters."""
    positional = len(site.arguments) - len(site.keywords)
    names: dict[str, Any] = {}
    for parameter, text in zip(parameters, site.arguments[:positional], strict=False):
        if text.startswith("*"):
            break
        names[parameter] = text
    names.update(zip(site.keywords, site.arguments[positional:], strict=True))
    return names
