"""Launches like earlier ones of the same host function: the same kernel and arrays, all of them still on the device.

Within a host function an ndarray that is the same object is unchanged: what changes one's memory, shape or dtype is seen by
the guard, and whatever cannot be seen leaves nothing on the device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from operator import is_
from typing import Any

from numba_offload.diagnostics import launch_log
from numba_offload.execution import launch_again, run_again
from numba_offload.mapping.borrow import BORROWS
from numba_offload.mapping.layout import Layout
from numba_offload.mapping.residency import Residency, Resident
from numba_offload.relaunch import Relaunch
from numba_offload.targets.registry import current_target

_MOST = 4
"""Remembered of one kernel: two arrays that change places make two kinds of launches, three make three."""


@dataclass(frozen=True, slots=True)
class Repeat:
    """One launch, and what it left on the device."""

    kernel: Any
    args: tuple[Any, ...]
    relaunch: Relaunch
    residency: Residency
    epoch: int
    writes: Sequence[tuple[Resident, Layout]]

    def run(self, args: tuple[Any, ...]) -> bool:
        """Launch again with these arguments; returns whether they are such that it could."""
        launched = self.relaunch.launched
        if BORROWS.version != self.relaunch.borrows or launch_log.mask & (launch_log.ARGUMENTS | launch_log.TABLE):
            return False
        if len(args) == len(self.args) and all(map(is_, args, self.args)):
            flat: list[Any] | None = launched.flat
        else:
            flat = self.relaunch.arguments(args)
        if flat is None or current_target() is not launched.state:
            return False
        if self.relaunch.captured and self.kernel._frozen() != self.relaunch.captured:
            return False
        if not self.residency.enter(self.epoch):
            return False
        undo = self.residency.undo
        try:
            if launched.code.image.may_fail or undo.active:
                undo.before([resident for resident, _ in self.writes], launched.code.image.may_fail)
            failed = launch_again(launched, flat)
            if failed is not None:
                undo.roll_back()
                raise failed
            if undo.active:
                undo.note(partial(run_again, launched, flat, args))
            for resident, layout in self.writes:
                resident.wrote(layout, launched.kernel)
        finally:
            self.residency.leave()
        return True


class Repeats:
    """The launches of one call of a host function that may come again."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, Any], list[Repeat]] = {}

    def run(self, kernel: Any, asked: Any, args: tuple[Any, ...]) -> bool:
        """Launch like an earlier launch; returns whether there was one like it."""
        return any(repeat.run(args) for repeat in self._known.get((id(kernel), asked), ()))

    def remember(self, asked: Any, repeat: Repeat) -> None:
        """A launch has ended without error."""
        known = self._known.setdefault((id(repeat.kernel), asked), [])
        known[:] = [r for r in known if r.epoch == r.residency.epoch][: _MOST - 1]
        known.insert(0, repeat)

    def clear(self) -> None:
        """Forget, and let go of the arrays."""
        self._known.clear()
