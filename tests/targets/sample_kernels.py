"""Kernels that every GPU target's compiler is tested with."""

from __future__ import annotations

from numba_offload import offload_kernel


@offload_kernel
def saxpy(alpha, x, y):
    for i in y.indices():
        y[i] = alpha * x[i] + y[i]


@offload_kernel(contract=False)
def saxpy_rounded_twice(alpha, x, y):
    for i in y.indices():
        y[i] = alpha * x[i] + y[i]


@offload_kernel
def blur(image, out):
    rows, columns = image.shape
    for i, j in out.indices():
        if 0 < i < rows - 1 and 0 < j < columns - 1:
            out[i, j] = 0.25 * (image[i - 1, j] + image[i + 1, j] + image[i, j - 1] + image[i, j + 1])
