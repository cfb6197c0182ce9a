"""Kernels of the conformance suite: mathematics."""

from __future__ import annotations

import cmath
import math

import numpy as np

from numba_offload import offload_kernel


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
