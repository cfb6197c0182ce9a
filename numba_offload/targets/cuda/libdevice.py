"""Where libdevice is: NVIDIA's mathematics as LLVM bitcode. It comes with a wheel or with the toolkit."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from numba_offload.errors import TargetError
from numba_offload.targets.inputs import described

_FILE = Path("nvvm", "libdevice", "libdevice.10.bc")
_WHEEL_FOLDERS = ("cu13", "cu12", "cuda_nvcc", "cuda_nvvm", "")
"""Folders of the ``nvidia`` namespace package that have held it."""


def _candidates() -> Iterator[Path]:
    named = os.environ.get("NUMBA_OFFLOAD_LIBDEVICE")
    if named:
        yield Path(named)
    for variable in ("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"):
        root = os.environ.get(variable)
        if root:
            yield Path(root, _FILE)
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for wheel in _WHEEL_FOLDERS:
            yield Path(folder, wheel, _FILE)
    yield Path(sys.prefix, _FILE)  # conda
    yield Path(sys.prefix, "Library", _FILE)
    yield Path("/usr/local/cuda", _FILE)
    yield Path("/usr/lib/nvidia-cuda-toolkit/libdevice/libdevice.10.bc")
    for toolkit in sorted(Path("/usr/local").glob("cuda-*"), reverse=True):
        yield toolkit / _FILE


def find_libdevice() -> Path | None:
    """The first libdevice there is, or None."""
    return next((path for path in _candidates() if path.is_file()), None)


@lru_cache(maxsize=4)
def _read(path: Path) -> bytes:
    return path.read_bytes()


def libdevice_inputs() -> tuple[str, ...]:
    """What tells libdevice from another one; nothing where there is none."""
    path = find_libdevice()
    return () if path is None else (_described(path),)


@lru_cache(maxsize=4)
def _described(path: Path) -> str:
    """As it was when it was first asked for, no later than it is read."""
    return described(path)


def load_libdevice() -> list[bytes]:
    """libdevice's bitcode. Raises TargetError where there is none."""
    path = find_libdevice()
    if path is None:
        raise TargetError(
            "the kernel uses mathematical functions, which for CUDA come from NVIDIA's libdevice, which was not found. "
            "Install numba-offload[cuda13] or numba-offload[cuda12] (or the wheel nvidia-nvvm), or set CUDA_HOME to an "
            "installed CUDA toolkit"
        )
    return [_read(path)]
