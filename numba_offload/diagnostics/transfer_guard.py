"""Seeing, or refusing, copies that nobody asked for: ``with transfer_guard("disallow"):``. Modelled after JAX's guard.

A copy is *explicit* where the program asks for it by name, as with ``preload``; it is *implicit* where a launch makes it
because an argument is an array of the host.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextvars import ContextVar, Token
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

    A launch is refused before anything moves: nothing is mapped, and arrays are as they were. What a preload copies back at
    its end is never refused, as results would be lost. Launches on memory that the host shares copy nothing.

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


def check_transfer(kind: str, name: str, nbytes: int, kernel: str = "", target: str = "") -> None:
    """Hook before a copy; ``kind`` is "h2d" or "d2h". Without ``kernel`` it is explicit.

    Raises TransferError where the guard disallows it, or where ``NUMBA_OFFLOAD_TRANSFER_GUARD`` has no known level.
    """
    chosen = _level.get()
    level, place = chosen if chosen is not None else (_default(), "")
    if level == "allow" or not (kernel or level.endswith("_explicit")):
        return
    where = user_line()
    if level.startswith("log"):
        asked = "implicit" if kernel else "explicit"
        said = {"direction": kind, "argument": name, "kernel": kernel, "target": target, "bytes": nbytes, "asked": asked}
        write_line("transfer", {**said, "at": where})
        return
    direction = "to" if kind == "h2d" else "back from"
    device = f"the {target} device" if target else "the device"
    doing = f"kernel {kernel!r}: argument {name!r}" if kernel else f"preloading {name!r}: it"
    guard = f"transfer_guard({level!r}), {place}," if chosen is not None else f"{VARIABLE}={level}"
    way_out = (
        f"Preload the array, as in 'with preload({name}) as on_device:', and pass what that gives"
        if kernel
        else "Preload it before"
    )
    raise TransferError(
        f"{doing} ({nbytes} bytes) would be copied {direction} {device}{f' at {where}' if where else ''}, which {guard} "
        f"disallows. {way_out}, or allow the copy with transfer_guard('allow'). Nothing was moved"
    )


def check_launch(buffers: Iterable[BufferPlan], kernel: str, target: str) -> None:
    """Hook before a launch's buffers are made: every copy over and back that it will make."""
    chosen = _level.get()
    if (chosen[0] if chosen is not None else _default()) == "allow":
        return
    for buffer in buffers:
        if buffer.upload:
            check_transfer("h2d", buffer.label, buffer.nbytes, kernel, target)
        if buffer.download:
            check_transfer("d2h", buffer.label, buffer.nbytes, kernel, target)


def _default() -> str:
    level = os.environ.get(VARIABLE) or "allow"
    if level not in LEVELS:
        # Not passed over: a guard that is misspelt must not let everything through.
        raise TransferError(f"{VARIABLE}={level!r}: expected one of {', '.join(map(repr, LEVELS))}")
    return level
