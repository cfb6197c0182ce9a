"""Kernels of the conformance suite: tuples and calls."""

from __future__ import annotations

from collections import namedtuple

from numba import njit

from numba_offload import offload_function, offload_kernel

Particles = namedtuple("Particles", ["position", "velocity", "mass"])


@offload_kernel
def move(p, dt):
    for i in p.position.indices():
        p.position[i] = p.position[i] + dt * p.velocity[i] / p.mass


@offload_kernel
def add_pair(pair, y):
    for i in y.indices():
        y[i] = pair[0][i] + pair[1][i]


@offload_kernel
def nested_tuple(t):
    for i in t[1][0].indices():
        t[1][0][i] = t[0][i] * t[1][1]


@offload_kernel
def any_of(arrays, y):
    for i in y.indices():
        total = 0.0
        for k in range(len(arrays)):
            total += arrays[k][i]
        y[i] = total


@offload_kernel
def defaults(x, y, scale=2.0, shift=0):
    for i in y.indices():
        y[i] = scale * x[i] + shift


@offload_kernel
def optional(x, y, extra=None):
    for i in y.indices():
        if extra is None:
            y[i] = x[i]
        else:
            y[i] = x[i] + extra


@offload_function
def twice(value):
    return value + value


@njit
def thrice(value):
    return 3 * value


@offload_function
def read_at(x, i):
    return x[i]


@offload_function
def store_at(y, i, value):
    y[i] = value


@offload_function
def store_everywhere(y, value):
    for i in y.indices():
        y[i] = value


@njit
def sum_of(x):
    total = 0
    for value in x:
        total += value
    return total


@offload_function
def smallest_and_largest(pair):
    a, b = pair
    return min(a, b), max(a, b)


@offload_function
def fill_block(block, value):
    for k in range(block.shape[0]):
        block[k] = value + twice(k)


@offload_function
def countdown(n):
    if n <= 0:
        return 0
    return n + countdown(n - 1)


@offload_function
def is_even(n):
    return True if n == 0 else is_odd(n - 1)


@offload_function
def is_odd(n):
    return False if n == 0 else is_even(n - 1)


@offload_kernel
def call_scalars(x, y):
    for i in y.indices():
        y[i] = twice(x[i]) + thrice(x[i])


@offload_kernel
def call_views(x, y):
    for i in y.indices():
        store_at(y, i, read_at(x, i))


@offload_kernel
def call_with_region(y, value):
    store_everywhere(y, value)


@offload_kernel
def call_with_slice(x, y):
    for i in y.indices():
        y[i] = sum_of(x[:3]) + sum_of(x)


@offload_kernel
def call_with_tuple(x, y, z):
    for i in y.indices():
        low, high = smallest_and_largest((x[i], y[i]))
        y[i] = low
        z[i] = high


@offload_kernel
def call_with_block(y):
    fill_block(y.local, y.origin)


@offload_kernel
def call_recursive(y):
    for i in y.indices():
        y[i] = countdown(int(i))


@offload_kernel
def call_mutually_recursive(y):
    for i in y.indices():
        y[i] = is_even(int(i))


GRAVITY = 9.5
OFFSETS = (1, 20, 300)


@offload_kernel
def uses_globals(y):
    for i in y.indices():
        y[i] = GRAVITY + OFFSETS[i % 3]


def scaled_by(factor):
    """A kernel that closes over ``factor``."""

    @offload_kernel
    def scale(x, y):
        for i in y.indices():
            y[i] = factor * x[i]

    return scale
