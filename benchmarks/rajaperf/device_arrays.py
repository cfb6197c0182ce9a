"""A benchmark's data on an NVIDIA GPU, as plain device arrays without this package's mapping."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cuda

from .benchmark import Data


def _owner(name: str, data: Data) -> str:
    """The name of the array in ``data`` that owns the memory of ``data[name]``."""
    base = data[name].base
    return name if base is None else next(other for other, value in data.items() if value is base)


def _view(device: Any, view: np.ndarray) -> Any:
    """The part of a 1-D device array that corresponds to a contiguous view of its host array."""
    base = view.base
    assert base is not None and base.ndim == view.ndim == 1 and view.flags.c_contiguous
    start = (view.ctypes.data - base.ctypes.data) // view.itemsize
    return device[start : start + view.size]


def to_device(data: Data, keep: tuple[str, ...] = ()) -> Data:
    """Device arrays in place of host arrays, and views of them in place of views.

    Arrays named in ``keep`` stay on the host.
    """
    device: Data = {
        name: cuda.to_device(value)
        for name, value in data.items()
        if isinstance(value, np.ndarray) and value.base is None and name not in keep
    }
    for name, value in data.items():
        if isinstance(value, np.ndarray) and value.base is not None and name not in keep:
            device[name] = _view(device[_owner(name, data)], value)
    return {**data, **device}


def to_host(device: Data, data: Data) -> None:
    """Copy every array that owns its memory back."""
    for name, value in data.items():
        if isinstance(value, np.ndarray) and value.base is None and device[name] is not value:
            device[name].copy_to_host(value)


def synchronize() -> None:
    """Wait for the device."""
    cuda.synchronize()
