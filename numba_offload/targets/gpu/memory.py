"""The memory of a GPU, and the ways that copies take to it and back.

Small arrays go through the driver, which is quickest for them; page-locked ones (``pinned_empty``, or registered by others)
are copied by the device directly; other arrays are staged in page-locked memory by several threads
(``staging_ring.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from numba_offload.mapping.host_copy import (
    CopyFailure,
    HostBytes,
    HostCopy,
    download_one_by_one,
    largest_dense,
    upload_one_by_one,
)
from numba_offload.mapping.layout import address
from numba_offload.targets.gpu.driver import GPUDriver
from numba_offload.targets.gpu.native_lanes import Pieces
from numba_offload.targets.gpu.staging_ring import StagingRing, Turn
from numba_offload.targets.gpu.streams import stream_handle

SMALL_COPY = 128 << 10
"""Bytes below which an array is not worth cutting up."""
SMALL_BATCH = 1 << 20
"""Bytes of all arrays below which a driver's own way, in one thread, takes no longer: others would wake when all is done."""
_ASKED_EVERY, _REMEMBERED = 16, 1024
"""A runtime takes microseconds to say whether memory is page-locked: copies of the same address ask it as often as this."""


class GPUMemory:
    """Allocations and copies of one device.

    ``wait`` waits for a stream, given its handle, and raises what an asynchronous launch on it failed with: the
    host must not see what such a launch left.
    """

    unified = False

    def __init__(self, driver: GPUDriver, wait: Callable[[int], None]) -> None:
        self._driver = driver
        self._wait = wait
        self._ring = StagingRing(driver)
        self._events: list[Any] = []  # to be recorded again
        self._side: int | None = None
        self._pageable: dict[int, int] = {}
        self._staging = False  # large arrays have been staged: not all of them are page-locked

    def allocate(self, nbytes: int) -> int:
        with self._driver.current():
            return self._driver.allocate(nbytes)

    def free(self, address: int) -> None:
        with self._driver.current():
            self._driver.free(address)

    def memory_info(self) -> tuple[int, int]:
        with self._driver.current():
            return self._driver.memory_info()

    def allocate_pinned(self, nbytes: int) -> int:
        with self._driver.current():
            address = self._driver.allocate_pinned(nbytes)
        self._pageable.clear()
        return address

    def free_pinned(self, address: int) -> None:
        with self._driver.current():
            self._driver.free_pinned(address)

    def mark(self, stream: Any = None) -> Any:
        with self._driver.current():
            try:
                event = self._events.pop()
            except IndexError:
                event = self._driver.create_event()
            self._driver.record_event(event, stream_handle(stream))
        return event

    def order(self, mark: Any, stream: Any = None) -> None:
        with self._driver.current():
            self._driver.wait_event(mark, stream_handle(stream))
        self._events.append(mark)

    def side_stream(self) -> int:
        if self._side is None:
            with self._driver.current():
                self._side = self._driver.create_stream()
        return self._side

    def expect(self, nbytes: int) -> None:
        if self._staging and nbytes >= SMALL_BATCH:
            self._ring.expect(nbytes)

    # ------------------------------------------------------------------------------------------------------ one copy

    def copy_to_device(self, destination: int, source: int, nbytes: int, stream: Any = None) -> None:
        self.copy_all_to_device((HostCopy(destination, HostBytes(source), nbytes),), stream)

    def copy_to_host(self, destination: int, source: int, nbytes: int, stream: Any = None) -> None:
        self.copy_all_to_host((HostCopy(source, HostBytes(destination), nbytes),), stream)

    def copy_within(self, destination: int, source: int, nbytes: int, stream: Any = None) -> None:
        with self._driver.current():
            self._driver.copy_within(destination, source, nbytes, stream_handle(stream))

    # -------------------------------------------------------------------------------------------------- several copies

    def copy_all_to_device(self, copies: Sequence[HostCopy], stream: Any = None) -> None:
        driver, handle = self._driver, stream_handle(stream)
        with driver.current():
            large = [position for position, copy in enumerate(copies) if copy.nbytes >= SMALL_COPY]
            staged = [position for position in large if not self._direct(copies[position])]
            enough = _total(copies, staged) >= SMALL_BATCH
            self._staging = self._staging or enough
            turn = self._ring.reserve() if enough else None
            if turn is None:
                self._upload_directly(copies, handle)
                return
            try:
                if len(staged) < len(copies):
                    # First, as the device reads these while arrays are being staged.
                    rest = [position for position in range(len(copies)) if position not in staged]
                    self._upload_directly([copies[position] for position in rest], handle, rest)
                self._ring.upload([(position, copies[position]) for position in staged], handle)
            finally:
                self._ring.give_back(turn)

    def _upload_directly(self, copies: Sequence[HostCopy], handle: int, positions: Sequence[int] | None = None) -> None:
        driver, locked = self._driver, False
        try:
            upload_one_by_one(copies, lambda device, host, nbytes: driver.copy_to_device(device, host, nbytes, handle))
            locked = any(self._page_locked(copy, any) for copy in copies)
        except CopyFailure as failure:
            with suppress(Exception):  # the device may be lost; what it was lost with is told
                driver.wait("waiting for the copies before a failure", handle)
            if positions is not None:
                failure.position = positions[failure.position]
            raise
        if locked:
            # The runtime has staged pageable memory by now; from page-locked memory it reads on.
            driver.wait("waiting for a copy", handle)

    def copy_all_to_host(self, copies: Sequence[HostCopy], stream: Any = None) -> None:
        """As ``DeviceMemory.copy_all_to_host``.

        What is staged is fetched before any array is written, into the ring's lanes or, if that is more than they hold, into
        memory aside. Only the largest dense array, where it does not fit or is page-locked, comes last and while it is
        written: if the device is lost in the middle of that, its content is neither old nor new, as CopyFailure then says.
        """
        driver, handle = self._driver, stream_handle(stream)
        with driver.current():
            self._wait(handle)
            large = [position for position, copy in enumerate(copies) if copy.nbytes >= SMALL_COPY]
            if _total(copies, large) >= SMALL_BATCH:
                last = largest_dense(copies)
                locked = last >= 0 and self._direct(copies[last])
                turn = None if locked and len(copies) == 1 else self._ring.reserve()
                if turn is not None:
                    try:
                        self._fetch_staged(copies, last, locked, handle)
                    finally:
                        self._ring.give_back(turn)
                    return
            download_one_by_one(copies, partial(self._fetch, handle))

    def ask_all_to_host(self, copies: Sequence[HostCopy], stream: Any = None) -> _AskedCopies | None:
        handle, ring = stream_handle(stream), self._ring
        numbered = list(enumerate(copies))
        if _total(copies, range(len(copies))) < SMALL_BATCH:
            return None
        with self._driver.current():
            if any(copy.host.address is None or self._direct(copy) for copy in copies):
                return None
            turn = ring.reserve()
            pieces = None
            try:
                pieces = None if turn is None else ring.ask(numbered, handle)
            finally:
                if turn is not None and pieces is None:
                    ring.give_back(turn)
        if turn is None or pieces is None:
            return None
        return _AskedCopies(self._driver, ring, turn, numbered, pieces, handle)

    def _fetch_staged(self, copies: Sequence[HostCopy], last: int, locked: bool, handle: int) -> None:
        ring, numbered = self._ring, list(enumerate(copies))

        def fetch_last() -> None:
            _, copy = numbered[last]
            partly = False
            try:
                assert copy.host.address is not None
                self._driver.copy_to_host(copy.host.address, copy.device, copy.nbytes, handle)
                partly = True
                self._driver.wait("waiting for a copy", handle)
            except Exception as error:
                raise CopyFailure(last, error, partly) from error

        commit = fetch_last if locked else None
        others = [item for item in numbered if item[0] != last]
        if ring.download(others if locked else numbered, commit, whole=True):
            return
        aside = [np.empty(copy.nbytes, dtype=np.uint8) for _, copy in others]
        if others:
            self._fetch_aside(others, aside)
        if commit is not None:
            commit()
        elif last >= 0:
            ring.download([numbered[last]])
        if others:
            ring.move([(copy, address(memory)) for (_, copy), memory in zip(others, aside, strict=True)])

    def _fetch_aside(self, copies: Sequence[tuple[int, HostCopy]], aside: Sequence[np.ndarray]) -> None:
        fetched = [
            (position, HostCopy(copy.device, HostBytes(address(memory)), copy.nbytes))
            for (position, copy), memory in zip(copies, aside, strict=True)
        ]
        try:
            self._ring.download(fetched)
        except CopyFailure as failure:
            failure.partly = False  # what was written is not an array
            raise

    def _fetch(self, handle: int, destination: int, source: int, nbytes: int) -> None:
        self._driver.copy_to_host(destination, source, nbytes, handle)
        self._driver.wait("waiting for a copy", handle)

    def _direct(self, copy: HostCopy) -> bool:
        """Whether the device copies it by itself. Asked now and then where the answer was no: then staging is right, too."""
        start = copy.host.address
        if start is None:
            return False
        left = self._pageable.get(start, 0)
        if left:
            self._pageable[start] = left - 1
            return False
        if self._page_locked(copy, all):
            return True
        if len(self._pageable) >= _REMEMBERED:
            self._pageable.clear()
        self._pageable[start] = _ASKED_EVERY - 1
        return False

    def _page_locked(self, copy: HostCopy, ends: Callable[[Iterable[bool]], bool]) -> bool:
        """Whether "all" or "any" of its two ends are. A device must not be given what is so in part."""
        start = copy.host.address
        return start is not None and ends(self._driver.page_locked(end) for end in (start, start + copy.nbytes - 1))


class _AskedCopies:
    """What comes into the ring behind a launch. The ring is reserved until one of these has been called, or this is gone."""

    __slots__ = ("_copies", "_driver", "_handle", "_pieces", "_ring", "_turn")

    def __init__(
        self,
        driver: GPUDriver,
        ring: StagingRing,
        turn: Turn,
        copies: Sequence[tuple[int, HostCopy]],
        pieces: Pieces,
        handle: int,
    ) -> None:
        self._driver, self._ring, self._turn = driver, ring, turn
        self._copies, self._pieces, self._handle = copies, pieces, handle

    def arrive(self) -> None:
        try:
            with self._driver.current():
                self._ring.arrive(self._copies, self._pieces, self._handle)
        finally:
            self._ring.give_back(self._turn)

    def drop(self) -> None:
        self._ring.give_back(self._turn)


def _total(copies: Sequence[HostCopy], positions: Sequence[int]) -> int:
    """Bytes of some of the copies."""
    return sum(copies[position].nbytes for position in positions)
