"""Seeing, or refusing, copies that nobody asked for: ``with transfer_guard("disallow"):``. Modelled after JAX's guard.

A copy is *explicit* where the program asks for it by name, as with ``preload``; it is *implicit* where a launch makes it
because an argument is an array of the host.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextvars import ContextVar, Token
from dataclasses import dataclass
from typing import TYPE_CHECKING

from numba_offload.diagnostics.launch_log import write_line
from numba_offload.errors import TransferError
from numba_offload.origin import user_line

if TYPE_CHECKING:
    from numba_offload.mapping.plan import BufferPlan

LEVELS = ("allow", "log", "disallow", "log_explicit", "disallow_explicit")
VARIABLE = "NUMBA_OFFLOAD_TRANSFER_GUARD"

_level: ContextVar[tuple[str, str] | None] = ContextVar("numba_offload_transfer_guard", default=None)
"""The level, and the user's line that asked for it."""


@dataclass(frozen=True, slots=True)
class HostUse:
    """The operation of a host function that needs a copy."""

    text: str
    """Its source."""
    where: str
    """``file:line``."""


class transfer_guard:
    """What happens before an array is copied: ``with transfer_guard("disallow"):``, or as a call, from then on.

    ========================  ==========================  =======================
    level                     implicit copies (launches)  explicit ones (preload)
    ========================  ==========================  =======================
    ``"allow"``, the default  are made                    are made
    ``"log"``                 a line each on stderr       are made
    ``"disallow"``            TransferError               are made
    ``"log_explicit"``        a line each on stderr       a line each on stderr
    ``"disallow_explicit"``   TransferError               TransferError
    ========================  ==========================  =======================

    A launch is refused before anything moves: nothing is mapped, and arrays are as they were. Launches on memory that the
    host shares copy nothing.

    In a function with ``@optimize_transfers`` arrays come back later, or never. There a launch is asked for what goes over,
    and the host's use of an array for what comes back: TransferError names that line, and the array's newest values stay on
    the device for a later use that is allowed. What comes back at the end of such a function, or of a preload, is never
    refused, as results would be lost.

    Guards nest; each holds for the calling thread (more exactly: the ``contextvars`` context).
    ``NUMBA_OFFLOAD_TRANSFER_GUARD`` is the level where no guard is. Raises ValueError for an unknown level.
    """

    def __init__(self, level: str) -> None:
        if level not in LEVELS:
            raise ValueError(f"transfer_guard({level!r}): expected one of {', '.join(map(repr, LEVELS))}")
        self.level = level
        self._token: Token[tuple[str, str] | None] | None = _level.set((level, user_line()))

    def __enter__(self) -> transfer_guard:
        if self._token is None:  # entered once more
            self._token = _level.set((self.level, user_line()))
        return self

    def __exit__(self, *exc: object) -> None:
        token, self._token = self._token, None
        if token is not None:
            _level.reset(token)


def guards_launches() -> bool:
    """Whether ``check_transfer`` has anything to do for copies that nobody asked for by name."""
    return _level.get() is not None or bool(os.environ.get(VARIABLE))


def check_transfer(
    kind: str,
    name: str,
    nbytes: int,
    kernel: str = "",
    target: str = "",
    use: HostUse | None = None,
    written: bool = False,
    may_refuse: bool = True,
) -> None:
    """Hook before a copy; ``kind`` is "h2d" or "d2h". Without ``kernel`` and ``use`` it is explicit.

    ``written``: the launch writes the array.
    ``kernel`` is the one that is launched or, with the ``use`` by the host that brings an array back, the one that wrote it.
    Raises TransferError where the guard disallows it, or where ``NUMBA_OFFLOAD_TRANSFER_GUARD`` has no known level.
    """
    chosen = _level.get()
    level, place = chosen if chosen is not None else (_default(may_refuse), "")
    implicit = bool(kernel or use)
    if level == "allow" or not (implicit or level.endswith("_explicit")):
        return
    where = user_line() if use is None else use.where
    if level.startswith("log"):
        asked = "implicit" if implicit else "explicit"
        said = {"direction": kind, "argument": name, "kernel": kernel, "target": target, "bytes": nbytes, "asked": asked}
        write_line("transfer", {**said, "for": use.text if use else "", "at": where})
        return
    if not may_refuse:
        return
    direction = "to" if kind == "h2d" else "back from"
    device = f"the {target} device" if target else "the device"
    guard = f"transfer_guard({level!r}), {place}," if chosen is not None else f"{VARIABLE}={level}"
    left = "Nothing was moved"
    if use is not None and kind == "d2h":
        doing = f"{use.text}: {name!r} ({nbytes} bytes), which kernel {kernel!r} wrote,"
        way_out = "Use the array where no guard is"
        left += ": what the kernel wrote is on the device, and comes back at a use that is allowed, or at the function's end"
    elif implicit:
        doing = f"kernel {kernel!r}: argument {name!r} ({nbytes} bytes)"
        preload = "preload_mut" if written else "preload"
        way_out = f"Preload the array, as in 'with {preload}({name}) as on_device:', and pass what that gives"
    else:
        doing = f"preloading {name!r}: it ({nbytes} bytes)"
        way_out = "Preload it before"
    raise TransferError(
        f"{doing} would be copied {direction} {device}{f' at {where}' if where else ''}, which {guard} "
        f"disallows. {way_out}, or allow the copy with transfer_guard('allow'). {left}"
    )


def check_launch(buffers: Iterable[BufferPlan], kernel: str, target: str) -> None:
    """Hook before a launch's buffers are made: every copy over and back that it will make."""
    chosen = _level.get()
    if (chosen[0] if chosen is not None else _default(True)) == "allow":
        return
    for buffer in buffers:
        if buffer.upload:
            check_transfer("h2d", buffer.label, buffer.nbytes, kernel, target, written=buffer.download)
        if buffer.download:
            check_transfer("d2h", buffer.label, buffer.nbytes, kernel, target, written=True)


def _default(may_refuse: bool) -> str:
    level = os.environ.get(VARIABLE) or "allow"
    if level not in LEVELS:
        if not may_refuse:
            return "allow"
        # Not passed over: a guard that is misspelt must not let everything through.
        raise TransferError(f"{VARIABLE}={level!r}: expected one of {', '.join(map(repr, LEVELS))}")
    return level
