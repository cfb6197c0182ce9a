"""Every kernel that a test of this folder compiles for the CPU is compiled and linked for AMD GPUs too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from emulation.metadata import check_code_object

from numba_offload.targets.amdgpu import devicelibs, linker
from numba_offload.targets.amdgpu.compiler import code_object_for
from numba_offload.targets.cpu.target import CPUTarget

AMD_ARCHITECTURES = ("gfx90a", "gfx942", "gfx1100", "gfx1201")

_done: set[Any] = set()


@pytest.fixture(autouse=True)
def _compiled_for_amd_gpus(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if "cpu-unified" not in request.node.name or not _tools():
        yield
        return
    failures: list[Exception] = []
    build = CPUTarget.build

    def noting(self: CPUTarget, source: Any) -> Any:
        image = build(self, source)
        key = (source.py_func.__code__, source.argument_types, source.options)
        if not source.options.partition and key not in _done:
            # At once: what the kernel captures may change before the test ends.
            _done.add(key)
            try:
                for arch in AMD_ARCHITECTURES:
                    check_code_object(code_object_for(source, arch), source)
            except Exception as error:
                failures.append(error)
        return image

    monkeypatch.setattr(CPUTarget, "build", noting)
    yield
    if failures:
        raise failures[0]


def _tools() -> bool:
    """Whether AMD code can be linked here; tests/targets says what is missing, and CI has it all."""
    return linker.find_linker() is not None and devicelibs.find_device_libraries() is not None
