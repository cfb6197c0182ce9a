"""Copy lanes that need the interpreter only to be told of a batch, and threads that wait for one without it.

What they do is ``lane_code.py``; the lanes' memory and streams are the staging ring's. A thread that waits is inside
``serve``: waking it takes neither the interpreter's lock nor Python, and one that has not woken when all is done is not waited
for. So a batch is never slower for having more lanes than it needs.
"""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from numba_offload.mapping.host_copy import HostCopy
from numba_offload.mapping.layout import address
from numba_offload.targets.gpu.lane_code import (
    AWAIT,
    COPY,
    MOVE,
    RECORD,
    SEND,
    WRITE,
    CopyState,
    EventState,
    Job,
    LaneCode,
    LaneState,
    SlotState,
    lane_code,
)

EVENTS = 32
"""More copies than this are not queued at a time, of a batch that the ring does not hold."""
_DOING = {RECORD: "ordering streams", AWAIT: "waiting for a copy"}


NOT_READY = 600
"""CUDA's code for an event that has not happened, and HIP's."""


@dataclass(frozen=True)
class NativeCopies:
    """A runtime's functions by their addresses. All return 0, or the runtime's code for what failed.

    Events and streams are the runtime's handles: what ``int`` makes of a driver's. The order of arguments is the
    same in all runtimes.
    """

    to_device: int
    """(device's address, host's address, bytes, stream)"""
    to_host: int
    """(host's address, device's address, bytes, stream)"""
    record_event: int
    """(event, stream)"""
    query_event: int
    """(event); NOT_READY if it has not happened"""
    await_event: int
    """(event)"""
    library: Any = field(default=None, compare=False, repr=False)
    """Keeps them there."""


def loaded_copies(library: str, names: Sequence[str]) -> NativeCopies | None:
    """Functions of a library that the process has loaded, named in the order of NativeCopies; None where they are not there."""
    if not hasattr(os, "RTLD_NOLOAD"):
        return None
    try:
        loaded = ctypes.CDLL(library, mode=os.RTLD_NOLOAD)
        over, back, record, query, awaited = (ctypes.cast(loaded[name], ctypes.c_void_p).value or 0 for name in names)
    except (OSError, AttributeError):
        return None
    return NativeCopies(over, back, record, query, awaited, loaded)


class NativeDriver(Protocol):
    """What native lanes ask of a device."""

    def current(self) -> AbstractContextManager[None]: ...
    def create_event(self) -> Any: ...
    def native_copies(self) -> NativeCopies | None: ...


class Fault(NamedTuple):
    """What failed first: the runtime's ``code``, what was being done, and for which copy."""

    doing: str
    position: int
    code: int


class Pieces:
    """Copies of dense arrays, cut to what slots hold."""

    def __init__(self, copies: Sequence[tuple[int, HostCopy]], piece_bytes: int) -> None:
        self.piece_bytes = piece_bytes
        self.table = (CopyState * len(copies))()
        self.positions = [position for position, _ in copies]
        self.count = 0
        for number, (_, copy) in enumerate(copies):
            end = self.count + -(-copy.nbytes // piece_bytes)
            self.table[number] = (copy.device, copy.host.address, copy.nbytes, self.count, end)
            self.count = end

    def __len__(self) -> int:
        return self.count

    def position(self, piece: int) -> int:
        """Of the copy that a piece belongs to."""
        return next(position for position, state in zip(self.positions, self.table, strict=True) if piece < state.end)


class Ring(NamedTuple):
    """Page-locked memory for copies to go through."""

    block: int
    nbytes: int

    def slots(self, piece_bytes: int) -> int:
        return self.nbytes // piece_bytes


class NativeLanes:
    """Up to ``most`` lanes. The caller is the first; others have a thread each.

    One batch at a time. Not for a forked child: make another one there.
    """

    def __init__(self, driver: NativeDriver, copies: NativeCopies, code: LaneCode, most: int) -> None:
        self._driver, self._copies, self._code = driver, copies, code
        self._states = (LaneState * most)()
        self._events = [driver.create_event() for _ in range(EVENTS)]
        self._event_states = (EventState * EVENTS)(*((int(event), 0) for event in self._events))
        self._slots = np.empty(0, np.int64)
        self._job = job = Job(
            over=copies.to_device,
            back=copies.to_host,
            record=copies.record_event,
            query=copies.query_event,
            wait=copies.await_event,
            not_ready=NOT_READY,
            events=ctypes.addressof(self._event_states),
            event_count=EVENTS,
            lanes=ctypes.addressof(self._states),
        )
        self._where = ctypes.addressof(job)
        start = ctypes.CDLL(None).sem_init
        for structure, name in [(job, "done"), *((state, "wake") for state in self._states)]:
            start(ctypes.c_void_p(ctypes.addressof(structure) + getattr(type(structure), name).offset), 0, 0)
        self._living = [0]
        weakref.finalize(self, _dismiss, job, self._states, self._living).atexit = False

    def ready(self, wanted: int) -> int:
        """Have ``wanted`` lanes with a thread, the caller's among them; the system may give fewer. How many there are."""
        while 1 + self._living[0] < wanted:
            number = self._living[0] = self._living[0] + 1  # first, as two threads must not have one number
            kept = (self._driver, self._code, self._job, self._states)
            thread = threading.Thread(target=_serve, args=(number, *kept), name="numba_offload copies", daemon=True)
            try:
                thread.start()
            except RuntimeError:
                self._living[0] = number - 1
                break
        return min(wanted, 1 + self._living[0])

    def rouse(self, wanted: int) -> None:
        """A batch for this many lanes is to come: wake those that there are."""
        self._code.rouse(self._where, min(wanted, 1 + self._living[0]))

    def send(self, pieces: Pieces, lanes: int, ring: Ring, most_queued: int, stream: int) -> Fault | None:
        """Copy over, on ``stream``, at most ``most_queued`` pieces in one copy.

        The host's bytes have been read at return. The ring is not to be used before the copies have been made.
        """
        job = self._prepare(pieces, lanes, ring, most_queued, stream)
        job.mode, job.room = SEND, job.slots
        return self._result(self._code.run(self._where), pieces, "copying to the device")

    def ask(self, pieces: Pieces, lanes: int, ring: Ring, most_queued: int, stream: int) -> Fault | None:
        """The first step back: queue copies into the ring, on ``stream``, of what fits. ``land`` and ``write`` go on.

        The caller does it alone, as this is all but nothing to do.
        """
        job = self._prepare(pieces, lanes, ring, most_queued, stream)
        job.mode, job.room = WRITE, 0
        return self._result(self._code.ask(self._where), pieces, "copying to the host")

    def land(self, pieces: Pieces) -> Fault | None:
        """Wait until what fits lies in the ring. Nothing has been written on the host."""
        return self._result(self._code.land(self._where), pieces, "copying to the host")

    def write(self, pieces: Pieces) -> Fault | None:
        """Write what has landed, and the rest as it comes."""
        return self._result(self._code.run(self._where), pieces, "copying to the host")

    def move(self, pieces: Pieces, lanes: int) -> None:
        """Copy on the host, from what stands for the device's address."""
        job = self._prepare(pieces, lanes, Ring(0, pieces.piece_bytes), 1, 0)
        job.mode, job.queued = MOVE, len(pieces)
        self._code.run(self._where)

    def _prepare(self, pieces: Pieces, lanes: int, ring: Ring, most_queued: int, stream: int) -> Any:
        job, slots = self._job, ring.slots(pieces.piece_bytes)
        if len(self._slots) < slots:
            self._slots = np.empty(slots, np.int64)
            assert ctypes.sizeof(SlotState) == self._slots.itemsize
        self._slots[:slots] = 0
        job.block, job.slots, job.slot_states = ring.block, slots, address(self._slots)
        job.copies, job.count, job.piece_bytes = ctypes.addressof(pieces.table), len(pieces), pieces.piece_bytes
        job.most_queued, job.lane_count, job.stream = most_queued, lanes, stream
        job.queued = job.made = job.recorded = job.reached = job.token = 0
        return job

    def _result(self, failed: int, pieces: Pieces, copying: str) -> Fault | None:
        if not failed and not self._job.stop:
            return None
        job = self._job
        return Fault(copying if job.call == COPY else _DOING[job.call], pieces.position(job.piece), job.code)


def native_lanes(driver: NativeDriver, most: int) -> NativeLanes | None:
    """Lanes for a driver's device; None where its runtime or this system cannot have them."""
    copies = driver.native_copies()
    code = lane_code() if copies is not None else None
    return None if copies is None or code is None else NativeLanes(driver, copies, code, most)


def _serve(number: int, driver: NativeDriver, code: LaneCode, job: Any, states: Any) -> None:
    try:
        with driver.current():
            code.serve(ctypes.addressof(job), number)
    except Exception:  # a lost device, or none for this thread; the other lanes do its share
        return


def _dismiss(job: Any, states: Any, living: list[int]) -> None:
    job.quit = 1
    post = ctypes.CDLL(None).sem_post
    for number in range(1, living[0] + 1):
        post(ctypes.c_void_p(ctypes.addressof(states[number]) + LaneState.wake.offset))
