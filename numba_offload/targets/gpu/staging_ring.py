"""Copies of pageable arrays through page-locked memory, by several threads at once.

A GPU copies from and to page-locked memory only. A driver that is given any other memory moves it through its own, in one
thread, at a fraction of the bus's speed. Here the page-locked memory is a ring of slots, and each thread a *lane*. Over: it
fills a slot from the array, and the next while the device reads. Back: the other way round. Which thread moves which piece is
decided by who is free.

Dense arrays are moved by native lanes (``native_lanes.py``), which need the interpreter once for a batch. Strided ones are
packed by NumPy, so their lanes are Python's (``python_lanes.py``), as are all where a runtime's functions cannot be had by
address.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from numba_offload.mapping.host_copy import CopyFailure, HostCopy
from numba_offload.mapping.settings import MOST_COPY_THREADS, copy_threads
from numba_offload.targets.gpu.native_lanes import Fault, NativeLanes, Pieces, Ring, native_lanes
from numba_offload.targets.gpu.python_lanes import Batch, PythonLanes
from numba_offload.targets.gpu.staging_lane import Lane, StagingDriver, settle

RING_BYTES = 32 << 20
"""Page-locked memory of a device, from its first staged copy on. What fits comes back as one."""
ROUND_BYTES, ROUND_SLOTS = 16 << 20, 32
"""The part of it that a larger batch goes round in on its way over, and its slots: what is used again should be in a cache."""
NATIVE_PIECE, MOST_QUEUED = 128 << 10, 16
"""Pieces small enough to begin soon and to share well; copies of up to so many together, as a bus is slower for small ones."""
LEAST_PIECE, MOST_PIECE = 256 << 10, 1 << 20
"""Python's pieces: large enough that moving one takes much longer than asking for it."""
_PIECE_STEP = 64 << 10
_PIECES_PER_LANE = 4
_BYTES_PER_LANE = 512 << 10
"""A copy takes one thread more for each of these: waking one takes as long as copying so much."""


class Turn:
    """The right to use a ring. It ends with ``give_back``, or when nobody has this any more: interrupts come anywhere."""

    __slots__ = ("__weakref__",)


class _UnderWay(NamedTuple):
    """A stream with copies from or to slots, and whether the ring's event is behind all of them."""

    stream: int
    marked: bool


class StagingRing:
    """The ring of one device. Any thread may use it; one does at a time, and others are told that it is busy.

    Call it with the device current. It may be left at any point: what is under way is noted before it is queued, and the
    next user waits for it.
    """

    def __init__(self, driver: StagingDriver) -> None:
        self._driver = driver
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()  # for the next line, and never for long
        self._turn: weakref.ref[Turn] | None = None
        self._most_lanes = 1
        self._ring = Ring(0, 0)
        self._stream = 0  # of copies back
        self._event: Any = None
        self._under_way: _UnderWay | None = None
        self._native: NativeLanes | None = None
        self._python = PythonLanes(self._driver)
        self._lanes: list[Lane] = []  # Python's

    def expect(self, nbytes: int) -> None:
        """Copies of so many bytes are to come."""
        if self._native is not None and self._pid == os.getpid():
            self._native.rouse(self._lanes_for(nbytes))

    def reserve(self) -> Turn | None:
        """Take the ring for copies; None where it is not free, or staging is turned off. Afterwards: ``give_back``.

        Raises what a runtime fails with, but for having no memory to page-lock: then there is no ring.
        """
        if self._pid != os.getpid():
            self._begin()  # the parent's ring is no longer anybody's
        threads = copy_threads()
        if not threads:
            return None
        turn = Turn()
        with self._lock:
            if self.taken:
                return None
            self._turn = weakref.ref(turn)
        self._most_lanes = threads
        try:
            return turn if self._ring.nbytes or self._page_lock() else None
        except BaseException:  # which may keep this frame, and the turn with it
            self.give_back(turn)
            raise

    @property
    def taken(self) -> bool:
        """Somebody uses it."""
        return self._turn is not None and self._turn() is not None

    def _page_lock(self) -> bool:
        """Make the ring, a smaller one where there is no memory for it; whether there is any."""
        if self._event is None:
            self._stream = self._driver.create_stream()
            self._native = native_lanes(self._driver, MOST_COPY_THREADS)
            self._event = self._driver.create_event()
        nbytes = RING_BYTES
        while nbytes >= min(MOST_PIECE, RING_BYTES):
            try:
                self._ring = Ring(self._driver.allocate_pinned(nbytes), nbytes)
                return True
            except Exception:  # no memory to page-lock
                nbytes //= 2
        return False

    def give_back(self, turn: Turn) -> None:
        """The ring is free again, if the turn has not ended before."""
        with self._lock:
            if self._turn is not None and self._turn() is turn:
                self._turn = None

    def upload(self, copies: Sequence[tuple[int, HostCopy]], stream: int) -> None:
        """Copy over, behind the work on ``stream`` and before its further work. The host's bytes have been read at return.

        ``copies`` have their positions with them, by which CopyFailure names one that failed. Nothing is under way then.
        """
        self._empty()
        dense, others = self._by_way(copies)
        try:
            if others:
                self._driver.record_event(self._event, stream)
                batch, lanes = self._batch(others)
                self._under_way = _UnderWay(stream, marked=False)
                self._python.send(batch, lanes, self._event, stream)
                self._mark(stream)
            if dense:
                if others:
                    self._empty()
                assert self._native is not None
                ring, (pieces, count) = self._ring, self._pieces(dense)
                if not self._holds(pieces):
                    ring = ring._replace(nbytes=min(ROUND_BYTES, ring.nbytes))
                    pieces = Pieces(dense, max(ring.nbytes // ROUND_SLOTS, NATIVE_PIECE))
                most_queued = max(MOST_QUEUED * NATIVE_PIECE // pieces.piece_bytes, 1)
                self._under_way = _UnderWay(stream, marked=False)
                self._check(self._native.send(pieces, count, ring, most_queued, stream), stream)
                self._mark(stream)
        except BaseException:  # an interrupt among them
            settle(self._driver, [stream])
            raise

    def _mark(self, stream: int) -> None:
        """The slots are not to be filled again before what is on the stream has ended."""
        self._under_way = _UnderWay(stream, marked=False)
        self._driver.record_event(self._event, stream)
        self._under_way = _UnderWay(stream, marked=True)

    def _empty(self) -> None:
        """Wait until the copies of the last batch have been made."""
        if self._under_way is None:
            return
        if self._under_way.marked:
            self._driver.await_event("waiting for the copies before", self._event)
        else:  # nobody wants them
            settle(self._driver, [self._under_way.stream])
        self._under_way = None

    def download(
        self, copies: Sequence[tuple[int, HostCopy]], commit: Callable[[], None] | None = None, whole: bool = False
    ) -> bool:
        """Copy back from streams whose work has ended.

        Nothing is written on the host before the ring is full or everything has landed in it, and ``commit`` has been
        called then without error. So for what fits, CopyFailure means that the host's arrays are as they were. ``whole``:
        where it does not fit, do nothing and return False.
        """
        self._empty()
        if self._native is not None and not self._by_way(copies)[1]:
            return self._download_natively(self._native, copies, commit, whole)
        batch, lanes = self._batch(copies)
        if whole and not batch.fits():
            return False
        batch.commit = commit
        try:
            self._python.fetch(batch, lanes)
        except BaseException as error:
            # Arrays are half written, be it for a copy or an interrupt. What failed is not known by piece: a runtime may
            # tell of a failure at any later call. So all of it is fetched once more.
            if not batch.open or not self._fetched_again(copies) or not isinstance(error, CopyFailure):
                raise
        return True

    def _download_natively(
        self, native: NativeLanes, copies: Sequence[tuple[int, HostCopy]], commit: Callable[[], None] | None, whole: bool
    ) -> bool:
        pieces, lanes = self._pieces(copies)
        if whole and not self._holds(pieces):
            return False
        self._under_way = _UnderWay(self._stream, marked=False)
        self._check(native.ask(pieces, lanes, self._ring, MOST_QUEUED, self._stream), self._stream)
        self._check(native.land(pieces), self._stream)
        if commit is not None:
            commit()
        self._write(native, copies, pieces, self._stream)
        return True

    def ask(self, copies: Sequence[tuple[int, HostCopy]], stream: int) -> Pieces | None:
        """Queue copies back behind the work on ``stream``; None where that cannot be done. ``arrive`` goes on.

        The ring is to stay reserved until then; where it does not, they are not wanted. Raises CopyFailure.
        """
        before = self._under_way
        if self._native is None or self._by_way(copies)[1] or (before is not None and before.stream != stream):
            return None
        pieces, lanes = self._pieces(copies)
        if not self._holds(pieces):
            return None
        self._under_way = _UnderWay(stream, marked=False)  # what was before comes before
        self._check(self._native.ask(pieces, lanes, self._ring, MOST_QUEUED, stream), stream)
        return pieces

    def arrive(self, copies: Sequence[tuple[int, HostCopy]], pieces: Pieces, stream: int) -> None:
        """Write what was asked for on the host, once it is here. Raises CopyFailure; then arrays are as they were."""
        assert self._native is not None
        self._check(self._native.land(pieces), stream)
        self._write(self._native, copies, pieces, stream)

    def _holds(self, pieces: Pieces) -> bool:
        return len(pieces) <= self._ring.slots(pieces.piece_bytes)

    def _write(
        self, native: NativeLanes, copies: Sequence[tuple[int, HostCopy]], pieces: Pieces, stream: int
    ) -> None:
        """Write on the host what has landed, and the rest as it comes."""
        try:
            self._check(native.write(pieces), stream, partly=True)
            self._under_way = None
        except BaseException as error:  # as in download
            settle(self._driver, [stream])
            if not self._fetched_again(copies) or not isinstance(error, CopyFailure):
                raise

    def _fetched_again(self, copies: Sequence[tuple[int, HostCopy]]) -> bool:
        """Copy back the driver's own way; whether all has arrived."""
        try:
            for _, copy in copies:
                if copy.host.address is None:
                    return False
                self._driver.copy_to_host(copy.host.address, copy.device, copy.nbytes, self._stream)
            self._driver.wait("waiting for copies made again", self._stream)
        except Exception:  # the device is lost; what it was lost with is told
            return False
        return True

    def move(self, copies: Sequence[tuple[HostCopy, int]]) -> None:
        """Copy on the host: fill the host's sides of ``copies`` from the addresses next to them."""
        dense, others = self._by_way([(position, copy) for position, (copy, _) in enumerate(copies)])
        sources = [address for _, address in copies]
        if dense:
            assert self._native is not None
            pieces, count = self._pieces([(n, HostCopy(sources[n], copy.host, copy.nbytes)) for n, copy in dense])
            self._native.move(pieces, count)
        if others:
            batch, lanes = self._batch(others)
            self._python.move(batch, lanes, sources)

    def _by_way(self, copies: Sequence[tuple[int, HostCopy]]) -> tuple[list[tuple[int, HostCopy]], list[tuple[int, HostCopy]]]:
        """Copies for native lanes, and copies for Python's."""
        if self._native is None:
            return [], list(copies)
        return (
            [item for item in copies if item[1].host.address is not None],
            [item for item in copies if item[1].host.address is None],
        )

    def _pieces(self, copies: Sequence[tuple[int, HostCopy]]) -> tuple[Pieces, int]:
        """Copies cut for native lanes, and how many lanes."""
        assert self._native is not None
        lanes = self._native.ready(self._lanes_for(sum(copy.nbytes for _, copy in copies)))
        return Pieces(copies, NATIVE_PIECE), lanes

    def _batch(self, copies: Sequence[tuple[int, HostCopy]]) -> tuple[Batch, list[Lane]]:
        """Copies cut for Python's lanes, and the lanes, each with a part of the ring."""
        total = sum(copy.nbytes for _, copy in copies)
        count = self._python.ready(self._lanes_for(total))
        part = self._ring.nbytes // count
        piece_bytes = min(_piece_bytes(total, count * _PIECES_PER_LANE), part)
        while len(self._lanes) < count:
            self._lanes.append(Lane(self._driver))
        lanes, slots = self._lanes[:count], part // piece_bytes
        for number, lane in enumerate(lanes):
            lane.take(self._ring.block + number * part, slots)
        return Batch(copies, piece_bytes, count, slots), lanes

    def _lanes_for(self, total: int) -> int:
        return min(self._most_lanes, max(total // _BYTES_PER_LANE, 1))

    def _check(self, fault: Fault | None, stream: int, partly: bool = False) -> None:
        """Raise what a native lane has failed with, once nothing is under way."""
        if fault is None:
            return
        settle(self._driver, [stream])
        error = self._driver.failure(fault.doing, fault.code)
        raise CopyFailure(fault.position, error, partly) from error


def _piece_bytes(total: int, parts: int) -> int:
    """So large that about so many parts make up a copy, within what slots may be."""
    return min(max(-(-total // (parts * _PIECE_STEP)) * _PIECE_STEP, LEAST_PIECE), MOST_PIECE)
