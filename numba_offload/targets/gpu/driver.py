"""What the GPU layer asks of a vendor's runtime: one device, its memory, streams, events, and loaded code.

A vendor's subclass is thin: each method is one or two calls of the runtime, with every return code looked at. All that
decides anything is on this side of it, and is tested without a GPU.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar

from numba_offload.errors import TargetError
from numba_offload.targets.base import DeviceLimits, Extent
from numba_offload.targets.gpu.native_lanes import NativeCopies
from numba_offload.targets.image import KernelImage


@dataclass(frozen=True)
class LoadedFunction:
    """A kernel on the device. ``module`` keeps it there."""

    function: Any
    module: Any
    most_threads: int
    """In one block, given the kernel's registers."""


class GPUDriver(ABC):
    """One device of a vendor. Streams are handles (0: the default stream), addresses are ints, sizes are in bytes.

    Methods raise TargetError, saying what was being done and what the runtime calls the failure. They are called with
    the device current (``with driver.current():``), but for those that say otherwise.
    """

    vendor: ClassVar[str]
    """As error messages name it."""

    arch: str
    """What LLVM generates code for."""
    limits: DeviceLimits
    count: int
    """Of the devices that the runtime shows."""
    ordinal: int
    """Which of them this is."""
    host_atomics: bool = True
    """Whether atomic operations of kernels work on page-locked host memory."""

    def __init__(self) -> None:
        self._pid = os.getpid()

    def check_process(self) -> None:
        """Raise TargetError in a forked child, where the parent's connection to the device does not work."""
        if os.getpid() != self._pid:
            raise TargetError(
                f"{self.vendor} was started before this process was forked, and does not survive that; start workers with "
                "multiprocessing's 'spawn' or 'forkserver' method, or fork before the first launch"
            )

    @abstractmethod
    def current(self) -> AbstractContextManager[None]:
        """The device is the calling thread's inside; a thread that uses another one gets it back."""

    @abstractmethod
    def allocate(self, nbytes: int) -> int: ...

    @abstractmethod
    def free(self, address: int) -> None: ...

    @abstractmethod
    def allocate_mapped(self, nbytes: int) -> tuple[int, int]:
        """Page-locked host memory that the device can write: its address on the host and on the device."""

    @abstractmethod
    def allocate_pinned(self, nbytes: int) -> int:
        """Page-locked host memory, for copies that do not pass through the runtime's own."""

    @abstractmethod
    def free_pinned(self, address: int) -> None: ...

    @abstractmethod
    def memory_info(self) -> tuple[int, int]:
        """Free bytes and all bytes of the device."""

    @abstractmethod
    def copy_to_device(self, destination: int, source: int, nbytes: int, stream: int) -> None:
        """Queue a copy. Pageable memory has been read when this returns; page-locked memory may be read later."""

    @abstractmethod
    def copy_to_host(self, destination: int, source: int, nbytes: int, stream: int) -> None:
        """Queue a copy."""

    def native_copies(self) -> NativeCopies | None:
        """The functions that copies of several threads are made with, by address; None where they cannot be had so."""
        return None

    def failure(self, doing: str, code: int) -> TargetError:
        """What to raise for a code that one of those functions returned in the calling thread or another."""
        return TargetError(f"{self.vendor}: {doing} failed with code {code}")

    @abstractmethod
    def copy_within(self, destination: int, source: int, nbytes: int, stream: int) -> None:
        """Queue a copy from device memory to device memory."""

    @abstractmethod
    def page_locked(self, address: int) -> bool:
        """Whether the runtime knows a host address: pinned, registered or managed."""

    @abstractmethod
    def ordinal_of(self, address: int) -> int | None:
        """The device that an address belongs to; None if the runtime does not say."""

    @abstractmethod
    def load(self, image: KernelImage, name: str) -> LoadedFunction: ...

    @abstractmethod
    def launch(
        self, doing: str, function: Any, grid: Extent, block: Extent, stream: int, parameters: int
    ) -> None:
        """Queue a kernel. ``parameters`` is the address of an array of pointers to its arguments."""

    @abstractmethod
    def wait(self, doing: str, stream: int | None) -> None:
        """Wait for a stream, or (None) for the whole device."""

    @abstractmethod
    def create_stream(self) -> int:
        """A stream that does not wait for the default one."""

    @abstractmethod
    def create_event(self) -> Any: ...

    @abstractmethod
    def record_event(self, event: Any, stream: int) -> None: ...

    @abstractmethod
    def wait_event(self, event: Any, stream: int) -> None:
        """Let a stream's further work wait for an event."""

    @abstractmethod
    def await_event(self, doing: str, event: Any) -> None:
        """Wait for what was on an event's stream when it was recorded."""
