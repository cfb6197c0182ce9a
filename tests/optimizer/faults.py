"""Faults of a device's memory, and host programs of which is known what they have done when one meets them.

A program is a function's body as text, over the arrays ``a``, ``b``, ``c`` and ``m``. Behind each of its simple statements stands
``done.append(0)``: so the model, the same text over plain NumPy, can be stopped at the same place. What handles an exception
stands in a text of its own, and notes what it has done in ``after``.
"""

from __future__ import annotations

import itertools
import linecache
import warnings
from collections.abc import Callable, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

from numba_offload import Region, offload_kernel, optimize_transfers, preload_mut
from numba_offload.errors import DeviceMemoryError, TargetError
from numba_offload.mapping.borrow import BORROWS
from numba_offload.targets.registry import current_target

NAMES = ("a", "b", "c", "m")
METHODS = {"allocation": "allocate", "over": "copy_to_device", "back": "copy_to_host", "aside": "copy_within"}
"""Kinds of faults, and the method of a device's memory that fails."""
INFINITE = float("inf")
ZEROS = (0.0,) * 64
BEYOND = 1e6
"""A shift that makes a kernel leave its array."""
_numbers = itertools.count()


@offload_kernel
def add_shifted(x, y, shift):
    for i in y.indices():
        y[i] = y[i] + 1.0
        y[i] = y[i] + x[i + int(shift)] % 7.0


@offload_kernel
def blend(x, y, z):
    for i in y.indices():
        y[i] = x[i] - y[i]
    for j in z.indices():
        z[j] = 0.5 * z[j] + x[j]


@offload_kernel
def fill(y, value):
    for i in y.indices():
        y[i] = value


def _numpy_add_shifted(x, y, shift):
    if shift:
        raise IndexError
    y[...] = y + 1.0 + x % 7.0


def _numpy_blend(x, y, z):
    y[...] = x - y
    z[...] = 0.5 * z + x


def _numpy_fill(y, value):
    y[...] = value


class Stopped(Exception):
    """The model has done as much as the program."""


class Injected(Exception):
    """As a driver's error."""


class Marks(list):
    """The model's ``done``: it stops when the program had done so much."""

    def __init__(self, limit: float) -> None:
        super().__init__()
        self.limit = limit

    def append(self, value: Any) -> None:
        if len(self) >= self.limit:
            raise Stopped
        super().append(value)
        if len(self) == self.limit:
            raise Stopped


def _marked(body: str, mark: str) -> list[str]:
    lines: list[str] = []
    for line in body.strip("\n").splitlines():
        indent = line[: len(line) - len(line.lstrip())]
        lines.append(line)
        if not line.endswith(":"):
            lines.append(f"{indent}{mark}.append(0)")
    return lines


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]


PARTS = {
    "part": """
def part(y, shift, done):
    fill(Region(y), 3.0)
    done.append(0)
    add_shifted(y.copy(), Region(y), shift)
    done.append(0)
""",
    "steps": """
def steps(z, done):
    for k in range(2):
        fill(Region(z), 2.0 + k)
        done.append(0)
        yield z[1]
""",
}
"""Other host functions, which programs call."""


def _made(name: str, source: str, names: dict[str, Any], optimised: bool, **options: Any) -> Callable[..., Any]:
    filename = f"<faulty program {next(_numbers)}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    namespace = {"np": np, "Faulty": (TargetError, DeviceMemoryError, IndexError, Stopped), **names}
    exec(compile(source, filename, "exec"), namespace)
    if not optimised:
        return namespace[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return optimize_transfers(**options)(namespace[name])


class Program:
    """One host program, as its user wrote it and in NumPy."""

    def __init__(self, body: str, device_memory: int | None = None, handler: str = "") -> None:
        names = {"add_shifted": add_shifted, "blend": blend, "fill": fill, "Region": Region, "preload_mut": preload_mut}
        numpy = {"add_shifted": _numpy_add_shifted, "blend": _numpy_blend, "fill": _numpy_fill, "Region": _same,
                 "preload_mut": _Held}  # fmt: skip
        for called, source in PARTS.items():
            names[called] = _made(called, source, names, True)
            numpy[called] = _made(called, source, numpy, False)
        lines = ["done.append(0)", *_marked(body, "done")]
        if handler:
            lines = ["try:", *_indented(lines), "except Faulty as error:", "    caught.append(error)", "    after.append(0)",
                     *_indented(_marked(handler, "after"))]  # fmt: skip
        head = ["def program(w, shifts, seen, done, after, caught):", "    a, b, c, m = w.a, w.b, w.c, w.m"]
        source = "\n".join([*head, *_indented(lines)])
        self.function = _made("program", source, names, True, device_memory=device_memory)
        self._model = _made("program", source, numpy, False)
        shifts = list(ZEROS)
        self._model(world(), shifts, [], [], [], [])
        self.launches = len(ZEROS) - len(shifts)
        """Those that can fail."""

    def run(self, faults: Faults | None = None, shifts: Sequence[float] = ZEROS) -> Run:
        """Run it on fresh arrays, on a device that has these faults."""
        run = Run(world())
        with faults.armed() if faults else nullcontext():
            try:
                self.function(run.w, list(shifts), run.seen, run.done, run.after, run.caught)
            except BaseException as error:
                run.raised = error
        return run

    def model(self, done: float = INFINITE, after: float = INFINITE, shifts: Sequence[float] = ZEROS) -> Run:
        """What it means to have done so much and, after an exception, so much."""
        run = Run(world(), done=Marks(done), after=Marks(after))
        with suppress(Stopped, IndexError):
            self._model(run.w, list(shifts), run.seen, run.done, run.after, run.caught)
        return run


@dataclass
class Run:
    """One run of a program: its arrays, what the host has seen, what it has done, and its exceptions."""

    w: SimpleNamespace
    seen: list[Any] = field(default_factory=list)
    done: list[Any] = field(default_factory=list)
    after: list[Any] = field(default_factory=list)
    caught: list[BaseException] = field(default_factory=list)
    raised: BaseException | None = None


def _same(array: np.ndarray) -> np.ndarray:
    return array


class _Held:
    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __enter__(self) -> np.ndarray:
        return self.array

    def __exit__(self, *error: Any) -> None:
        pass


def world() -> SimpleNamespace:
    """Fresh arrays. ``m`` is not contiguous, and is packed on its way."""
    w = SimpleNamespace()
    w.a = np.arange(12.0)
    w.b = np.ones(12)
    w.c = np.linspace(-1, 1, 12)
    w.m = np.arange(24.0)[::2]
    return w


class Faults:
    """The n-th call (from 0) of one kind fails; with ``lasting`` those after it, too. Copies fail before they move anything."""

    def __init__(self, kind: str, at: int, lasting: bool = False, error: type[BaseException] = Injected) -> None:
        self.method = METHODS[kind]
        self.at = at
        # Allocations and copies back are tried twice.
        self.until = INFINITE if lasting else at + 1 + (kind in ("allocation", "back") and error is Injected)
        self.error = error
        self.calls = 0
        self.raised = 0

    @contextmanager
    def armed(self) -> Any:
        """While this is entered, the current device has these faults."""
        memory = current_target().device.memory
        current_target().device.pool.trim()  # cached buffers need no allocation
        original = getattr(memory, self.method)

        def sometimes(*arguments: Any, **options: Any) -> Any:
            self.calls += 1
            if self.at < self.calls <= self.until:
                self.raised += 1
                raise self.error("injected")
            return original(*arguments, **options)

        setattr(memory, self.method, sometimes)
        try:
            yield self
        finally:
            delattr(memory, self.method)


def assert_nothing_left() -> None:
    """No trace of a host function is on the device or in any table."""
    device = current_target().device
    assert not device.present.residents
    assert not device.present.entries
    assert not device.present._claims
    assert not device.present._abandoned
    assert not BORROWS.live
    assert device.pool.bytes_in_use == 0
    device.pool.trim()
    assert device.memory.live_buffers == 0
