"""Whatever is compiled for the CPU, compiled and linked for AMD GPUs too, and its code object looked at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from emulation.metadata import check_code_object
from numba_offload.targets.amdgpu import devicelibs, linker
from numba_offload.targets.amdgpu.compiler import code_object_for
from numba_offload.targets.cpu.target import CPUTarget

ARCHITECTURES = ("gfx90a", "gfx942", "gfx1100", "gfx1201")

_done: set[Any] = set()


def why_not() -> str | None:
    """Why AMD code cannot be linked here, or None. CI installs what it takes."""
    if linker.find_linker() is None:
        return "ld.lld is not installed (Debian's package lld-19)"
    if devicelibs.find_device_libraries() is None:
        return "ROCm's device libraries are not installed (Debian's package rocm-device-libs)"
    return None


@contextmanager
def compiled_for_amd(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Inside, kernels that are compiled for the CPU are compiled for every architecture, each once in a session.

    Gives the names of the kernels that were. What is wrong with one is raised at the end.
    """
    failures: list[Exception] = []
    names: list[str] = []
    build = CPUTarget.build

    def noting(self: CPUTarget, source: Any) -> Any:
        image = build(self, source)
        key = (source.py_func.__code__, source.argument_types, source.options)
        if not source.options.partition and key not in _done:
            # At once: what the kernel captures may change before the test ends.
            _done.add(key)
            names.append(source.name)
            try:
                for arch in ARCHITECTURES:
                    check_code_object(code_object_for(source, arch), source)
            except Exception as error:
                failures.append(error)
        return image

    monkeypatch.setattr(CPUTarget, "build", noting)
    yield names
    if failures:
        raise failures[0]
