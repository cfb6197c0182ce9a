"""Random kernels: what is accepted does what Python does, in both memory models, and touches only what it owns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from numba.core.errors import NumbaError
from random_kernels import DEVICE, compiled, kernel_bodies, run_in_python

from numba_offload import (
    Chunked1D,
    EvenSplit1D,
    GridStride1D,
    Linear1D,
    Linear2D,
    Region,
    Strided1D,
    Tiles2D,
    offload_kernel,
)

# With whether a thread's elements form a block.
ONE_AXIS = [
    (Linear1D(), True),
    (Chunked1D(3), True),
    (EvenSplit1D(), True),
    (GridStride1D(), False),
    (Strided1D(1, 2), True),
]
TWO_AXES = [(Linear2D(), True), (Tiles2D(2, 2), True)]
THREADS = {1: (1, 7), 2: (1, (4, 3))}


def data(axes: int) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    shape = (7,) if axes == 1 else (3, 4)
    return [rng.integers(-4, 5, shape).astype(float), rng.integers(-4, 5, shape).astype(float),
            rng.integers(0, 3, 5).astype(float), rng.integers(0, 3, 5).astype(float)]  # fmt: skip


def check(axes: int, pair: tuple[Any, Any], body: str, n: int, flag: bool, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Compare a kernel with Python; whether it was accepted."""
    blocks, block = THREADS[axes]
    kernel = offload_kernel(compiled(body, DEVICE))
    results = []
    for model in ("unified", "discrete"):
        monkeypatch.setenv("NUMBA_OFFLOAD_CPU_MEMORY", model)
        a, b, x, z = data(axes)
        try:
            with np.errstate(all="ignore"):
                kernel[blocks, block](Region(a, pair[0]), Region(b, pair[1]), x, z, n, flag)
        except NumbaError:
            return False
        results.append([a, b, x, z])
    a, b, x, z = data(axes)
    threads: Any = block if axes == 1 else (block[1], block[0])
    with np.errstate(all="ignore"):
        run_in_python(body, Region(a, pair[0]), Region(b, pair[1]), x, z, n, flag, threads)
    for model, result in zip(("unified", "discrete"), results, strict=True):
        for name, expected, actual in zip("abxz", (a, b, x, z), result, strict=True):
            assert np.array_equal(expected, actual, equal_nan=True), (model, name, body, expected, actual)
    return True


@st.composite
def programs(draw: Any) -> Any:
    axes = draw(st.sampled_from([1, 1, 2]))
    choices = ONE_AXIS if axes == 1 else TWO_AXES
    first = draw(st.sampled_from(choices))
    second = draw(st.sampled_from([first, first, first, *choices]))
    body = draw(kernel_bodies(axes, first[1] and second[1]))
    return axes, (first[0], second[0]), body, draw(st.integers(0, 2)), draw(st.booleans())


@settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(program=programs())
def test_accepted_kernels_do_what_python_does(program: Any) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        accepted = check(*program, monkeypatch)
    event(f"accepted: {accepted}")
