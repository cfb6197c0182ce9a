"""Memory models of the CPU target: the host's own memory, and a heap apart that makes every transfer real.

The heap exists to show mistakes without a GPU. New and freed memory holds a poison pattern, so that a missing
upload or a stale pointer gives wrong numbers at once; guards around each buffer show a kernel that writes
outside it.
"""

from __future__ import annotations

import ctypes
import threading
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from numba_offload.errors import TargetError
from numba_offload.mapping.host_copy import HostCopy, download_one_by_one, upload_one_by_one

POISON = 0xA5
_GUARD = 256
_ALIGNMENT = 256
_QUARANTINE = 16 << 20


class _HostOnly:
    """What memory on the host has to say of streams and of page-locked memory: nothing is ever under way."""

    def memory_info(self) -> None:
        return None

    def allocate_pinned(self, nbytes: int) -> None:
        return None

    def free_pinned(self, address: int) -> None:
        raise TargetError("the CPU page-locks no memory, so there is none to free")

    def mark(self, stream: Any = None) -> None:
        return None

    def order(self, mark: Any, stream: Any = None) -> None:
        return None

    def expect(self, nbytes: int) -> None:
        """Copies are made by the caller."""

    def ask_all_to_host(self, copies: Sequence[HostCopy], stream: Any = None) -> None:
        return None

    def side_stream(self) -> None:
        return None

    def copy_to_device(self, destination: int, source: int, nbytes: int, stream: Any = None) -> None:
        ctypes.memmove(destination, source, nbytes)

    def copy_to_host(self, destination: int, source: int, nbytes: int, stream: Any = None) -> None:
        ctypes.memmove(destination, source, nbytes)

    def copy_within(self, destination: int, source: int, nbytes: int, stream: Any = None) -> None:
        ctypes.memmove(destination, source, nbytes)

    def copy_all_to_device(self, copies: Sequence[HostCopy], stream: Any = None) -> None:
        upload_one_by_one(copies, lambda device, host, nbytes: self.copy_to_device(device, host, nbytes, stream))

    def copy_all_to_host(self, copies: Sequence[HostCopy], stream: Any = None) -> None:
        download_one_by_one(copies, lambda host, device, nbytes: self.copy_to_host(host, device, nbytes, stream))


class UnifiedHostMemory(_HostOnly):
    """Host memory as device memory: addresses are shared, so nothing is allocated or copied for a launch."""

    unified = True

    def allocate(self, nbytes: int) -> int:
        raise TargetError("unified memory needs no buffers: host addresses are device addresses")

    def free(self, address: int) -> None:
        raise TargetError("unified memory has no buffers to free: host addresses are device addresses")


class HostHeap(_HostOnly):
    """Device memory that is a private part of the host's. Copies are real; misuse raises ``TargetError``."""

    unified = False

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._starts: list[int] = []  # sorted addresses of the live buffers
        self._live: dict[int, tuple[int, np.ndarray]] = {}
        # Freed memory stays poisoned for a while before the allocator may give it to something else.
        self._quarantine: deque[np.ndarray] = deque()
        self._quarantined = 0

    @property
    def live_buffers(self) -> int:
        """Buffers allocated and not freed."""
        return len(self._live)

    def allocate(self, nbytes: int) -> int:
        storage = np.full(nbytes + 2 * _GUARD + _ALIGNMENT, POISON, dtype=np.uint8)
        base = storage.__array_interface__["data"][0]
        address = -(-(base + _GUARD) // _ALIGNMENT) * _ALIGNMENT
        with self._lock:
            self._live[address] = (nbytes, storage)
            self._starts.insert(bisect_right(self._starts, address), address)
        return address

    def free(self, address: int) -> None:
        with self._lock:
            if address not in self._live:
                raise TargetError(f"freeing device address {address:#x}, which is no live buffer")
            nbytes, storage = self._live.pop(address)
            self._starts.remove(address)
            outside = self._written_outside(address, nbytes, storage)
            storage.fill(POISON)
            self._quarantine.append(storage)
            self._quarantined += storage.nbytes
            while self._quarantined > _QUARANTINE:
                self._quarantined -= self._quarantine.popleft().nbytes
        if outside:
            raise TargetError(f"the buffer of {nbytes} bytes at {address:#x} was written outside its bounds")

    def recycle(self, address: int) -> None:
        """The pool keeps this buffer for another use: what it holds must not be taken for data."""
        with self._lock:
            nbytes, storage = self._live[address]
            start = address - storage.__array_interface__["data"][0]
            storage[start : start + nbytes] = POISON

    def copy_to_device(self, destination: int, source: int, nbytes: int, stream: Any = None) -> None:
        self._check(destination, nbytes, "copying to")
        ctypes.memmove(destination, source, nbytes)

    def copy_to_host(self, destination: int, source: int, nbytes: int, stream: Any = None) -> None:
        self._check(source, nbytes, "copying from")
        ctypes.memmove(destination, source, nbytes)

    def copy_within(self, destination: int, source: int, nbytes: int, stream: Any = None) -> None:
        self._check(source, nbytes, "copying from")
        self._check(destination, nbytes, "copying to")
        if destination < source + nbytes and source < destination + nbytes:
            raise TargetError(f"copying {nbytes} bytes from device address {source:#x} to {destination:#x}: the ranges overlap")
        ctypes.memmove(destination, source, nbytes)

    def _check(self, address: int, nbytes: int, doing: str) -> None:
        with self._lock:
            position = bisect_right(self._starts, address) - 1
            if position >= 0:
                start = self._starts[position]
                if address + nbytes <= start + self._live[start][0]:
                    return
        raise TargetError(f"{doing} device address {address:#x}, {nbytes} bytes: not inside a live buffer")

    @staticmethod
    def _written_outside(address: int, nbytes: int, storage: np.ndarray) -> bool:
        start = address - storage.__array_interface__["data"][0]
        return bool((storage[:start] != POISON).any() or (storage[start + nbytes :] != POISON).any())
