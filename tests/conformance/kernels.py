"""The kernels of the conformance suite: this one file, unchanged, on every target.

Floating-point results are compared with NumPy's, so kernels that could fuse a multiplication and an addition are
compiled with ``contract=False``.
"""

from __future__ import annotations

import cmath
import math
from collections import namedtuple

import numpy as np
from numba import njit

from numba_offload import cuda, offload_function, offload_kernel

# ------------------------------------------------------------------------------------------------- element by element


@offload_kernel
def copy(x, y):
    for i in y.indices():
        y[i] = x[i]


@offload_kernel
def add_into(x, y):
    for i in y.indices():
        y[i] = y[i] + x[i]


@offload_kernel
def increment(y):
    for i in y.indices():
        y[i] += 1


@offload_kernel
def fill(y, value):
    for i in y.indices():
        y[i] = value


@offload_kernel(contract=False)
def saxpy(alpha, x, y):
    for i in y.indices():
        y[i] = alpha * x[i] + y[i]


@offload_kernel
def negate_bool(x, y):
    for i in y.indices():
        y[i] = not x[i]


@offload_kernel
def both(x, y, z):
    for i in y.indices():
        y[i] = x[i]
        z[i] = x[i]


@offload_kernel
def numbers(y):
    for i in y.indices():
        y[i] = i


@offload_kernel
def coordinates_2d(y):
    for i, j in y.indices():
        y[i, j] = 100 * i + j


@offload_kernel
def coordinates_3d(y):
    for i, j, k in y.indices():
        y[i, j, k] = 10000 * i + 100 * j + k


@offload_kernel
def even_only(y):
    for i in y.indices():
        if i % 2 == 0:
            y[i] = 1


@offload_kernel
def untouched(x, y, z):
    for i in y.indices():
        y[i] = x.size + z.shape[0]


@offload_kernel
def only_reads(x, limit):
    if x[0] > limit:
        raise ValueError("above the limit")


# --------------------------------------------------------------------------------------------- indexing shared arrays


@offload_kernel
def gather(x, where, y):
    for i in y.indices():
        y[i] = x[where[i]]


@offload_kernel
def shifted(x, y, by):
    for i in y.indices():
        y[i] = x[i + by]


@offload_kernel
def from_the_end(x, y):
    for i in y.indices():
        y[i] = x[-1 - i]


@offload_kernel
def transposed(x, y):
    for i, j in y.indices():
        y[i, j] = x[j, i]


@offload_kernel
def transposed_attribute(x, y):
    for i, j in y.indices():
        y[i, j] = x.T[i, j]


@offload_kernel
def only_element(x, y):
    for i in y.indices():
        y[i] = x[()]


@offload_kernel
def row_sums(x, y):
    for i in y.indices():
        row = x[i]
        total = row[0] - row[0]
        for j in range(row.shape[0]):
            total += row[j]
        y[i] = total


@offload_kernel
def iterate_rows(x, y):
    for i in y.indices():
        total = 0
        for row in x:
            for value in row:
                total += value
        y[i] = total


@offload_kernel
def iterate_slice(x, y, start, stop, step):
    for i in y.indices():
        total = 0
        n = 0
        for value in x[start:stop:step]:
            total = 3 * total + value
            n += 1
        y[i] = 1000 * n + total


@offload_kernel
def slices_2d(x, y):
    for i in y.indices():
        block = x[1:, ::-1]
        column = block[:, 1]
        tail = x[-2:, -1]
        y[i] = block[0, 0] + 10 * column[-1] + 100 * tail[0] + 1000 * len(column) + 10000 * block.shape[1]


@offload_kernel
def sub_views_3d(x, y):
    for i in y.indices():
        plane = x[i]
        line = x[..., i]
        point = x[i, ..., 0]
        new = x[:, None, 0]
        y[i] = plane[1, 2] + 100 * line[1, 1] + 10000 * point[1] + 1000000 * (new.ndim + new.shape[1])


@offload_kernel
def stencil(x, y):
    n = x.shape[0]
    for i in y.indices():
        left = x[i - 1] if i > 0 else x[0]
        right = x[i + 1] if i + 1 < n else x[n - 1]
        y[i] = left + 2 * x[i] + right


@offload_kernel
def questions(x, y):
    for i in y.indices():
        y[i] = x.size + 10 * x.ndim + 100 * len(x) + 1000 * x.shape[1] + 10000 * x.itemsize


# ------------------------------------------------------------------------------------------------------- own blocks


@offload_kernel
def scan_block(y):
    block = y.local
    for k in range(1, block.shape[0]):
        block[k] += block[k - 1]


@offload_kernel
def block_origin(y):
    block = y.local
    for k in range(len(block)):
        block[k] = 1000 * y.origin + k


@offload_kernel
def block_origin_2d(y):
    block = y.local
    r, c = y.origin
    for i in range(block.shape[0]):
        for j in range(block.shape[1]):
            block[i, j] = 1000 * (10 * r + c) + 10 * i + j


@offload_kernel
def block_origin_3d(y):
    block = y.local
    p, r, c = y.origin
    for h in range(block.shape[0]):
        for i in range(block.shape[1]):
            for j in range(block.shape[2]):
                block[h, i, j] = 10000 * (100 * p + 10 * r + c) + 100 * h + 10 * i + j


@offload_kernel
def block_from(x, y):
    mine = y.local
    at = y.origin
    for k in range(mine.shape[0]):
        mine[k] = x[at + mine.shape[0] - 1 - k]


@offload_kernel
def block_slices(y):
    block = y.local
    block[:] = 5
    block[::2] = 1
    block[-1] = 9


@offload_kernel
def block_past_its_end(y):
    block = y.local
    block[block.shape[0]] = 1


# ----------------------------------------------------------------------------------------------------- tuples and calls

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


# --------------------------------------------------------------------------------------------------------- mathematics


@offload_kernel(contract=False)
def mathematics(x, sin, cos, tan, exp, expm1, log1p, sqrt, tanh, atan, erf, floor, ceil, hypot):
    for i in sin.indices():
        v = x[i]
        sin[i] = math.sin(v)
        cos[i] = math.cos(v)
        tan[i] = math.tan(v)
        exp[i] = math.exp(v)
        expm1[i] = math.expm1(v)
        log1p[i] = math.log1p(abs(v))
        sqrt[i] = math.sqrt(abs(v))
        tanh[i] = math.tanh(v)
        atan[i] = math.atan(v)
        erf[i] = math.erf(v)
        floor[i] = math.floor(v)
        ceil[i] = math.ceil(v)
        hypot[i] = math.hypot(v, 3 * v)


@offload_kernel(contract=False)
def mathematics_positive(x, log, log2, log10, power, gamma, lgamma, acos, asin, atan2, copysign, fmod, asinh):
    for i in log.indices():
        v = x[i]
        log[i] = math.log(v)
        log2[i] = math.log2(v)
        log10[i] = math.log10(v)
        power[i] = v**2.5
        gamma[i] = math.gamma(v)
        lgamma[i] = math.lgamma(v)
        acos[i] = math.acos(1 / (1 + v))
        asin[i] = math.asin(1 / (1 + v))
        atan2[i] = math.atan2(-v, 2.0)
        copysign[i] = math.copysign(v, -1.0)
        fmod[i] = np.fmod(v, 0.7)
        asinh[i] = math.asinh(v)


@offload_kernel(contract=False)
def numpy_functions(x, sin, exp, sqrt, absolute, minimum, maximum, sign, floor):
    for i in sin.indices():
        v = x[i]
        sin[i] = np.sin(v)
        exp[i] = np.exp(v)
        sqrt[i] = np.sqrt(np.abs(v))
        absolute[i] = np.abs(v)
        minimum[i] = np.minimum(v, 0.5)
        maximum[i] = np.maximum(v, 0.5)
        sign[i] = np.sign(v)
        floor[i] = np.floor(v)


@offload_kernel
def classify(x, nan, inf, finite):
    for i in nan.indices():
        nan[i] = math.isnan(x[i])
        inf[i] = math.isinf(x[i])
        finite[i] = math.isfinite(x[i])


@offload_kernel
def rounding(x, y, z):
    for i in y.indices():
        y[i] = round(x[i])
        z[i] = int(x[i])


@offload_kernel
def float_division(x, y, quotient):
    for i in quotient.indices():
        quotient[i] = x[i] / y[i]


@offload_kernel
def float_floor_division(x, y, quotient, remainder):
    for i in quotient.indices():
        quotient[i] = x[i] // y[i]
        remainder[i] = x[i] % y[i]


@offload_kernel
def integer_division(x, y, quotient, remainder):
    for i in quotient.indices():
        quotient[i] = x[i] // y[i]
        remainder[i] = x[i] % y[i]


@offload_kernel
def true_division(x, y, quotient):
    for i in quotient.indices():
        quotient[i] = x[i] / y[i]


@offload_kernel
def bits(x, y, conjunction, disjunction, difference, inverse):
    for i in conjunction.indices():
        conjunction[i] = x[i] & y[i]
        disjunction[i] = x[i] | y[i]
        difference[i] = x[i] ^ y[i]
        inverse[i] = ~x[i]


@offload_kernel
def shifts(x, by, left, right):
    for i in left.indices():
        left[i] = x[i] << by[i]
        right[i] = x[i] >> by[i]


@offload_kernel
def wrap_around(x, y, total, difference, product, negative):
    for i in total.indices():
        total[i] = x[i] + y[i]
        difference[i] = x[i] - y[i]
        product[i] = x[i] * y[i]
        negative[i] = -x[i]


@offload_kernel
def comparisons(x, y, less, equal, greater_equal):
    for i in less.indices():
        less[i] = x[i] < y[i]
        equal[i] = x[i] == y[i]
        greater_equal[i] = x[i] >= y[i]


@offload_kernel
def wide_results(x, y, product, quotient, remainder, difference):
    for i in product.indices():
        product[i] = x[i] * y[i]
        quotient[i] = x[i] // y[i]
        remainder[i] = x[i] % y[i]
        difference[i] = ~x[i] - y[i]


@offload_kernel
def powers(x, squared, cubed):
    for i in squared.indices():
        squared[i] = x[i] ** 2
        cubed[i] = x[i] ** 3


@offload_kernel(contract=False)
def complex_arithmetic(x, y, total, product, quotient, conjugate, real, imag, size):
    for i in total.indices():
        total[i] = x[i] + y[i]
        product[i] = x[i] * y[i]
        quotient[i] = x[i] / y[i]
        conjugate[i] = x[i].conjugate()
        real[i] = x[i].real
        imag[i] = x[i].imag
        size[i] = abs(x[i])


@offload_kernel(contract=False)
def complex_product(x, y, out):
    for i in out.indices():
        out[i] = x[i] * y[i] + out[i]


@offload_kernel
def complex_power(x, y, power):
    for i in power.indices():
        power[i] = x[i] ** y[i]


@offload_kernel(contract=False)
def complex_functions(x, exp, sqrt, sin, phase):
    for i in exp.indices():
        exp[i] = cmath.exp(x[i])
        sqrt[i] = cmath.sqrt(x[i])
        sin[i] = cmath.sin(x[i])
        phase[i] = cmath.phase(x[i])


@offload_kernel(contract=False)
def complex_scalar(alpha, x, y):
    for i in y.indices():
        y[i] = alpha * x[i] + y[i]


@offload_kernel
def dates(start, step, stamps, spans):
    for i in stamps.indices():
        stamps[i] = start[i] + step[i]
        spans[i] = (start[i] + step[i]) - start[0]


@offload_kernel
def index_arithmetic(x, y):
    n = len(x)
    for i in y.indices():
        y[i] = x[(i * 7 + 3) % n] + 10 * (i // 2) + 1000 * min(i, 3) + 100000 * (-i % 4)


# -------------------------------------------------------------------------------------------------------- control flow


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


# -------------------------------------------------------------------------------------------------------------- errors


@offload_kernel
def divide_integers(x, y):
    for i in y.indices():
        y[i] = 100 // x[i]  # line: divide


@offload_kernel
def remainder_of(x, y):
    for i in y.indices():
        y[i] = 100 % x[i]  # line: remainder


@offload_kernel
def refuse_negative(x, y):
    for i in y.indices():
        if x[i] < 0:
            raise ValueError("negative", i, x[i])  # line: raise
        y[i] = x[i]


@offload_kernel
def raise_constant(x, y):
    for i in y.indices():
        if x[i] == 13:
            raise RuntimeError("unlucky")  # line: constant
        y[i] = x[i]


@offload_kernel
def check_positive(x, y):
    for i in y.indices():
        assert x[i] > 0, "must be positive"  # line: assert
        y[i] = x[i]


@offload_function
def checked_root(v):
    if v < 0:
        raise ValueError("no root")  # line: callee
    return math.sqrt(v)


@offload_kernel
def roots(x, y):
    for i in y.indices():
        y[i] = checked_root(x[i])


@offload_kernel
def beyond_end(x, y):
    for i in y.indices():
        y[i] = x[i + 1]  # line: beyond


@offload_kernel
def beyond_end_2d(x, y):
    for i, j in y.indices():
        y[i, j] = x[i, j + 2]  # line: beyond 2d


@offload_kernel
def write_then_fail(x, y):
    for i in y.indices():
        y[i] = 1
        if x[i] < 0:
            raise ValueError("after a write")


# -------------------------------------------------------------------------------------------------------------- records

PACKED = np.dtype([("id", "i2"), ("mass", "f8"), ("charge", "i1")])
ALIGNED = np.dtype([("id", "i2"), ("mass", "f8"), ("charge", "i1")], align=True)


@offload_kernel
def record_fields(x, y):
    for i in y.indices():
        y[i] = x[i].id + x[i].mass * x[i].charge


@offload_kernel
def record_write_field(r):
    for i in r.indices():
        r[i].mass = 2.5 * i


@offload_kernel
def record_update_field(r):
    for i in r.indices():
        r[i].id += 1


@offload_kernel
def record_copy(x, y):
    for i in y.indices():
        y[i] = x[i]


INNER = [("n", "i4"), ("m", "f4")]
NESTED = np.dtype([("at", "f8", (3,)), ("inner", np.dtype(INNER, align=True)), ("flag", "?")], align=True)
NESTED_PACKED = np.dtype([("flag", "?"), ("inner", INNER), ("at", "f8", (3,))])


@offload_kernel
def record_nested_read(x, y):
    for i in y.indices():
        row = x[i]
        total = row.inner.n * 100.0
        for k in range(row.at.shape[0]):
            total += row.at[k]
        if row.flag:
            total = -total
        y[i] = total


@offload_kernel
def record_nested_write(r):
    for i in r.indices():
        r[i].at[1] = 5.0 * i
        r[i].inner.n = i
        r[i]["flag"] = True


@offload_kernel
def record_block(r):
    block = r.local
    for k in range(block.shape[0]):
        block[k].mass = block[k].mass + k


# ----------------------------------------------------------------------------------- accumulators, reductions, colours


@offload_kernel
def histogram(x, done, counts):
    for i in done.indices():
        done[i] = True
        counts.update(x[i], 1)


@offload_kernel
def accumulate_at(x, row, column, done, acc):
    for i in done.indices():
        done[i] = True
        acc.update((row[i], column[i]), x[i])


@offload_kernel
def accumulate_one(x, done, acc):
    for i in done.indices():
        done[i] = True
        acc.update(0, x[i])


@offload_kernel
def row_statistics(x, low, high, mean, anything, everything):
    for i in low.indices():
        row = x[i]
        low[i] = row.min()
        high[i] = np.max(row)
        mean[i] = row.mean()
        anything[i] = row.any()
        everything[i] = np.all(row)


@offload_kernel
def whole_statistics(x, y):
    for i in y.indices():
        y[i] = x.max() - x.min() + np.sum(x[:, i])


@offload_kernel(contract=False)
def relax(u):
    rows, columns = u.shape
    for r, c in u.indices():
        if 0 < r < rows - 1 and 0 < c < columns - 1:
            u[r, c] = 0.25 * (u[r - 1, c] + u[r + 1, c] + u[r, c - 1] + u[r, c + 1])


@offload_kernel
def colour_to_the_left(u):
    for r, c in u.indices():
        u[r, c] = u[r, c - 1]


# --------------------------------------------------------------------------------------------------------------- unsafe


@offload_kernel(unsafe=True)
def raw_scale(x, y, a):
    i = cuda.grid(1)
    if i < x.shape[0]:
        y[i] = a * x[i]


@offload_kernel(unsafe=True)
def raw_stride(y):
    for i in range(cuda.grid(1), y.shape[0], cuda.gridsize(1)):
        y[i] += 1


@offload_kernel(unsafe=True)
def raw_positions(y):
    i, j = cuda.grid(2)
    if i < y.shape[0] and j < y.shape[1]:
        y[i, j] = (
            cuda.threadIdx.x + 10 * cuda.threadIdx.y + 100 * cuda.blockIdx.x + 1000 * cuda.blockIdx.y
            + 10000 * cuda.blockDim.x + 100000 * cuda.gridDim.y
        )


@offload_kernel
def at_float(x, where, y):
    for i in y.indices():
        y[i] = x[int(where[i])]


@offload_kernel
def at_shift(x, by, y):
    for i in y.indices():
        y[i] = x[(1 << by[i]) - 1]


def add_columns(x, y):
    for i in y.indices():
        y[i] = x[i].at + x[i].value


@offload_kernel
def count_threads(x, counts):
    counts.update(0, 1)
    for _ in x.indices():
        counts.update(0, 100)
