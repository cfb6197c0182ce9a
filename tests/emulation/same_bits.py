"""Every launch on an emulated AMD GPU made twice more without fused operations, there and on the CPU: the same bits.

Left out is what may differ: kernels that call the vendor's mathematics or ask for ``fastmath``, and sums of floats that
threads add to in whatever order they come.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from numba_offload import Accumulator, LaunchError, Region, use_target
from numba_offload.diagnostics.profile import profiling
from numba_offload.kernel import OffloadKernel
from numba_offload.kernel_calls import CallableKernel
from numba_offload.targets.registry import current_target

_LIBRARY = re.compile(
    r"@llvm\.(?:a?cosh?|a?sinh?|a?tanh?|atan2|exp2?|exp10|log(?:2|10)?|powi?|sincos)\.(?:v\d+)?f(?:32|64)"
)
"""LLVM's names of library functions, in a kernel for the CPU."""


class SameBits:
    """Counts what was compared, and what was not, in a session."""

    compared = 0
    left_out = 0

    def __init__(self) -> None:
        self._twins: dict[Any, OffloadKernel] = {}
        self._inside = False

    @contextmanager
    def required(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        """Inside, launches of kernels are compared. What differs is raised at the end."""
        launch = CallableKernel._launch
        failures: list[str] = []

        def compared(kernel: CallableKernel, asked: Any, args: Any, kwargs: Any) -> None:
            if self._inside or not isinstance(kernel, OffloadKernel) or kernel.options.fastmath:
                launch(kernel, asked, args, kwargs)
                return
            # Where a test counts transfers, ours would be among them.
            here = current_target().target.name == "amdgpu" and not profiling()
            before = [(_copied(args), _copied(kwargs)) for _ in range(2)] if here else []
            launch(kernel, asked, args, kwargs)
            if here:
                self._inside = True
                try:
                    failures.extend(self._differences(kernel, asked, before))
                finally:
                    self._inside = False

        monkeypatch.setattr(CallableKernel, "_launch", compared)
        yield
        assert not failures, "\n".join(failures)

    def _differences(self, kernel: OffloadKernel, asked: Any, before: Any) -> list[str]:
        options = replace(kernel.options, contract=False)
        twin = self._twins.setdefault((kernel.py_func, options), OffloadKernel(kernel.py_func, options))
        arrays = []
        for target, (args, kwargs) in zip(("cpu", "amdgpu"), before, strict=True):
            with use_target(target):
                try:
                    CallableKernel._launch(twin, asked, args, kwargs)
                except LaunchError:
                    # The CPU takes larger launches than a GPU, and a GPU other shapes than the CPU.
                    SameBits.left_out += 1
                    return []
            arrays.append(list(_arrays((args, tuple(kwargs.values())))))
            if target == "cpu" and self._may_differ(twin, args, kwargs):
                SameBits.left_out += 1
                return []
        SameBits.compared += 1
        return [
            f"kernel {kernel.__name__}: array {number} differs from the CPU's:\n{cpu!r}\n{amd!r}"
            for number, (cpu, amd) in enumerate(zip(*arrays, strict=True))
            if not _same(cpu, amd)
        ]

    def _may_differ(self, twin: OffloadKernel, args: Any, kwargs: Any) -> bool:
        every = (*args, *kwargs.values())
        if any(isinstance(a, Accumulator) and a.op == "+" and a.array.dtype.kind in "fc" for a in every):
            return True
        images = [
            code.image
            for known in twin._specialisations.values()
            for (target, *_), code in known.code.items()
            if target == "cpu"
        ]
        return any(image.symbols or _LIBRARY.search(image.llvm_ir) for image in images)


def _same(one: Any, other: Any) -> bool:
    """The same bits, but for the payload and sign of a NaN, which no standard fixes, and the gaps of records."""
    if one.dtype.names:
        return all(_same(one[name], other[name]) for name in one.dtype.names)
    if one.tobytes() == other.tobytes():
        return True
    return one.dtype.kind in "fc" and bool(
        np.array_equal(one, other, equal_nan=True) and np.array_equal(_signs(one), _signs(other))
    )


def _signs(values: Any) -> Any:
    parts = np.stack([values.real, values.imag]) if values.dtype.kind == "c" else values
    return np.where(np.isnan(parts), False, np.signbit(parts))


def _arrays(value: Any) -> Iterator[Any]:
    if isinstance(value, Region | Accumulator):
        yield value.array
    elif isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from _arrays(part)


def _copied(value: Any) -> Any:
    """Arguments that share nothing with these, of the same types."""
    if isinstance(value, Region):
        return Region(_copied(value.array), value.strategy)
    if isinstance(value, Accumulator):
        return Accumulator(_copied(value.array), value.op)
    if isinstance(value, np.ndarray):
        return _copied_array(value)
    if isinstance(value, dict):
        return {name: _copied(part) for name, part in value.items()}
    if isinstance(value, tuple):
        parts = [_copied(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value


def _copied_array(array: Any) -> Any:
    """A copy with the same strides, and the gaps between."""
    if array.size == 0 or array.dtype.hasobject:
        return array.copy()
    low, high = np.lib.array_utils.byte_bounds(array)
    storage = np.frombuffer(bytearray(ctypes.string_at(low, high - low) + bytes(64)), np.uint8)
    aligned = np.empty(storage.size + 64, np.uint8)
    shift = -aligned.ctypes.data % 64
    aligned[shift : shift + storage.size] = storage
    offset = shift + array.__array_interface__["data"][0] - low
    made = np.ndarray(array.shape, array.dtype, aligned.data, offset, array.strides)
    made.flags.writeable = array.flags.writeable
    return made
