"""A thread's failure as the Python exception that it is."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

from numba_offload.errors import OffloadError
from numba_offload.targets.base import ErrorReport
from numba_offload.targets.sites import (
    SITES,
    IndexSite,
    LineSite,
    LostException,
    Payload,
    RaiseSite,
    ReadSite,
    Site,
)


def _value(payload: Payload, slots: tuple[int, ...]) -> Any:
    bits = slots[payload.slot]
    if payload.kind == "u":
        return bits & (2**64 - 1)
    if payload.kind == "f":
        return struct.unpack("d", struct.pack("q", bits))[0]
    if payload.kind == "b":
        return bool(bits)
    return bits


def _where(kernel: str, report: ErrorReport, line: Site | None) -> str:
    block = tuple(p // max(b, 1) for p, b in zip(report.thread, report.block, strict=True))
    thread = tuple(p % max(b, 1) for p, b in zip(report.thread, report.block, strict=True))
    source = ""
    if isinstance(line, LineSite):
        source = f", {line.filename}, line {line.line}, in {line.function}"
    return f"kernel {kernel}{source}, thread {thread}, block {block}"


def is_failure(error: BaseException) -> bool:
    """Whether an exception tells of a kernel's failure, rather than of trouble in telling it."""
    return hasattr(error, "__offload_report__")


def failure(kernel: str, report: ErrorReport, sites: Mapping[int, Site] | None = None) -> BaseException:
    """The exception that the first failing thread would have raised, told where it happened.

    ``sites`` is what the kernel's image says of its numbers; without, they are those of this process.
    """

    def site(number: int) -> Site | None:
        return SITES.site(number) if sites is None else sites.get(number)

    error = _failure(report, site(report.site), _where(kernel, report, site(report.line)))
    error.__offload_report__ = report  # type: ignore[attr-defined]
    return error


_TELLING: dict[type[BaseException], type[BaseException]] = {}
"""Of each exception class the subclass whose text ends with the place."""


def _with_place(error: BaseException, where: str) -> BaseException:
    """An exception that keeps its class and its arguments, and whose text tells the place too."""
    kind = type(error)
    try:
        telling = _TELLING.get(kind)
        if telling is None:

            def shown(self: BaseException) -> str:
                return f"{kind.__str__(self)} [{self.__offload_where__}]"  # type: ignore[attr-defined]

            def reduced(self: BaseException) -> Any:
                return kind, self.args

            body = {"__str__": shown, "__reduce__": reduced, "__module__": kind.__module__, "__qualname__": kind.__qualname__}
            telling = _TELLING[kind] = type(kind.__name__, (kind,), body)
        told = telling(*error.args)
        told.__dict__.update(error.__dict__)
        told.__offload_where__ = where  # type: ignore[attr-defined]
        return told
    except (TypeError, AttributeError):
        # A class with a constructor of its own, or that cannot be subclassed.
        error.add_note(where)
        return error


def _called_with(args: tuple[Any, ...]) -> str:
    return f"({', '.join(map(repr, args))})"


def _failure(report: ErrorReport, site: Site | None, where: str) -> BaseException:
    if isinstance(site, IndexSite):
        index, size = report.payload[:2]
        return IndexError(
            f"index {index} is out of bounds for axis {site.axis} with size {size} of {site.array} [{where}]"
        )
    if isinstance(site, ReadSite):
        given = ", ".join(str(k) for k in report.payload[: site.axes])
        return IndexError(
            f"{site.array}[{given}] is read, an element of a Region that another thread may be writing: under {site.strategy} a "
            "thread may read its own elements and those of the group that this launch does not write; to read others, pass a "
            f"copy of the array as a second argument [{where}]"
        )
    if not isinstance(site, RaiseSite):
        return OffloadError(f"a thread failed with unknown code {report.site} [{where}]")
    args = given_args = tuple(_value(a, report.payload) if isinstance(a, Payload) else a for a in site.args)
    if isinstance(site.exception, LostException):
        return OffloadError(f"{site.exception.qualname}{_called_with(given_args)} was raised [{where}]")
    if site.exception is TypeError and args and str(args[0]).endswith("got None"):
        args = (f"{args[0]}: a function that was called gave None; end each of its paths with a 'return' of a value",)
    if args and isinstance(args[0], str):
        args = (f"{args[0]} [{where}]", *args[1:])
    elif not args:
        args = (f"[{where}]",)
    try:
        error = site.exception(*args)
    except Exception:
        # An exception class with a constructor of its own; the cause is told all the same.
        error = OffloadError(f"{site.exception.__name__}{_called_with(given_args)} was raised [{where}]")
    if where not in str(error):
        return _with_place(error, where)
    return error
