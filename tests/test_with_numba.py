"""Kernels in a process that uses Numba itself too."""

from __future__ import annotations

import numpy as np
from numba import njit

from numba_offload import Region, offload_function, offload_kernel, use_target


def test_a_device_function_is_called_after_numba_has_compiled_functions_of_its_own() -> None:
    @njit
    def inner(x):
        return x + 1

    @njit
    def outer(x):
        return inner(x)

    assert outer(1) == 2

    @offload_function
    def twice(x):
        return 2 * x

    @offload_kernel
    def kernel(x, y):
        for i in y.indices():
            y[i] = twice(x[i]) + inner(x[i])

    x, y = np.arange(5), np.zeros(5, dtype=np.int64)
    with use_target("cpu"):
        kernel(x, Region(y))
    np.testing.assert_array_equal(y, 3 * x + 1)
