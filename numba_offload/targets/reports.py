"""What the error record of a launch says, read on the host."""

from __future__ import annotations

import struct
from dataclasses import replace

from numba_offload.targets.base import ErrorReport, LaunchConfig
from numba_offload.targets.entry import ERROR_RECORD_FORMAT

_RECORD = struct.Struct(ERROR_RECORD_FORMAT)

RECORD_BYTES = _RECORD.size


def read_report(record: bytes) -> ErrorReport | None:
    """The failure that a thread recorded; None if none did."""
    values = _RECORD.unpack(record)
    if not values[0]:
        return None
    return ErrorReport(values[1], values[2], values[4:7], values[7:10], values[10:13])


def as_asked(report: ErrorReport, config: LaunchConfig, positions: bool) -> ErrorReport:
    """A report in the coordinates of the launch as it was asked for.

    Code without ``positions`` runs along x and knows a thread's linear id only.
    """
    if positions:
        return report
    linear = report.thread[0]
    tx, ty, _ = config.threads
    place = (linear % tx, linear // tx % ty, linear // (tx * ty))
    return replace(report, thread=place, block=config.block)
