"""What a target must offer. A target knows buffers, compiled code and launches; it knows nothing of Regions or intents.

To add a target, add a folder with a subclass of :class:`Target` and name it in ``targets/registry.py``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from numba_offload.mapping.host_copy import HostCopy
    from numba_offload.targets.image import KernelImage
    from numba_offload.targets.source import KernelSource

Extent = tuple[int, int, int]
"""Sizes along x, y and z; x varies fastest, as in CUDA and HIP."""


class AskedCopies(Protocol):
    """Copies to the host that are under way, of which the host has seen nothing. One of these is called, once."""

    def arrive(self) -> None:
        """Complete them, as ``copy_all_to_host`` does."""

    def drop(self) -> None:
        """They are not wanted. Raises nothing."""


class DeviceMemory(Protocol):
    """The memory of one device. Addresses are plain integers; sizes are in bytes.

    Every copy is ordered on ``stream`` (``None``: the device's default stream), and the host side of a copy may be
    reused or read as soon as the call returns.

    ``copy_all_to_device`` and ``copy_all_to_host`` make several copies at once, and raise ``CopyFailure`` for the one that
    failed, with nothing left under way. Back, the host's arrays then are as they were: all are written, or none. The one
    exception is told by ``CopyFailure.partly``: where the largest dense array is written while it arrives, and the device
    is lost in the middle of that.
    """

    unified: bool
    """Host addresses are device addresses: nothing is allocated and nothing is copied."""

    def allocate(self, nbytes: int) -> int: ...

    def free(self, address: int) -> None: ...

    def memory_info(self) -> tuple[int, int] | None:
        """Free bytes and all bytes of the device; None where there is nothing to say."""

    def allocate_pinned(self, nbytes: int) -> int | None:
        """Host memory that copies reach directly; None where any host memory will do."""

    def free_pinned(self, address: int) -> None: ...

    def mark(self, stream: Any = None) -> Any:
        """What ``order`` needs to let other work follow that on ``stream`` so far; None where nothing is ever under way."""

    def order(self, mark: Any, stream: Any = None) -> None:
        """Let the further work on ``stream`` follow what was marked. A mark is used once."""

    def side_stream(self) -> Any:
        """A stream for copies beside the work on the default one; None where nothing is ever under way."""

    def expect(self, nbytes: int) -> None:
        """Copies of so many bytes are about to be asked for: get ready, in the meantime."""

    def copy_to_device(self, destination: int, source: int, nbytes: int, stream: Any = None) -> None: ...

    def copy_to_host(self, destination: int, source: int, nbytes: int, stream: Any = None) -> None: ...

    def copy_within(self, destination: int, source: int, nbytes: int, stream: Any = None) -> None:
        """Copy from device to device, between ranges that do not overlap. May return before the copy has been made."""

    def copy_all_to_device(self, copies: Sequence[HostCopy], stream: Any = None) -> None: ...

    def copy_all_to_host(self, copies: Sequence[HostCopy], stream: Any = None) -> None: ...

    def ask_all_to_host(self, copies: Sequence[HostCopy], stream: Any = None) -> AskedCopies | None:
        """Begin with copies behind what is queued on ``stream``; None where they are better made when that has ended."""


@dataclass(frozen=True)
class DeviceLimits:
    """What one launch may ask for."""

    threads_per_block: int
    block: Extent
    grid: Extent
    total_threads: int = 2**63 - 1
    threads_at_once: int = 2**63 - 1
    """What the device takes in one go; a launch of more is made of several, where threads need no coordinates."""


@dataclass(frozen=True)
class LaunchConfig:
    """The shape of one launch.

    ``threads`` are the logical extents that strategies see. They may be smaller than ``grid * block``: surplus
    hardware threads skip the kernel's body.
    """

    grid: Extent
    block: Extent
    threads: Extent
    stream: Any = None


@dataclass(frozen=True)
class ErrorReport:
    """The first error that a thread of a launch recorded. ``site`` and ``line`` are numbers of ``sites.SITES``."""

    site: int
    line: int
    payload: tuple[int, int, int]
    thread: Extent
    block: Extent


@dataclass(frozen=True)
class CompiledKernel:
    """Code of one specialisation, loaded on one target. ``handle`` is the target's own."""

    name: str
    image: KernelImage
    handle: Any


@dataclass(frozen=True)
class BuiltFor:
    """What code was made for, as far as a target must know to tell whether it can run it. See ``KernelImage``."""

    kind: str
    triple: str
    arch: str
    features: tuple[str, ...] = ()
    """Of a CPU's code: the processor's features in LLVM's words, beyond what all processors of its family have."""


class Target(ABC):
    """A way to run kernels: one kind of device with its compiler and runtime."""

    name: str
    memory: DeviceMemory
    limits: DeviceLimits

    @property
    @abstractmethod
    def arch(self) -> str:
        """The architecture that ``build`` generates code for."""

    def inputs(self) -> tuple[str, ...]:
        """What else ``build`` makes code of: files of a vendor, each told by path, size and time."""
        return ()

    @abstractmethod
    def build(self, source: KernelSource) -> KernelImage:
        """The device pass: machine code for one kernel's argument types and options."""

    @abstractmethod
    def load(self, image: KernelImage, name: str) -> CompiledKernel:
        """Make an image ready to launch. Raises TargetError where the device cannot run it."""

    def suits(self, code: BuiltFor) -> tuple[int, ...] | None:
        """How well code that was made before runs here, more being better; None where it does not run."""
        return None

    def described(self) -> str:
        """The target and its device, for messages."""
        return f"{self.name} ({self.arch})"

    def compile(self, source: KernelSource) -> CompiledKernel:
        """Build and load."""
        image = self.build(source)
        image.check_layout(source.name, source.layout)
        return self.load(image, source.name)

    @abstractmethod
    def launch(
        self,
        kernel: CompiledKernel,
        arguments: Sequence[Any],
        config: LaunchConfig,
        work: int = 0,
        wait: bool = True,
        behind: Callable[[], None] | None = None,
    ) -> ErrorReport | None:
        """Run a kernel. ``arguments`` are flat: addresses and extents as int, scalars as NumPy scalars.

        ``work`` is the number of elements of the largest Region. Without ``wait`` the call may return before the kernel
        has ended; a failure is then raised where somebody next waits for its stream. ``behind`` is called before the wait
        for a kernel that has been queued, to queue more behind it.
        """

    def acquire(self, arrays: Sequence[Any], stream: Any = None) -> None:  # noqa: B027 - nothing to order without streams
        """Order a launch on ``stream`` behind the work that the owners of device arrays have under way.

        Raises LaunchError for an array on another device.
        """

    def release(self, arrays: Sequence[Any], stream: Any = None) -> None:  # noqa: B027 - as for acquire
        """Order the owners' further work on device arrays behind the launch on ``stream``."""

    def resident(self, values: Any) -> int:
        """The device address of an ``array.array`` that never changes, valid while it lives."""
        return int(values.buffer_info()[0])

    def synchronize(self, stream: Any = None) -> None:  # noqa: B027 - a target without streams has nothing to wait for
        """Wait for the work on a stream, or on all of them."""

    def ordered_cores(self) -> int:
        """How many cores walk through a launch's threads in order; 0 where threads run side by side, as on a GPU."""
        return 0
