"""A thread's failure as the Python exception that it is."""

from __future__ import annotations

import struct
from typing import Any

from numba_offload.errors import OffloadError
from numba_offload.targets.base import ErrorReport
from numba_offload.targets.sites import SITES, IndexSite, LineSite, Payload, RaiseSite


def _value(payload: Payload, slots: tuple[int, ...]) -> Any:
    bits = slots[payload.slot]
    if payload.kind == "u":
        return bits & (2**64 - 1)
    if payload.kind == "f":
        return struct.unpack("d", struct.pack("q", bits))[0]
    if payload.kind == "b":
        return bool(bits)
    return bits


def _where(kernel: str, report: ErrorReport) -> str:
    line = SITES.site(report.line)
    block = tuple(p // max(b, 1) for p, b in zip(report.thread, report.block, strict=True))
    thread = tuple(p % max(b, 1) for p, b in zip(report.thread, report.block, strict=True))
    source = ""
    if isinstance(line, LineSite):
        source = f", {line.filename}, line {line.line}, in {line.function}"
    return f"kernel {kernel}{source}, thread {thread}, block {block}"


def is_failure(error: BaseException) -> bool:
    """Whether an exception tells of a kernel's failure, rather than of trouble in telling it."""
    return hasattr(error, "__offload_report__")


def failure(kernel: str, report: ErrorReport) -> BaseException:
    """The exception that the first failing thread would have raised, told where it happened."""
    error = _failure(kernel, report)
    error.__offload_report__ = report  # type: ignore[attr-defined]
    return error


def _failure(kernel: str, report: ErrorReport) -> BaseException:
    site = SITES.site(report.site)
    where = _where(kernel, report)
    if isinstance(site, IndexSite):
        index, size = report.payload[:2]
        return IndexError(
            f"index {index} is out of bounds for axis {site.axis} with size {size} of {site.array} [{where}]"
        )
    if not isinstance(site, RaiseSite):
        return OffloadError(f"a thread failed with unknown code {report.site} [{where}]")
    args = tuple(_value(a, report.payload) if isinstance(a, Payload) else a for a in site.args)
    if args and isinstance(args[0], str):
        args = (f"{args[0]} [{where}]", *args[1:])
    elif not args:
        args = (f"[{where}]",)
    try:
        error = site.exception(*args)
    except Exception:
        # An exception class with a constructor of its own; the cause is told all the same.
        error = OffloadError(f"{site.exception.__name__}{site.args!r} was raised [{where}]")
    if where not in str(error):
        error.add_note(where)
    return error
