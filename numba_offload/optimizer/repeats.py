"""Launches like earlier ones of the same host function: the same kernel and arrays, all of them still on the device.

Within a host function an ndarray that is the same object is unchanged: what changes one's memory, shape or dtype is seen by
the guard, and whatever cannot be seen leaves nothing on the device.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from operator import is_
from typing import Any

from numba_offload.diagnostics import launch_log
from numba_offload.execution import launch_again, run_again
from numba_offload.mapping.borrow import BORROWS
from numba_offload.mapping.layout import Layout
from numba_offload.mapping.residency import Residency, Resident
from numba_offload.relaunch import Relaunch

_IN_FULL = launch_log.ARGUMENTS | launch_log.TABLE
"""What the log tells of launches that are made in full only."""
_MOST = 4
"""Remembered of one kernel: two arrays that change places make two kinds of launches, three make three."""


class Repeat:
    """One launch, and what it left on the device."""

    __slots__ = ("args", "count", "epoch", "kernel", "launched", "may_fail", "relaunch", "residency", "writes")

    def __init__(
        self,
        kernel: Any,
        args: tuple[Any, ...],
        relaunch: Relaunch,
        residency: Residency,
        writes: Sequence[tuple[Resident, Layout]],
    ) -> None:
        self.kernel = kernel
        self.args = args
        self.count = len(args)
        self.relaunch = relaunch
        self.launched = relaunch.launched
        self.may_fail = relaunch.launched.code.image.may_fail
        self.residency = residency
        self.epoch = residency.epoch
        self.writes = [(resident, layout, resident.span(layout)) for resident, layout in writes]

    def run(self, args: tuple[Any, ...]) -> bool:
        """Launch again with these arguments; returns whether they are such that it could."""
        relaunch, launched, residency = self.relaunch, self.launched, self.residency
        if BORROWS.version != relaunch.borrows or launch_log.mask & _IN_FULL:
            return False
        if len(args) == self.count and all(map(is_, args, self.args)):
            flat: list[Any] | None = launched.flat
        else:
            flat = relaunch.arguments(args)
        if flat is None or (relaunch.captured and self.kernel._frozen() != relaunch.captured):
            return False
        if residency.epoch != self.epoch:
            return False
        undo = residency.undo
        if self.may_fail or undo.active:
            undo.before([resident for resident, _, _ in self.writes], self.may_fail)
        # Set before the question is asked: who makes residents busy looks at it afterwards.
        residency.launching = True
        try:
            if residency.epoch != self.epoch or residency.busy:
                return False
            try:
                failed = launch_again(launched, flat)
                if failed is not None:
                    raise failed
                for resident, layout, (begin, end) in self.writes:
                    dirty = resident.dirty
                    if dirty is None or dirty[0] > begin or dirty[1] < end:
                        resident.wrote(layout, launched.kernel)
            except BaseException:
                residency.launch_failed([(resident, layout) for resident, layout, _ in self.writes], launched.kernel)
                raise
            if undo.active:
                undo.note(partial(run_again, launched, flat, args))
        finally:
            residency.launching = False
        return True


class Repeats:
    """The launches of one call of a host function that may come again."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, Any], list[Repeat]] = {}

    def run(self, kernel: Any, asked: Any, args: tuple[Any, ...]) -> bool:
        """Launch like an earlier launch; returns whether there was one like it."""
        # A loop: a generator takes as long as what it would go through.
        for repeat in self._known.get((id(kernel), asked), ()):  # noqa: SIM110
            if repeat.run(args):
                return True
        return False

    def remember(self, asked: Any, repeat: Repeat) -> None:
        """A launch has ended without error."""
        known = self._known.setdefault((id(repeat.kernel), asked), [])
        known[:] = [r for r in known if r.epoch == r.residency.epoch][: _MOST - 1]
        known.insert(0, repeat)

    def clear(self) -> None:
        """Forget, and let go of the arrays."""
        self._known.clear()
