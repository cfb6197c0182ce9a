"""Threads that copy between arrays and page-locked memory, beside the one that asks for a copy."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterable
from queue import SimpleQueue

Job = Callable[[], None]


class CopyThreads:
    """Threads started when they are first needed, and again in a forked child. One user at a time.

    They are daemons: one that waits for work does not keep the interpreter from ending.
    """

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._count: list[int] = [0]
        weakref.finalize(self, _dismiss, self._jobs, self._count).atexit = False

    def ready(self, wanted: int) -> int:
        """Have ``wanted`` threads; how many there are of them, which is fewer where the system gives no more."""
        if self._pid != os.getpid():
            self._begin()  # a fork leaves threads behind
        while self._count[0] < wanted:
            thread = threading.Thread(target=_serve, args=(self._jobs,), name="numba_offload copies", daemon=True)
            try:
                thread.start()
            except RuntimeError:
                break
            self._count[0] += 1
        return min(wanted, self._count[0])

    def give(self, jobs: Iterable[Job]) -> None:
        """Start jobs, each in a thread of its own: not more than ``ready`` has answered. A job raises nothing."""
        for job in jobs:
            self._jobs.put(job)


def _serve(jobs: SimpleQueue[Job | None]) -> None:
    while (job := jobs.get()) is not None:
        job()
        del job  # or it would keep its arrays alive until the next one


def _dismiss(jobs: SimpleQueue[Job | None], count: list[int]) -> None:
    for _ in range(count[0]):
        jobs.put(None)
