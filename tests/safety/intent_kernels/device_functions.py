"""Kernels and how their arguments are mapped: device functions."""

from __future__ import annotations

from numba import njit

from intent_kernels.table import expect, region, x
from numba_offload import (
    offload_function,
)


@offload_function
def store(y, i, value):
    y[i] = value


@offload_function
def load(y, i):
    return y[i]


@offload_function
def load_nested(t, i):
    return t[0][0][i]


@offload_function
def length(y):
    return y.size


@njit
def first(a):
    return a[0]


@offload_function
def through(a):
    return first(a)


@expect("the callee assigns the element on every path", region, y="from")
def writes_in_a_callee(y):
    for i in y.indices():
        store(y, i, 1.0)


@expect("read in a callee of a callee", x, region, x="to", y="from")
def reads_in_a_callee(x, y):
    for i in y.indices():
        y[i] = through(x)


@expect("a slice read in a callee", x, region, x="to", y="from")
def reads_a_slice_in_a_callee(x, y):
    for i in y.indices():
        y[i] = first(x[2:])


@expect("a callee that asks for the size", x, region, x="none", y="from")
def asks_in_a_callee(x, y):
    for i in y.indices():
        y[i] = length(x)


@expect("a callee reads the Region", region, y="tofrom")
def callee_reads_first(y):
    for i in y.indices():
        y[i] = load(y, i) + 1.0


@expect("the same through *args", region, y="tofrom")
def callee_reads_first_by_star(y):
    for i in y.indices():
        y[i] = load(*(y, i)) + 1.0


@expect("the same in a nested tuple", region, y="tofrom")
def callee_reads_first_nested(y):
    for i in y.indices():
        y[i] = load_nested(((y,),), i) + 1.0


@expect("a closure is the kernel's own source", region, y="from")
def closure(y):
    def put(i):
        y[i] = 1.0

    for i in y.indices():
        put(i)
