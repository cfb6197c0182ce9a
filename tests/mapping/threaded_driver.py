"""A GPU's driver on host memory that does what a GPU does to copies: it makes them later, in streams that run side by side.

Device memory is poisoned when allocated; a copy outside what is allocated, or from page-locked memory that was freed,
fails. What a copy reads is what is there when it runs, so that a slot that is filled again too early shows.
"""

from __future__ import annotations

import ctypes
import random
import threading
import time
from contextlib import AbstractContextManager, nullcontext
from queue import SimpleQueue
from typing import Any

import numpy as np

from numba_offload.errors import TargetError
from numba_offload.targets.base import DeviceLimits
from numba_offload.targets.gpu.driver import GPUDriver, LoadedFunction
from numba_offload.targets.gpu.memory import GPUMemory
from numba_offload.targets.gpu.native_lanes import NOT_READY, NativeCopies

POISON = 0xA5


class _Stream:
    """Work in order, in a thread. ``lost``: the first failure, which every wait tells from then on."""

    def __init__(self, driver: ThreadedDriver) -> None:
        self.driver = driver
        self.work: SimpleQueue[Any] = SimpleQueue()
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while (item := self.work.get()) is not None:
            item()


class ThreadedDriver(GPUDriver):
    """``fail_queueing`` and ``fail_running``: which copies, counted from 0, are refused or fail when they run.

    ``delay``: seconds that a copy takes at most. ``staged``: copies between the device and page-locked memory.
    """

    vendor = "Threaded"

    def __init__(self, delay: float = 0.0, seed: int = 0, most_pinned: int = 1 << 40) -> None:
        super().__init__()
        self.arch, self.count, self.ordinal = "threads", 1, 0
        self.limits = DeviceLimits(1, (1, 1, 1), (1, 1, 1))
        self.delay, self.most_pinned = delay, most_pinned
        self.random = random.Random(seed)
        self.lock = threading.Lock()
        self.live: dict[int, np.ndarray] = {}
        self.pinned: dict[int, np.ndarray] = {}
        self.streams: dict[int, _Stream] = {}
        self.reset()

    def reset(self) -> None:
        """Count from 0 again, and fail no more."""
        self.queued = self.run = 0
        self.staged: list[str] = []
        self.direct: list[str] = []
        self.threads: set[int] = set()
        self.fail_queueing: set[int] = set()
        self.fail_running: set[int] = set()

    def check_process(self) -> None:
        """Forked children have a device here, to test what else they need."""

    def current(self) -> AbstractContextManager[None]:
        return nullcontext()

    def _new(self, nbytes: int, where: dict[int, np.ndarray]) -> int:
        memory = np.full(nbytes, POISON, np.uint8)
        with self.lock:
            where[memory.ctypes.data] = memory
        return memory.ctypes.data

    def allocate(self, nbytes: int) -> int:
        return self._new(nbytes, self.live)

    def free(self, address: int) -> None:
        self.live.pop(address)

    def allocate_mapped(self, nbytes: int) -> tuple[int, int]:
        raise NotImplementedError

    def allocate_pinned(self, nbytes: int) -> int:
        if sum(map(len, self.pinned.values())) + nbytes > self.most_pinned:
            raise TargetError("no memory to page-lock")
        return self._new(nbytes, self.pinned)

    def free_pinned(self, address: int) -> None:
        self.pinned.pop(address).fill(POISON)

    def memory_info(self) -> tuple[int, int]:
        return 1000, 2000

    def page_locked(self, address: int) -> bool:
        return self._inside(address, 1, self.pinned)

    def _inside(self, address: int, nbytes: int, where: dict[int, np.ndarray]) -> bool:
        with self.lock:
            return any(start <= address and address + nbytes <= start + len(m) for start, m in where.items())

    def ordinal_of(self, address: int) -> int | None:
        return 0

    # Copies

    def _copy(self, kind: str, destination: int, source: int, nbytes: int, stream: int) -> None:
        host, device = (source, destination) if kind == "over" else (destination, source)
        with self.lock:
            number, self.queued = self.queued, self.queued + 1
            pause = self.random.random() * self.delay
            self.threads.add(threading.get_ident())
        if number in self.fail_queueing:
            raise TargetError("injected: refused")
        assert self._inside(device, nbytes, self.live), "not in device memory"
        locked = self._inside(host, nbytes, self.pinned)
        (self.staged if locked else self.direct).append(kind)

        def run() -> None:
            time.sleep(pause)
            with self.lock:
                order, self.run = self.run, self.run + 1
            if order in self.fail_running:
                raise TargetError("injected: failed")
            ctypes.memmove(destination, source, nbytes)

        self._add(stream, run)
        if not locked:
            self.wait("copying pageable memory", stream)

    def copy_to_device(self, destination: int, source: int, nbytes: int, stream: int) -> None:
        self._copy("over", destination, source, nbytes, stream)

    def copy_to_host(self, destination: int, source: int, nbytes: int, stream: int) -> None:
        self._copy("back", destination, source, nbytes, stream)

    def copy_within(self, destination: int, source: int, nbytes: int, stream: int) -> None:
        self._add(stream, lambda: ctypes.memmove(destination, source, nbytes))

    # Streams: a failure is told by the next event or wait behind it, once.

    def _add(self, stream: int, run: Any) -> None:
        with self.lock:
            known = self.streams.get(stream)
            if known is None:
                known = self.streams[stream] = _Stream(self)
        failures = known.__dict__.setdefault("failures", [])

        def guarded() -> None:
            try:
                run()
            except Exception as error:
                failures.append(error)

        known.work.put(guarded)

    def after(self, stream: int, run: Any) -> None:
        """Put a test's own work on a stream."""
        self._add(stream, run)

    def create_stream(self) -> int:
        return 100 + len(self.streams) + self.random.randrange(10**9)

    def create_event(self) -> Any:
        return {}

    def record_event(self, event: Any, stream: int) -> None:
        reached = threading.Event()
        self._add(stream, reached.set)
        event.update(reached=reached, stream=stream)

    def wait_event(self, event: Any, stream: int) -> None:
        reached = event["reached"]
        self._add(stream, lambda: reached.wait(60))

    def await_event(self, doing: str, event: Any) -> None:
        assert event["reached"].wait(60), "an event was not reached"
        self._tell(event["stream"])

    def wait(self, doing: str, stream: int | None) -> None:
        for one in list(self.streams) if stream is None else [stream]:
            reached = threading.Event()
            self._add(one, reached.set)
            assert reached.wait(60), "a stream does not end"
            self._tell(one)

    def _tell(self, stream: int) -> None:
        failures = self.streams[stream].__dict__.get("failures")
        if failures:
            raise failures.pop(0)

    def load(self, image: Any, name: str) -> LoadedFunction:
        raise NotImplementedError

    def launch(self, *args: Any) -> None:
        raise NotImplementedError


class _Event(dict[str, Any]):
    def __int__(self) -> int:
        return id(self)


class NativeThreadedDriver(ThreadedDriver):
    """The same, with functions that native lanes call, which come back to this driver's methods.

    ``calls``: their names in order. ``fail_call``: which of them, counted from 0, return a code and do nothing.
    """

    REFUSED = 901

    def __init__(self, **options: Any) -> None:
        self.events: dict[int, _Event] = {}
        self.errors: dict[int, Exception] = {}
        word = ctypes.c_int64
        self.functions = [
            ctypes.CFUNCTYPE(ctypes.c_int, *[word] * count)(self._answer(name, function))
            for name, count, function in (
                ("over", 4, self.copy_to_device),
                ("back", 4, self.copy_to_host),
                ("record", 2, lambda event, stream: self.record_event(self.events[event], stream)),
                ("query", 1, lambda event: self.query_event(self.events[event])),
                ("await", 1, lambda event: self.await_event("", self.events[event])),
            )
        ]
        super().__init__(**options)

    def reset(self) -> None:
        super().reset()
        self.calls: list[str] = []
        self.fail_call: set[int] = set()

    def _answer(self, name: str, function: Any) -> Any:
        def answer(*arguments: int) -> int:
            with self.lock:
                number = len(self.calls)
                self.calls.append(name)
            if number in self.fail_call:
                return self.REFUSED
            try:
                return function(*arguments) or 0
            except Exception as error:
                with self.lock:
                    code = 1000 + len(self.errors)
                    self.errors[code] = error
                return code

        return answer

    def query_event(self, event: Any) -> int:
        if not event["reached"].is_set():
            return NOT_READY
        self._tell(event["stream"])
        return 0

    def create_event(self) -> Any:
        event = _Event()
        return self.events.setdefault(id(event), event)

    def native_copies(self) -> NativeCopies:
        return NativeCopies(*(ctypes.cast(f, ctypes.c_void_p).value or 0 for f in self.functions))

    def failure(self, doing: str, code: int) -> Any:
        return self.errors.get(code) or TargetError(f"{doing} failed with {code}")


def threaded_memory(native: bool = False, **options: Any) -> GPUMemory:
    """A GPU's memory over such a driver."""
    driver = NativeThreadedDriver(**options) if native else ThreadedDriver(**options)
    return GPUMemory(driver, lambda handle: driver.wait("waiting", handle))
