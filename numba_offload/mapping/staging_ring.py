"""Copies of pageable arrays through page-locked memory, by several threads at once.

A GPU copies from and to page-locked memory only. A driver that is given any other memory moves it through its own, in one
thread, at a fraction of the bus's speed. Here each thread has a *lane*: a block of page-locked memory cut into slots, and a
stream. Over: it fills a slot from the array and queues the slot's copy, and fills the next while the device reads. Back:
the other way round. Which thread moves which piece is decided by who is free.

Dense arrays are moved by native lanes (``native_lanes.py``), which need the interpreter once for a batch. Strided ones are
packed by NumPy, so their lanes are Python's, as are all where a runtime's functions cannot be had by address.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from queue import SimpleQueue
from typing import Any, NamedTuple, Protocol

from numba_offload.mapping.copy_threads import CopyThreads
from numba_offload.mapping.host_copy import CopyFailure, HostCopy
from numba_offload.mapping.lane_code import LaneState
from numba_offload.mapping.native_lanes import Fault, NativeCopies, NativeLanes, Pieces, native_lanes
from numba_offload.mapping.settings import MOST_COPY_THREADS, copy_threads

LANE_BYTES = 4 << 20
"""Page-locked memory of each thread. What fits into that of all comes back as one."""
LEAST_PIECE, MOST_PIECE = 256 << 10, 1 << 20
"""Small enough to begin soon and to share well, large enough that moving one takes much longer than asking for it."""
_PIECE_STEP = 64 << 10
_PIECES_PER_LANE, _NATIVE_PIECES_PER_LANE = 4, 8
_BYTES_PER_LANE = 512 << 10
"""A copy takes one thread more for each of these: waking one takes as long as copying so much."""
_NO_SLOT = -1


class StagingDriver(Protocol):
    """What the ring asks of a device; see ``targets/gpu/driver.py``."""

    def current(self) -> AbstractContextManager[None]: ...
    def allocate_pinned(self, nbytes: int) -> int: ...
    def copy_to_device(self, destination: int, source: int, nbytes: int, stream: int) -> None: ...
    def copy_to_host(self, destination: int, source: int, nbytes: int, stream: int) -> None: ...
    def create_stream(self) -> int: ...
    def create_event(self) -> Any: ...
    def record_event(self, event: Any, stream: int) -> None: ...
    def wait_event(self, event: Any, stream: int) -> None: ...
    def await_event(self, doing: str, event: Any) -> None: ...
    def wait(self, doing: str, stream: int | None) -> None: ...
    def native_copies(self) -> NativeCopies | None: ...
    def failure(self, doing: str, code: int) -> Exception: ...


class _Lane:
    """One thread's page-locked block and stream. ``state`` is what native code knows of it.

    ``state.last``: the number of the event behind its latest copy over, that may be under way, or _NO_SLOT.
    """

    __slots__ = ("_handles", "block", "events", "state", "stream")

    def __init__(self, driver: StagingDriver, state: Any, native: bool) -> None:
        self.block = driver.allocate_pinned(LANE_BYTES)
        self.stream = driver.create_stream()
        self.events = [driver.create_event() for _ in range(LANE_BYTES // LEAST_PIECE)]
        self.state = state
        state.block, state.stream, state.last = self.block, self.stream, _NO_SLOT
        if native:
            self._handles = (ctypes.c_int64 * len(self.events))(*map(int, self.events))
            state.events = ctypes.addressof(self._handles)


class _Piece(NamedTuple):
    """A part of a copy that one slot holds."""

    position: int
    copy: HostCopy
    offset: int
    nbytes: int


class _Batch:
    """Copies that the lanes share out among themselves."""

    def __init__(self, copies: Sequence[tuple[int, HostCopy]], piece_bytes: int, lanes: int) -> None:
        self.piece_bytes = piece_bytes
        self.commit: Callable[[], None] | None = None
        self.pieces = deque(_cut(copies, piece_bytes))
        self.failure: BaseException | None = None
        self.done: SimpleQueue[None] = SimpleQueue()
        self._missing = set(range(lanes))
        self._lock = threading.Lock()
        self._passes: SimpleQueue[None] = SimpleQueue()
        self._lanes = lanes
        self.open = False
        """Pieces are being written to the host."""

    def take(self) -> _Piece | None:
        """A piece that nobody has taken. None: there is no more to do, or no more use in it."""
        if self.failure is not None:
            return None
        try:
            return self.pieces.popleft()
        except IndexError:
            return None

    def fail(self, error: BaseException, piece: _Piece | None = None) -> None:
        """Note what went wrong. The first is told."""
        if isinstance(error, Exception) and piece is not None:
            told = CopyFailure(piece.position, error, partly=self.open)
            told.__cause__ = error
            error = told
        with self._lock:
            if self.failure is None:
                self.failure = error

    def arrive(self, lane: int) -> None:
        """A lane's first pieces have landed, or it has given up. The last lane to arrive lets all go on. May be repeated."""
        with self._lock:
            if lane not in self._missing:
                return
            self._missing.remove(lane)
            if self._missing:
                return
        try:
            if self.commit is not None and self.failure is None:
                self.commit()
        except BaseException as error:
            self.fail(error)
        self.open = self.failure is None
        for _ in range(self._lanes):
            self._passes.put(None)

    def all_arrived(self) -> bool:
        """Wait for the other lanes; whether the host's arrays may be written now."""
        self._passes.get()
        return self.open


class StagingRing:
    """Lanes of one device. Any thread may use it; one does at a time, and others are told that it is busy.

    Call it with the device current.
    """

    def __init__(self, driver: StagingDriver) -> None:
        self._driver = driver
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._lanes: list[_Lane] = []
        self._threads = CopyThreads()
        self._event: Any = None
        self._states = (LaneState * MOST_COPY_THREADS)()
        self._native: NativeLanes | None = None

    def reserve(self) -> bool:
        """Take the ring for copies, if it is free and staging is not turned off. Afterwards: ``give_back``."""
        if self._pid != os.getpid():
            self._begin()  # the parent's lanes are no longer anybody's
        if not copy_threads() or not self._lock.acquire(blocking=False):
            return False
        if not self._lanes:
            try:
                self._event = self._driver.create_event()
                self._native = native_lanes(self._driver, self._states)
                self._lanes.append(self._new_lane())
            except Exception:  # no memory to page-lock
                self._lock.release()
                return False
        return True

    def give_back(self) -> None:
        """The ring is free again."""
        self._lock.release()

    def upload(self, copies: Sequence[tuple[int, HostCopy]], stream: int) -> None:
        """Copy over, behind the work on ``stream`` and before its further work. The host's bytes have been read at return.

        ``copies`` have their positions with them, by which CopyFailure names one that failed. Nothing is under way then.
        """
        self._driver.record_event(self._event, stream)
        dense, others = self._by_way(copies)
        if others:
            batch, lanes = self._batch(others)
            self._run(batch, lanes, partial(self._send, stream=stream))
        if dense:
            assert self._native is not None
            pieces, lanes = self._pieces(dense)
            fault = self._native.send(pieces, len(lanes), self._slots(pieces), int(self._event), stream)
            if fault is not None:
                raise self._failure(fault)

    def download(
        self, copies: Sequence[tuple[int, HostCopy]], commit: Callable[[], None] | None = None, whole: bool = False
    ) -> bool:
        """Copy back from streams whose work has ended.

        Nothing is written on the host before the lanes are full or everything has landed in them, and ``commit`` has been
        called then without error. So for what fits, CopyFailure means that the host's arrays are as they were. ``whole``:
        where it does not fit, do nothing and return False.
        """
        if not self._by_way(copies)[1]:
            return self._download_natively(copies, commit, whole)
        batch, lanes = self._batch(copies)
        if whole and len(batch.pieces) > len(lanes) * self._slots(batch):
            return False
        batch.commit = commit
        try:
            self._run(batch, lanes, self._fetch)
        except BaseException as error:
            # Arrays are half written, be it for a copy or an interrupt. What failed is not known by piece: a runtime may
            # tell of a failure at any later call. So all of it is fetched once more.
            if not batch.open or not self._fetched_again(copies, lanes[0]) or not isinstance(error, CopyFailure):
                raise
        return True

    def _download_natively(
        self, copies: Sequence[tuple[int, HostCopy]], commit: Callable[[], None] | None, whole: bool
    ) -> bool:
        native = self._native
        assert native is not None
        pieces, lanes = self._pieces(copies)
        slots = self._slots(pieces)
        if whole and len(pieces) > len(lanes) * slots:
            return False
        fault = native.fetch(pieces, len(lanes), slots)
        if fault is not None:
            raise self._failure(fault)
        if commit is not None:
            commit()
        try:
            fault = native.write(pieces)
            if fault is not None:
                raise self._failure(fault, partly=True)
        except BaseException as error:  # as in download
            if not self._fetched_again(copies, lanes[0]) or not isinstance(error, CopyFailure):
                raise
        return True

    def _fetched_again(self, copies: Sequence[tuple[int, HostCopy]], lane: _Lane) -> bool:
        """Copy back the driver's own way; whether all has arrived."""
        try:
            for _, copy in copies:
                if copy.host.address is None:
                    return False
                self._driver.copy_to_host(copy.host.address, copy.device, copy.nbytes, lane.stream)
            self._driver.wait("waiting for copies made again", lane.stream)
        except Exception:  # the device is lost; what it was lost with is told
            return False
        return True

    def move(self, copies: Sequence[tuple[HostCopy, int]]) -> None:
        """Copy on the host: fill the host's sides of ``copies`` from the addresses next to them."""
        dense, others = self._by_way([(position, copy) for position, (copy, _) in enumerate(copies)])
        sources = [address for _, address in copies]
        if dense:
            assert self._native is not None
            pieces, lanes = self._pieces([(n, HostCopy(sources[n], copy.host, copy.nbytes)) for n, copy in dense])
            self._native.move(pieces, len(lanes))
        if not others:
            return
        batch, lanes = self._batch(others)

        def work(number: int, lane: _Lane, batch: _Batch) -> None:
            while (piece := batch.take()) is not None:
                piece.copy.host.write(piece.offset, piece.nbytes, sources[piece.position] + piece.offset)

        self._run(batch, lanes, work)

    def _by_way(self, copies: Sequence[tuple[int, HostCopy]]) -> tuple[list[tuple[int, HostCopy]], list[tuple[int, HostCopy]]]:
        """Copies for native lanes, and copies for Python's."""
        if self._native is None:
            return [], list(copies)
        return (
            [item for item in copies if item[1].host.address is not None],
            [item for item in copies if item[1].host.address is None],
        )

    def _pieces(self, copies: Sequence[tuple[int, HostCopy]]) -> tuple[Pieces, list[_Lane]]:
        """Copies cut for native lanes, and the lanes."""
        assert self._native is not None
        total = sum(copy.nbytes for _, copy in copies)
        lanes = self._allocated(self._native.ready(_lanes_for(total)))
        return Pieces(copies, _piece_bytes(total, len(lanes) * _NATIVE_PIECES_PER_LANE)), lanes

    def _batch(self, copies: Sequence[tuple[int, HostCopy]]) -> tuple[_Batch, list[_Lane]]:
        """Copies cut for Python's lanes, and the lanes."""
        total = sum(copy.nbytes for _, copy in copies)
        lanes = self._allocated(1 + self._threads.ready(_lanes_for(total) - 1))
        return _Batch(copies, _piece_bytes(total, len(lanes) * _PIECES_PER_LANE), len(lanes)), lanes

    def _slots(self, cut: Pieces | _Batch) -> int:
        """Of each lane."""
        return LANE_BYTES // cut.piece_bytes

    def _allocated(self, wanted: int) -> list[_Lane]:
        """At most this many lanes."""
        while len(self._lanes) < wanted:
            try:
                self._lanes.append(self._new_lane())
            except Exception:  # no more memory to page-lock: those that there are will do
                break
        return self._lanes[:wanted]

    def _new_lane(self) -> _Lane:
        return _Lane(self._driver, self._states[len(self._lanes)], self._native is not None)

    def _failure(self, fault: Fault, partly: bool = False) -> Exception:
        """What a native lane failed with, once nothing is under way."""
        error = self._driver.failure(fault.doing, fault.code)
        self._settle(self._lanes)
        if fault.position is None:
            return error
        told = CopyFailure(fault.position, error, partly)
        told.__cause__ = error
        return told

    def _settle(self, lanes: Sequence[_Lane]) -> None:
        """Wait for all copies in lanes, after a failure."""
        for lane in lanes:
            try:
                self._driver.wait("waiting for the copies before a failure", lane.stream)
            except Exception:  # the device is lost; what it was lost with is told
                break

    def _run(self, batch: _Batch, lanes: list[_Lane], work: Callable[[int, _Lane, _Batch], None]) -> None:
        """Work on a batch in all lanes, and raise what one failed with once all have stopped and nothing is under way."""
        self._threads.give(partial(_guarded, work, n, lane, batch) for n, lane in enumerate(lanes) if n)
        _guarded(work, 0, lanes[0], batch)
        for _ in lanes:
            while True:
                try:
                    batch.done.get()
                    break
                except BaseException as interrupt:  # threads still use the caller's arrays
                    batch.fail(interrupt)
        if batch.failure is not None:
            self._settle(lanes)
            raise batch.failure

    def _send(self, number: int, lane: _Lane, batch: _Batch, stream: int) -> None:
        """Copy pieces over in one lane."""
        driver, state, slots, used = self._driver, lane.state, self._slots(batch), 0
        with driver.current():
            if state.last != _NO_SLOT:
                driver.await_event("waiting for the copies before", lane.events[state.last])
                state.last = _NO_SLOT
            while (piece := batch.take()) is not None:
                try:
                    if not used:
                        driver.wait_event(self._event, lane.stream)
                    slot, event = lane.block + used % slots * batch.piece_bytes, lane.events[used % slots]
                    if used >= slots:
                        driver.await_event("waiting for a copy", event)
                    piece.copy.host.read(piece.offset, piece.nbytes, slot)
                    driver.copy_to_device(piece.copy.device + piece.offset, slot, piece.nbytes, lane.stream)
                    driver.record_event(event, lane.stream)
                except Exception as error:
                    batch.fail(error, piece)
                    return
                state.last = used % slots
                used += 1
            if used:
                driver.wait_event(lane.events[state.last], stream)

    def _fetch(self, number: int, lane: _Lane, batch: _Batch) -> None:
        """Copy pieces back in one lane."""
        queued: deque[tuple[int, _Piece]] = deque()
        with self._driver.current():
            try:
                while len(queued) < self._slots(batch) and self._ask(lane, batch, len(queued), queued):
                    pass
                for slot, piece in queued:
                    if not self._landed(lane, batch, slot, piece):
                        break
            except BaseException as error:
                batch.fail(error)
            finally:
                batch.arrive(number)
            if not batch.all_arrived():
                return
            first_round = len(queued)
            while queued:
                try:
                    slot, piece = queued[0]
                    arrived = first_round > 0 or self._landed(lane, batch, slot, piece)
                    if arrived:
                        piece.copy.host.write(piece.offset, piece.nbytes, lane.block + slot * batch.piece_bytes)
                    queued.popleft()
                    first_round -= 1
                    if arrived:
                        self._ask(lane, batch, slot, queued)
                except KeyboardInterrupt as interrupt:
                    batch.fail(interrupt)  # and what has landed is written, for arrays that are old or new

    def _ask(self, lane: _Lane, batch: _Batch, slot: int, queued: deque[tuple[int, _Piece]]) -> bool:
        """Queue a further piece's copy into a slot, if there is one."""
        piece = batch.take()
        if piece is None:
            return False
        source, destination = piece.copy.device + piece.offset, lane.block + slot * batch.piece_bytes
        try:
            self._driver.copy_to_host(destination, source, piece.nbytes, lane.stream)
            self._driver.record_event(lane.events[slot], lane.stream)
        except Exception as error:
            batch.fail(error, piece)
            return False
        queued.append((slot, piece))
        return True

    def _landed(self, lane: _Lane, batch: _Batch, slot: int, piece: _Piece) -> bool:
        """Wait for a slot's piece."""
        try:
            self._driver.await_event("waiting for a copy", lane.events[slot])
        except Exception as error:
            batch.fail(error, piece)
            return False
        return True


def _lanes_for(total: int) -> int:
    return min(copy_threads(), max(total // _BYTES_PER_LANE, 1))


def _piece_bytes(total: int, parts: int) -> int:
    """So large that about so many parts make up a copy, within what slots may be."""
    return min(max(-(-total // (parts * _PIECE_STEP)) * _PIECE_STEP, LEAST_PIECE), MOST_PIECE)


def _cut(copies: Sequence[tuple[int, HostCopy]], piece_bytes: int) -> list[_Piece]:
    pieces = []
    for position, copy in copies:
        size = piece_bytes // copy.host.step * copy.host.step
        for offset in range(0, copy.nbytes, size):
            pieces.append(_Piece(position, copy, offset, min(size, copy.nbytes - offset)))
    return pieces


def _guarded(work: Callable[[int, _Lane, _Batch], None], number: int, lane: _Lane, batch: _Batch) -> None:
    """Work in a lane. What it raises is for the one who asked for the batch; that it has ended is told in any case."""
    try:
        work(number, lane, batch)
    except BaseException as error:
        batch.fail(error)
    finally:
        batch.arrive(number)
        batch.done.put(None)
