"""Kernels made again, as another process would make them, and what they may not do then."""

from __future__ import annotations

import importlib
import sys
import textwrap
import weakref
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from numba_offload import Region, enumerate_compiled, verify
from numba_offload.kernel import OffloadKernel
from numba_offload.targets.toolchain import Toolchain


def again(kernel: OffloadKernel) -> OffloadKernel:
    """The same kernel, cached on disk, with nothing of it in memory."""
    return OffloadKernel(kernel.py_func, kernel.options, cache=True)


def counts(kernel: OffloadKernel) -> tuple[int, ...]:
    """Hits and misses of records, hits and misses of code."""
    stats = kernel.cache_stats
    return stats.record_hits, stats.record_misses, stats.code_hits, stats.code_misses


HIT, MISS = (1, 0, 1, 0), (0, 1, 0, 1)


def nothing_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the host pass nor a device pass may run from now on."""

    def compile_function(self: Any, *args: Any) -> Any:
        raise AssertionError(f"{args[0].__name__} is compiled")

    monkeypatch.setattr(Toolchain, "compile_function", compile_function)
    forget_checks(monkeypatch)


def forget_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Strategies are checked again, and their checks are compiled or found on disk."""
    monkeypatch.setattr(enumerate_compiled, "_checkers", {})
    monkeypatch.setattr(verify, "_verified", weakref.WeakKeyDictionary())


def imported(folder: Path, **sources: str) -> ModuleType:
    """The module ``main`` of these sources, as a new process would import it."""
    for name, source in sources.items():
        path = folder / f"{name}.py"
        path.write_text(textwrap.dedent(source))
        sys.modules.pop(name, None)
    importlib.invalidate_caches()
    sys.path.insert(0, str(folder))
    # Two versions of a file within one second have one time stamp: Python's own cache would mix them up.
    kept, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        return importlib.import_module("main")
    finally:
        sys.dont_write_bytecode = kept
        sys.path.remove(str(folder))


def run(kernel: OffloadKernel, *scalars: Any) -> list[float]:
    """What a kernel of some scalars, an array and a Region leaves in the Region."""
    x, y = np.arange(5.0), np.zeros(4)
    kernel(*scalars, x, Region(y))
    return y.tolist()
