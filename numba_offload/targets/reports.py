"""What the error record of a launch says, read on the host."""

from __future__ import annotations

import struct

from numba_offload.targets.base import ErrorReport
from numba_offload.targets.entry import ERROR_RECORD_FORMAT

_RECORD = struct.Struct(ERROR_RECORD_FORMAT)

RECORD_BYTES = _RECORD.size


def read_report(record: bytes) -> ErrorReport | None:
    """The failure that a thread recorded; None if none did."""
    values = _RECORD.unpack(record)
    if not values[0]:
        return None
    return ErrorReport(values[1], values[2], values[4:7], values[7:10], values[10:13])
