"""Device buffers, kept for reuse: a device's own allocator can take longer than a kernel."""

from __future__ import annotations

import threading
from collections import defaultdict

from numba_offload.errors import DeviceMemoryError
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


class BufferPool:
    """Buffers of one device. Any thread may use it.

    A freed buffer may be handed out again at once, so free it only after the work that uses it is done.
    ``limit`` bounds the bytes held, in use and cached (None: the device's memory is the limit).
    """

    def __init__(self, memory: DeviceMemory, limit: int | None = None) -> None:
        self.memory = memory
        self.limit = limit
        self._lock = threading.Lock()
        self._cached: dict[int, list[int]] = defaultdict(list)
        self._used: dict[int, tuple[int, int, str]] = {}
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
            return sum(size for size, _, _ in self._used.values())

    def allocate(self, nbytes: int, name: str = "") -> int:
        """Address of a buffer of at least ``nbytes``. ``name`` says what it is for, in messages."""
        size = size_class(nbytes)
        with self._lock:
            cached = self._cached.get(size)
            address = cached.pop() if cached else self._fresh(size, nbytes, name)
            self._used[address] = (size, nbytes, name)
            return address

    def free(self, address: int) -> None:
        """Take a buffer back."""
        with self._lock:
            size, _, _ = self._used.pop(address)
            if self._recycle is not None:
                self._recycle(address)
            self._cached[size].append(address)

    def trim(self) -> int:
        """Give the cached buffers back to the device; returns their bytes."""
        with self._lock:
            return self._trim()

    def _trim(self) -> int:
        freed = 0
        for size, addresses in self._cached.items():
            while addresses:
                self.memory.free(addresses.pop())
                freed += size
                self._held -= size
        return freed

    def _fresh(self, size: int, nbytes: int, name: str) -> int:
        if self.limit is not None and self._held + size > self.limit:
            self._trim()
            if self._held + size > self.limit:
                raise DeviceMemoryError(self._message(nbytes, name, f"the limit is {self.limit} bytes"))
        try:
            address = self.memory.allocate(size)
        except Exception:
            # What is cached may be what is missing.
            self._trim()
            try:
                address = self.memory.allocate(size)
            except Exception as error:
                raise DeviceMemoryError(self._message(nbytes, name, str(error) or repr(error))) from error
        self._held += size
        return address

    def _message(self, nbytes: int, name: str, reason: str) -> str:
        what = f"argument '{name}'" if name else "a buffer"
        used = sorted(((count, label) for _, count, label in self._used.values()), reverse=True)
        mapped = ", ".join(f"{label or 'unnamed'}: {count}" for count, label in used[:_NAMED_IN_ERRORS])
        if len(used) > _NAMED_IN_ERRORS:
            mapped += f" and {len(used) - _NAMED_IN_ERRORS} more"
        total = sum(count for count, _ in used)
        return (
            f"no device memory for {what}: {nbytes} bytes needed, {total} bytes are mapped "
            f"({mapped or 'nothing'}); {reason}. Release preloaded arrays, free memory that other libraries "
            "hold, or pass smaller arrays"
        )
