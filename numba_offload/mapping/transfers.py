"""The copies themselves: a planned buffer's content over to the device, and back."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from numba_offload.diagnostics.events import record_copy
from numba_offload.errors import TargetError
from numba_offload.failures import is_failure
from numba_offload.mapping.layout import Layout, address, distinct_shape, raw_dtype, raw_view
from numba_offload.mapping.plan import BufferPlan
from numba_offload.targets.base import DeviceMemory


@dataclass(frozen=True, slots=True)
class Transfers:
    """Copies for one launch or handle: where to, on which stream, on whose account."""

    memory: DeviceMemory
    stream: Any = None
    kernel: str = ""
    target: str = ""

    def upload(self, plan: BufferPlan, device: int) -> None:
        """Copy a buffer's host bytes to ``device``."""
        if plan.packed is None:
            self._copy("h2d", plan, device, plan.begin)
        else:
            packed = _staging(plan)
            np.copyto(packed, _host_elements(plan.packed))
            self._copy("h2d", plan, device, address(packed))

    def download(self, buffers: Sequence[tuple[BufferPlan, int]]) -> None:
        """Copy buffers back to the host: all of them, or none where a copy fails.

        All but the largest dense one are fetched aside first, so that no array of the host is touched before
        the last copy. A single dense output, the usual case, costs nothing more.
        """
        direct = max(
            (position for position, (plan, _) in enumerate(buffers) if plan.packed is None),
            key=lambda position: buffers[position][0].nbytes,
            default=-1,
        )
        fetched: list[tuple[BufferPlan, np.ndarray]] = []
        for position, (plan, device) in enumerate(buffers):
            if position != direct:
                staging = _staging(plan)
                self._copy("d2h", plan, device, address(staging))
                fetched.append((plan, staging))
        if direct >= 0:
            plan, device = buffers[direct]
            self._copy("d2h", plan, device, plan.begin)
        for plan, staging in fetched:
            if plan.packed is None:
                ctypes.memmove(plan.begin, address(staging), plan.nbytes)
            else:
                np.copyto(_host_elements(plan.packed), staging)

    def _copy(self, kind: str, plan: BufferPlan, device: int, host: int) -> None:
        start = perf_counter()
        try:
            if kind == "h2d":
                self.memory.copy_to_device(device, host, plan.nbytes, self.stream)
            else:
                self.memory.copy_to_host(host, device, plan.nbytes, self.stream)
        except Exception as error:
            if is_failure(error):
                raise  # an earlier asynchronous launch failed, and this is where somebody waits for it
            where = "to" if kind == "h2d" else "back from"
            launch = f", launching {self.kernel}," if self.kernel else ""
            raise TargetError(
                f"copying argument '{plan.label}' ({plan.nbytes} bytes) {where} the device{launch} failed: "
                f"{error}. The arrays on the host are as they were before the launch"
            ) from error
        seconds = perf_counter() - start
        record_copy(kind, plan.label, plan.nbytes, seconds, self.kernel, self.target, start, self.stream)


def _staging(plan: BufferPlan) -> np.ndarray:
    if plan.packed is None:
        return np.empty(plan.nbytes, dtype=np.uint8)
    return np.empty(distinct_shape(plan.packed), dtype=raw_dtype(plan.packed.itemsize))


def _host_elements(layout: Layout) -> np.ndarray:
    """The distinct elements of a host array as raw bytes, writable even while a preload locks it."""
    return raw_view(layout.pointer, distinct_shape(layout), layout.strides, layout.itemsize)
