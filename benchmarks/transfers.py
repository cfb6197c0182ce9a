"""How fast arrays go to the device and back: ``python -m benchmarks.transfers``.

Whole calls are timed, until the device has the last byte or the host has. Over and back are timed for plain arrays by the
number of threads that stage them (0: the driver's own way) and for page-locked ones. Then a launch with three 8 MB arrays,
next to numba.cuda's implicit transfer of the same.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from numba_offload import Region, TargetError, offload_kernel, pinned_empty, use_target
from numba_offload.targets.registry import TargetState, available_targets, current_target, target_state

from .timing import Step, interleaved

THREADS = (0, 1, 2, 4, 8)
SIZES = tuple(n << 10 for n in (4, 16, 64, 256, 1 << 10, 2 << 10, 4 << 10, 16 << 10, 64 << 10, 128 << 10, 256 << 10))
BARRED_SIZE = 128 << 20
LAUNCH_ELEMENTS = 1_000_000
"""Of float64, in each of three arrays."""
_SETTING = "NUMBA_OFFLOAD_COPY_THREADS"


@dataclass(frozen=True)
class Bar:
    """What is to be reached on a GPU of the H200's class, with eight cores or more."""

    what: str
    least: float
    unit: str

    def row(self, found: float | None) -> tuple[str, str, str, str]:
        verdict = "not measured" if found is None else "met" if found >= self.least else "missed"
        return self.what, f"{self.least:g} {self.unit}", "" if found is None else f"{found:.1f} {self.unit}", verdict


BARS = {
    ("over", "8 threads"): Bar("128 MiB over, 8 threads", 30, "GB/s"),
    ("back", "8 threads"): Bar("128 MiB back, 8 threads", 30, "GB/s"),
    ("over", "pinned"): Bar("128 MiB over, page-locked", 50, "GB/s"),
    ("back", "pinned"): Bar("128 MiB back, page-locked", 50, "GB/s"),
    ("launch", "managed"): Bar("three 8 MB arrays in a launch, over numba.cuda", 5, "times"),
}

Found = dict[tuple[str, str], float]


@contextmanager
def _threads_as_they_were() -> Iterator[None]:
    before = os.environ.get(_SETTING)
    try:
        yield
    finally:
        os.environ.pop(_SETTING, None)
        if before is not None:
            os.environ[_SETTING] = before


def _with_threads(count: int, step: Callable[[], Any]) -> Step:
    def run() -> None:
        os.environ[_SETTING] = str(count)
        step()

    return run


def _variants(state: TargetState, nbytes: int, buffer: int) -> tuple[dict[str, Step], list[np.ndarray]]:
    """A step for each direction and way, named "over: 8 threads" and so on; and the arrays that come back."""
    memory, target = state.device.memory, state.target
    plain, pinned = np.empty(nbytes, np.uint8), pinned_empty(nbytes, np.uint8)
    plain[:] = pinned[:] = np.random.default_rng(0).integers(0, 256, nbytes, dtype=np.uint8)
    back = [np.ones(nbytes, np.uint8), pinned_empty(nbytes, np.uint8)]
    back[1][:] = 1

    def over(array: np.ndarray) -> Callable[[], None]:
        def step() -> None:
            memory.copy_to_device(buffer, array.ctypes.data, nbytes)
            target.synchronize(0 if target.name != "cpu" else None)

        return step

    def fetch(array: np.ndarray) -> Callable[[], None]:
        return lambda: memory.copy_to_host(array.ctypes.data, buffer, nbytes)

    steps: dict[str, Step] = {}
    threads = _threads_of(state)
    for direction, one, other in (("over", over(plain), over(pinned)), ("back", fetch(back[0]), fetch(back[1]))):
        for count in threads:
            steps[f"{direction}: {count} threads"] = _with_threads(count, one)
        steps[f"{direction}: pinned"] = other
    return steps, [plain, *back]


def _threads_of(state: TargetState) -> tuple[int, ...]:
    """The CPU's memory is not staged."""
    return THREADS[:1] if state.target.name == "cpu" else THREADS


def bandwidths(state: TargetState, sizes: Sequence[int], rounds: int) -> tuple[Table, Found]:
    """A table in GB/s, and what was found for the size that has bars."""
    table = Table(title=f"Copies, GB/s: medians of {rounds}", caption="N: staged by N threads; 0: the driver's own way")
    table.add_column("bytes", justify="right")
    ways = [*map(str, _threads_of(state)), "pinned"]
    for direction in ("over", "back"):
        for way in ways:
            table.add_column(f"{direction} {way}", justify="right")
    found: Found = {}
    for nbytes in sizes:
        buffer = state.device.pool.allocate(nbytes, "the benchmark's buffer")
        try:
            steps, (sent, *received) = _variants(state, nbytes, buffer)
            with _threads_as_they_were():
                seconds = interleaved(steps, rounds)
            for array in received:
                if not np.array_equal(sent, array):
                    raise AssertionError(f"{nbytes} bytes did not come back as they were sent")
        finally:
            state.device.pool.free(buffer)
        rates = {name: nbytes / time / 1e9 for name, time in seconds.items()}
        table.add_row(_size(nbytes), *(f"{rate:.2f}" for rate in rates.values()))
        if nbytes == BARRED_SIZE:
            found = {tuple(name.split(": ")): rate for name, rate in rates.items()}  # type: ignore[misc]
    state.device.pool.trim()
    return table, found


def _size(nbytes: int) -> str:
    return f"{nbytes >> 20} MiB" if nbytes >= 1 << 20 else f"{nbytes >> 10} KiB"


@offload_kernel
def combine(x: Any, y: Any, z: Any) -> None:
    for i in z.indices():
        z[i] = x[i] + 0.5 * y[i] + 0.5 * z[i]


def _by_numba_cuda(arrays: Sequence[np.ndarray]) -> Step:
    """The launch through numba.cuda, which copies each array over and back. Raises where it is not installed or cannot run."""
    from numba import cuda

    @cuda.jit
    def kernel(x: Any, y: Any, z: Any) -> None:
        i = cuda.grid(1)
        if i < z.size:
            z[i] = x[i] + 0.5 * y[i] + 0.5 * z[i]

    def step() -> None:
        kernel[-(-arrays[2].size // 256), 256](*arrays)
        cuda.synchronize()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        step()
    return step


def launches(target: str, rounds: int, console: Console) -> tuple[Table, Found]:
    """A table of whole launches with three arrays, and how many times faster than numba.cuda's they are."""

    def inputs(make: Callable[[int], np.ndarray]) -> list[np.ndarray]:
        arrays = [make(LAUNCH_ELEMENTS) for _ in range(3)]
        for number, array in enumerate(arrays):
            array[:] = number
        return arrays

    data = {"managed": inputs(np.empty), "managed, page-locked": inputs(pinned_empty)}
    steps: dict[str, Step] = {
        name: (lambda x, y, z: lambda: combine(x, y, Region(z)))(*arrays) for name, arrays in data.items()
    }
    if target == "cuda":
        data["numba.cuda"] = inputs(np.empty)
        try:
            steps = {"numba.cuda": _by_numba_cuda(data["numba.cuda"]), **steps}
        except Exception as error:
            console.print(f"numba.cuda is left out: {error!r}", markup=False)
    table = Table(title=f"A launch with three arrays of {LAUNCH_ELEMENTS * 8 / 1e6:g} MB: medians of {rounds}")
    for heading in ("", "ms", "times faster than numba.cuda"):
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numba.cuda's, of host arrays
        seconds = interleaved(steps, rounds)
    for name in steps:
        if not np.allclose(data[name][2], 1.0, rtol=0, atol=0.5):  # from 2, with each launch halfway to 1
            raise AssertionError(f"the launch {name!r} gave a wrong result")
    found: Found = {}
    reference = seconds.get("numba.cuda")
    for name, time in seconds.items():
        ratio = None if reference is None else reference / time
        if ratio is not None:
            found["launch", name] = ratio
        table.add_row(name, f"{time * 1e3:.3f}", "" if ratio is None else f"{ratio:.1f}")
    return table, found


def judged(found: Found) -> tuple[Table, bool]:
    """What was found next to the bars, and whether one was missed."""
    table = Table(title="Bars")
    for heading in ("", "at least", "found", ""):
        table.add_column(heading)
    for key, bar in BARS.items():
        table.add_row(*bar.row(found.get(key)))
    return table, any(key in found and found[key] < bar.least for key, bar in BARS.items())


def _bytes(text: str) -> int:
    return int(float(text) * (1 << 20))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.transfers", description=__doc__)
    parser.add_argument("--target", help="cuda, amdgpu or cpu, in its discrete memory model (default: the first that works)")
    parser.add_argument("--rounds", type=int, default=15, help="samples of each time (default: 15)")
    parser.add_argument("--largest", type=_bytes, default=SIZES[-1], help="the largest array, in MiB (default: 256)")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a bar is missed; bars are for GPUs")
    options = parser.parse_args(arguments)
    console = Console()
    if not console.is_terminal:
        console = Console(width=160)
    try:
        name = options.target or available_targets()[0]
        if name == "cpu":
            os.environ["NUMBA_OFFLOAD_CPU_MEMORY"] = "discrete"
        target_state(name)
    except TargetError as error:
        console.print(str(error), markup=False)
        return 2
    with use_target(name):
        state = current_target()
        console.print(f"target {state.target.described()}, {os.cpu_count()} cores", markup=False)
        table, found = bandwidths(state, [size for size in SIZES if size <= options.largest], options.rounds)
        console.print(table)
        table, ratios = launches(name, 4 * options.rounds, console)  # short, and a ratio of two noisy times
        console.print(table)
    if name == "cpu":
        console.print("The CPU has no bars: its discrete memory is the host's.")
        return 0
    table, missed = judged(found | ratios)
    console.print(table)
    return 1 if options.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
