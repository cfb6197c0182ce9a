"""NVIDIA's driver through ``cuda.bindings``: one device's primary context, and every return code looked at."""

from __future__ import annotations

import importlib
import os
from typing import Any

from numba_offload.errors import TargetError

_INSTALL = (
    "Install numba-offload[cuda13] (driver 580 and newer) or numba-offload[cuda12] (driver 525 and newer)"
)
_BROKEN = {700, 702, 710, 714, 715, 716, 717, 718, 719}
"""Errors after which the context cannot be used (illegal address, launch failure ...)."""


def load_bindings() -> Any:
    """The module of driver functions. Raises TargetError with a remedy where it is not installed."""
    try:
        return importlib.import_module("cuda.bindings.driver")
    except Exception as error:
        raise TargetError(
            f"the CUDA target needs cuda.bindings, which cannot be imported ({error}). {_INSTALL}"
        ) from error


class Driver:
    """The driver's functions for one device. ``api`` is ``cuda.bindings.driver``, or a stand-in for tests."""

    def __init__(self, api: Any = None, ordinal: int = 0) -> None:
        self.api = api if api is not None else load_bindings()
        self._pid = os.getpid()
        try:
            self.call("starting the driver", self.api.cuInit, 0)
            count = int(self.call("counting devices", self.api.cuDeviceGetCount))
        except TargetError as error:
            raise TargetError(f"the CUDA target does not work here: {error}") from error
        except Exception as error:  # the bindings look for the driver's library at the first call
            raise TargetError(
                f"the CUDA target found no NVIDIA driver ({error}). Install a driver for the GPU of this machine"
            ) from error
        if count == 0:
            raise TargetError("the CUDA target found a driver but no device; check CUDA_VISIBLE_DEVICES")
        self.count = count
        self.ordinal = ordinal
        self.device = self.call("opening the device", self.api.cuDeviceGet, ordinal)
        context = self.call("opening the device's context", self.api.cuDevicePrimaryCtxRetain, self.device)
        self._context = context
        self._context_handle = int(context)
        attributes = self.api.CUdevice_attribute
        self.capability = (
            self.attribute(attributes.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
            self.attribute(attributes.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
        )

    def call(self, doing: str, function: Any, *args: Any) -> Any:
        """Call a driver function; its result, or TargetError saying what failed and what the driver calls it."""
        result = function(*args)
        if result[0]:
            raise TargetError(f"CUDA: {doing} failed with {self.describe(result[0])}")
        return result[1] if len(result) > 1 else None

    def describe(self, code: Any) -> str:
        """An error code's name and text, and what to do where the context is lost."""
        name = self.api.cuGetErrorName(code)[1]
        text = self.api.cuGetErrorString(code)[1]
        said = f"{_text(name)} ({_text(text)})"
        if int(code) in _BROKEN:
            said += ". The device can no longer be used in this process; start it again"
        return said

    def attribute(self, which: Any) -> int:
        """A device attribute."""
        return int(self.call(f"asking for {which}", self.api.cuDeviceGetAttribute, which, self.device))

    def current(self) -> _Current:
        """``with driver.current():`` the device's context is the calling thread's.

        A thread whose context is another one, of another library or device, gets it back.
        """
        return _Current(self)

    def check_process(self) -> None:
        """Raise TargetError in a forked child, where a context of the parent's does not work."""
        if os.getpid() != self._pid:
            raise TargetError(
                "CUDA was started before this process was forked, and does not survive that; start workers with "
                "multiprocessing's 'spawn' or 'forkserver' method, or fork before the first launch"
            )


class _Current:
    __slots__ = ("_driver", "_pushed")

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._pushed = False

    def __enter__(self) -> None:
        driver = self._driver
        driver.check_process()
        found = driver.call("asking for the context", driver.api.cuCtxGetCurrent)
        if int(found) != driver._context_handle:
            driver.call("entering the context", driver.api.cuCtxPushCurrent, driver._context)
            self._pushed = True

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._pushed:
            self._driver.call("leaving the context", self._driver.api.cuCtxPopCurrent)


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
