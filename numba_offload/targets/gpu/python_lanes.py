"""Copy lanes whose work is Python's: for strided arrays, which NumPy packs, and runtimes without native lanes.

Each piece takes the interpreter's lock several times, so more threads help less than in ``native_lanes.py``.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from queue import SimpleQueue
from typing import Any, NamedTuple

from numba_offload.mapping.host_copy import CopyFailure, HostCopy
from numba_offload.targets.gpu.copy_threads import CopyThreads
from numba_offload.targets.gpu.staging_lane import Lane, StagingDriver, settle


class _Piece(NamedTuple):
    """A part of a copy that one slot holds."""

    position: int
    copy: HostCopy
    offset: int
    nbytes: int


class Batch:
    """Copies that the lanes share out among themselves."""

    def __init__(self, copies: Sequence[tuple[int, HostCopy]], piece_bytes: int, lanes: int, slots: int) -> None:
        self.piece_bytes, self.slots = piece_bytes, slots
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

    def fits(self) -> bool:
        """Whether the lanes hold all of it."""
        return len(self.pieces) <= self._lanes * self.slots

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


class PythonLanes:
    """Works on batches in lanes: the first is the caller's, and there is a thread for each of the others."""

    def __init__(self, driver: StagingDriver) -> None:
        self._driver = driver
        self._threads = CopyThreads()

    def ready(self, wanted: int) -> int:
        """Have ``wanted`` lanes with a thread, the caller's among them; the system may give fewer. How many there are."""
        return 1 + self._threads.ready(wanted - 1)

    def send(self, batch: Batch, lanes: Sequence[Lane], before: Any, stream: int) -> None:
        """Copy over, behind the event ``before`` and before further work on ``stream``. The host's bytes have been read."""
        self._run(batch, lanes, partial(self._send, before=before, stream=stream))

    def fetch(self, batch: Batch, lanes: Sequence[Lane]) -> None:
        """Copy back; ``batch.open`` tells whether the host's arrays were being written when it failed."""
        self._run(batch, lanes, self._fetch)

    def move(self, batch: Batch, lanes: Sequence[Lane], sources: Sequence[int]) -> None:
        """Copy on the host, from ``sources`` by the copies' positions."""

        def work(number: int, lane: Lane, batch: Batch) -> None:
            while (piece := batch.take()) is not None:
                piece.copy.host.write(piece.offset, piece.nbytes, sources[piece.position] + piece.offset)

        self._run(batch, lanes, work)

    def _run(self, batch: Batch, lanes: Sequence[Lane], work: Callable[[int, Lane, Batch], None]) -> None:
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
            settle(self._driver, [lane.stream for lane in lanes])
            raise batch.failure

    def _send(self, number: int, lane: Lane, batch: Batch, before: Any, stream: int) -> None:
        """Copy pieces over in one lane."""
        driver, slots, used = self._driver, batch.slots, 0
        with driver.current():
            while (piece := batch.take()) is not None:
                try:
                    if not used:
                        driver.wait_event(before, lane.stream)
                    slot, event = lane.block + used % slots * batch.piece_bytes, lane.events[used % slots]
                    if used >= slots:
                        driver.await_event("waiting for a copy", event)
                    piece.copy.host.read(piece.offset, piece.nbytes, slot)
                    driver.copy_to_device(piece.copy.device + piece.offset, slot, piece.nbytes, lane.stream)
                    driver.record_event(event, lane.stream)
                except Exception as error:
                    batch.fail(error, piece)
                    return
                used += 1
            if used:
                driver.wait_event(lane.events[(used - 1) % slots], stream)

    def _fetch(self, number: int, lane: Lane, batch: Batch) -> None:
        """Copy pieces back in one lane."""
        queued: deque[tuple[int, _Piece]] = deque()
        with self._driver.current():
            try:
                while len(queued) < batch.slots and self._ask(lane, batch, len(queued), queued):
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

    def _ask(self, lane: Lane, batch: Batch, slot: int, queued: deque[tuple[int, _Piece]]) -> bool:
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

    def _landed(self, lane: Lane, batch: Batch, slot: int, piece: _Piece) -> bool:
        """Wait for a slot's piece."""
        try:
            self._driver.await_event("waiting for a copy", lane.events[slot])
        except Exception as error:
            batch.fail(error, piece)
            return False
        return True


def _cut(copies: Sequence[tuple[int, HostCopy]], piece_bytes: int) -> list[_Piece]:
    pieces = []
    for position, copy in copies:
        size = piece_bytes // copy.host.step * copy.host.step
        for offset in range(0, copy.nbytes, size):
            pieces.append(_Piece(position, copy, offset, min(size, copy.nbytes - offset)))
    return pieces


def _guarded(work: Callable[[int, Lane, Batch], None], number: int, lane: Lane, batch: Batch) -> None:
    """Work in a lane. What it raises is for the one who asked for the batch; that it has ended is told in any case."""
    try:
        work(number, lane, batch)
    except BaseException as error:
        batch.fail(error)
    finally:
        batch.arrive(number)
        batch.done.put(None)
