"""Kernels of the conformance suite: control flow."""

from __future__ import annotations

from numba_offload import offload_kernel


@offload_kernel
def break_out(y, limit):
    for i in y.indices():
        if i >= limit:
            break
        y[i] = 1


@offload_kernel
def continue_past(y, every):
    for i in y.indices():
        if i % every == 0:
            continue
        y[i] = 1


@offload_kernel
def break_out_2d(y, row, column):
    for i, j in y.indices():
        if i == row and j == column:
            break
        y[i, j] = 1


@offload_kernel
def continue_past_2d(y):
    for i, j in y.indices():
        if (i + j) % 3 == 0:
            continue
        y[i, j] = 10 * i + j


@offload_kernel
def break_after_write_2d(y, column):
    count = 0
    for i, j in y.indices():
        y[i, j] = count
        count += 1
        if j == column:
            break


@offload_kernel
def else_after_loop_2d(y, z, stop):
    for i, j in y.indices():
        y[i, j] = 1
        if i == stop:
            break
    else:
        for i, j in z.indices():
            z[i, j] = 1


@offload_kernel
def return_early_3d(y, stop):
    for i, j, k in y.indices():
        if i + j + k == stop:
            return
        y[i, j, k] = 1


@offload_kernel
def collatz(x, y):
    for i in y.indices():
        n = x[i]
        steps = 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        y[i] = steps


@offload_kernel
def loop_in_loop(x, y):
    for i in y.indices():
        total = 0
        for j in range(len(x)):
            if x[j] < 0:
                continue
            if x[j] > 90:
                break
            total += x[j]
        y[i] = total


@offload_kernel
def two_loops(x, y):
    for i in y.indices():
        y[i] = x[i]
    for i in y.indices():
        y[i] = y[i] * 2


@offload_kernel
def nested_owned(y, z):
    for i in y.indices():
        total = 0
        for j in z.indices():
            z[j] = z[j] + 1
            total += 1
        y[i] = total


@offload_kernel
def matrix_product(a, b, c):
    for i, j in c.indices():
        total = a[0, 0] * 0
        for k in range(a.shape[1]):
            total += a[i, k] * b[k, j]
        c[i, j] = total


@offload_kernel
def chained_conditions(x, y):
    for i in y.indices():
        v = x[i]
        if v < 0:
            y[i] = -1
        elif 0 <= v < 10 or v == 55:
            y[i] = 0
        elif v > 20 and not v == 30:
            y[i] = 1
        else:
            y[i] = 2
