"""The copies themselves: planned buffers' contents over to the device, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from numba_offload.diagnostics import events
from numba_offload.diagnostics.events import record_copy
from numba_offload.errors import TargetError
from numba_offload.failures import is_failure
from numba_offload.mapping.host_copy import CopyFailure, HostBytes, HostCopy, HostElements
from numba_offload.mapping.plan import BufferPlan
from numba_offload.targets.base import AskedCopies, DeviceMemory


def copy_failure(error: BaseException) -> tuple[str, bool] | None:
    """Why a copy failed, and whether an array of the host may hold some of the bytes; None: it is another error."""
    return getattr(error, "__offload_copy__", None)


@dataclass(frozen=True, slots=True)
class Transfers:
    """Copies for one launch or handle: where to, on which stream, on whose account."""

    memory: DeviceMemory
    stream: Any = None
    kernel: str = ""
    target: str = ""

    def upload(self, plan: BufferPlan, device: int) -> None:
        """Copy a buffer's host bytes to ``device``."""
        self.upload_all(((plan, device),))

    def upload_all(self, buffers: Sequence[tuple[BufferPlan, int]]) -> None:
        """Copy several buffers' host bytes to their addresses on the device, at the same time where it can do that."""
        if buffers:
            self._copy("h2d", buffers)

    def ask(self, buffers: Sequence[tuple[BufferPlan, int]]) -> AskedCopies | None:
        """Have copies back begin as soon as the work that is queued has ended, for ``download`` to complete."""
        if not buffers or events.listeners:
            return None  # what is told of a copy is its whole time
        try:
            return self.memory.ask_all_to_host(_copies(buffers), self.stream)
        except Exception:
            return None  # it is told by the copy that is made in place of it

    def download(self, buffers: Sequence[tuple[BufferPlan, int]], asked: AskedCopies | None = None) -> None:
        """Copy buffers back to the host: all of them, or none where a copy fails.

        No array of the host is touched before the device's work has ended without error and before all but the largest
        dense output are in memory of our own, and that one too, as far as it fits there. So there is one exception: the
        device is lost while an output that does not fit, or a page-locked one, is being written. The error then says
        that this array is partly written; the others are as they were.
        """
        if buffers:
            self._copy("d2h", buffers, asked)

    def _copy(self, kind: str, buffers: Sequence[tuple[BufferPlan, int]], asked: AskedCopies | None = None) -> None:
        copies = _copies(buffers)
        start = perf_counter()
        try:
            if asked is not None:
                asked.arrive()
            elif kind == "h2d":
                self.memory.copy_all_to_device(copies, self.stream)
            else:
                self.memory.copy_all_to_host(copies, self.stream)
        except CopyFailure as failure:
            raise self._told(kind, [buffers[failure.position]], failure, failure.partly) from (failure.__cause__ or failure)
        except Exception as error:
            if is_failure(error):
                raise  # an earlier asynchronous launch failed, and this is where somebody waits for it
            raise self._told(kind, buffers, error) from error
        if not events.listeners:
            return
        # Copies made at the same time share it by their bytes.
        each = (perf_counter() - start) / sum(copy.nbytes for copy in copies)
        for plan, _ in buffers:
            seconds = each * plan.nbytes
            record_copy(kind, plan.label, plan.nbytes, seconds, self.kernel, self.target, start, self.stream)
            start += seconds

    def _told(
        self, kind: str, buffers: Sequence[tuple[BufferPlan, int]], error: Exception, partly: bool = False
    ) -> TargetError:
        labels = " and ".join(f"'{plan.label}'" for plan, _ in buffers)
        nbytes = sum(plan.nbytes for plan, _ in buffers)
        where = "to" if kind == "h2d" else "back from"
        launch = f", launching {self.kernel}," if self.kernel else ""
        left = "The arrays on the host are as they were before the launch"
        if not self.kernel:
            left = "The arrays on the host are as they were before the preload"
            if kind == "d2h":
                left += ", and what launches wrote to them is lost"
        if partly:
            left = f"Of the arrays on the host {labels} is partly written, the others are as they were before the launch"
        message = (
            f"copying argument{'s' if len(buffers) > 1 else ''} {labels} ({nbytes} bytes) {where} the device{launch} failed: "
            f"{error}. {left}"
        )
        told = TargetError(message)
        told.__offload_copy__ = str(error) or repr(error), partly  # type: ignore[attr-defined]
        return told


def _copies(buffers: Sequence[tuple[BufferPlan, int]]) -> list[HostCopy]:
    return [HostCopy(device, _host_side(plan), plan.nbytes) for plan, device in buffers]


def _host_side(plan: BufferPlan) -> HostBytes | HostElements:
    return HostBytes(plan.begin) if plan.packed is None else HostElements(plan.packed)
