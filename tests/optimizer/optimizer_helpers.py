"""A host function run as it stands and with its transfers optimised, on memory of its own."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from numba_offload import offload_kernel, optimize_transfers
from numba_offload.targets.registry import current_target


@offload_kernel
def add_one(y):
    for i in y.indices():
        y[i] = y[i] + 1.0


@offload_kernel
def add_to(x, y):
    for i in y.indices():
        y[i] = y[i] + x[i]


@offload_kernel
def copy_to(x, y):
    for i in y.indices():
        y[i] = x[i]


@offload_kernel
def fail_beyond(x, y, limit):
    for i in y.indices():
        y[i] = y[i] + 1.0
        if x[i] > limit:
            raise ValueError("beyond the limit")


def optimised(function: Callable[..., Any]) -> Any:
    """The function decorated. It is an error if it is left as it is."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return optimize_transfers(function)


def outcome(function: Callable[..., Any], *args: Any) -> Any:
    """What a function returns or raises."""
    try:
        return repr(function(*args))
    except Exception as error:
        return type(error), str(error)


def check_same(function: Callable[..., Any], *makers: Callable[[], Any]) -> None:
    """A function means the same with its transfers optimised, on fresh arguments; it leaves nothing on the device."""
    decorated = optimised(function)
    plain_args, args = [make() for make in makers], [make() for make in makers]
    wanted = outcome(function, *plain_args)
    assert outcome(decorated, *args) == wanted
    for one, other in zip(plain_args, args, strict=True):
        if isinstance(one, np.ndarray):
            assert one.tolist() == other.tolist()
    assert_nothing_left()


def assert_nothing_left() -> None:
    device = current_target().device
    assert not device.present.residents
    assert device.pool.bytes_in_use == 0


def twelve() -> np.ndarray:
    return np.arange(12, dtype="f8")
