"""Device buffers, kept for reuse: a device's own allocator can take longer than a kernel."""

from __future__ import annotations

import threading
from collections import defaultdict
from typing import Any, NamedTuple

from numba_offload.errors import DeviceMemoryError
from numba_offload.mapping.settings import memory_limit
from numba_offload.targets.base import DeviceMemory

_SMALLEST = 256
_LARGE = 32 << 20
_LARGE_STEP = 2 << 20
_NAMED_IN_ERRORS = 8


def size_class(nbytes: int) -> int:
    """Bytes allocated for a request: four sizes to each power of two, large ones in steps of 2 MiB."""
    if nbytes <= _SMALLEST:
        return _SMALLEST
    step = _LARGE_STEP if nbytes > _LARGE else 1 << ((nbytes - 1).bit_length() - 3)
    return -(-nbytes // step) * step


class _Used(NamedTuple):
    """A buffer that is handed out: what it takes, what was asked for, and for whom."""

    size: int
    nbytes: int
    name: str
    owner: str

    def __str__(self) -> str:
        return f"{self.name or 'unnamed'}: {self.nbytes}" + (f" ({self.owner})" if self.owner else "")


class BufferPool:
    """Buffers of one device. Any thread may use it.

    A freed buffer may be handed out again at once: see ``free`` and ``free_behind`` for what may still be using it.
    ``limit`` bounds the bytes held, in use and cached; None: ``NUMBA_OFFLOAD_MEMORY_LIMIT``, and else the device's memory.
    """

    def __init__(self, memory: DeviceMemory, limit: int | None = None) -> None:
        self.memory = memory
        self.limit = limit
        self._lock = threading.Lock()
        self._cached: dict[int, list[tuple[int, Any]]] = defaultdict(list)
        self._used: dict[int, _Used] = {}
        self._held = 0
        # Memory that shows stale reads in tests wants to know when a buffer's content ends.
        self._recycle = getattr(memory, "recycle", None)

    @property
    def bytes_held(self) -> int:
        """Bytes taken from the device, cached ones included."""
        return self._held

    @property
    def bytes_in_use(self) -> int:
        """Bytes of the buffers that are handed out."""
        with self._lock:
            return sum(used.size for used in self._used.values())

    def allocate(self, nbytes: int, name: str = "", owner: str = "", stream: Any = None) -> int:
        """Address of a buffer of at least ``nbytes``, for work on ``stream``.

        ``name`` and ``owner`` say what it is for, in messages: an argument, and the kernel or preload that maps it. Raises
        DeviceMemoryError where there is no room, and TargetError where NUMBA_OFFLOAD_MEMORY_LIMIT is no number of bytes.
        """
        size = size_class(nbytes)
        with self._lock:
            cached = self._cached.get(size)
            if cached:
                address, mark = cached[-1]
                if mark is not None:
                    self.memory.order(mark, stream)
                cached.pop()
            else:
                address = self._fresh(size, nbytes, name, owner)
            self._used[address] = _Used(size, nbytes, name, owner)
            return address

    def free(self, address: int) -> None:
        """Take a buffer back. The work that uses it has ended."""
        self._take_back(address, None)

    def free_behind(self, address: int, stream: Any = None) -> None:
        """Take a buffer back that work on ``stream`` may still be using: its next user's work follows that."""
        try:
            mark = self.memory.mark(stream)
        except Exception:  # the device is lost, and nothing runs on it any more
            mark = None
        self._take_back(address, mark)

    def _take_back(self, address: int, mark: Any) -> None:
        with self._lock:
            used = self._used.pop(address)
            if self._recycle is not None:
                self._recycle(address)
            self._cached[used.size].append((address, mark))

    def trim(self) -> int:
        """Give the cached buffers back to the device; returns their bytes."""
        with self._lock:
            return self._trim()

    def _trim(self) -> int:
        freed = 0
        for size, addresses in self._cached.items():
            while addresses:
                self.memory.free(addresses.pop()[0])
                freed += size
                self._held -= size
        return freed

    def _fresh(self, size: int, nbytes: int, name: str, owner: str) -> int:
        limit = memory_limit() if self.limit is None else self.limit
        if limit is not None and self._held + size > limit:
            self._trim()
            if self._held + size > limit:
                set_by = "" if self.limit is not None else " (NUMBA_OFFLOAD_MEMORY_LIMIT)"
                reason = f"the limit is {limit} bytes{set_by}"
                raise DeviceMemoryError(self._message(nbytes, name, owner, reason, "raise the limit"))
        try:
            address = self.memory.allocate(size)
        except Exception:
            # What is cached may be what is missing.
            self._trim()
            try:
                address = self.memory.allocate(size)
            except Exception as error:
                reason, way_out = str(error) or repr(error), "free memory that other libraries hold"
                raise DeviceMemoryError(self._message(nbytes, name, owner, reason, way_out)) from error
        self._held += size
        return address

    def _message(self, nbytes: int, name: str, owner: str, reason: str, way_out: str) -> str:
        what = (f"argument '{name}'" if name else "a buffer") + (f" ({owner})" if owner else "")
        used = sorted(self._used.values(), key=lambda used: used.nbytes, reverse=True)
        mapped = ", ".join(map(str, used[:_NAMED_IN_ERRORS]))
        if len(used) > _NAMED_IN_ERRORS:
            mapped += f" and {len(used) - _NAMED_IN_ERRORS} more"
        total = sum(buffer.nbytes for buffer in used)
        return (
            f"no device memory for {what}: {nbytes} bytes needed, {total} bytes are mapped "
            f"({mapped or 'nothing'}); {reason}{self._device_has()}. Release preloaded arrays, "
            f"{way_out}, or pass smaller arrays"
        )

    def _device_has(self) -> str:
        try:
            known = self.memory.memory_info()
        except Exception:  # the device is in trouble, which is being told
            return ""
        return "" if known is None else f"; of the device's {known[1]} bytes {known[0]} are free"
