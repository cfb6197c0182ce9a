"""Kernels and how their arguments are mapped: rows."""

from __future__ import annotations

import numpy as np

from intent_kernels.table import ALIGNED, ROW, expect, region, rows
from numba_offload import (
    Accumulator,
    offload_function,
)


@expect("one field", rows, y="tofrom")
def one_field(y):
    for i in y.indices():
        y[i].a = 1.0


@expect("every field, but not the padding", rows, y="tofrom")
def field_by_field(y):
    for i in y.indices():
        y[i].a = 1.0
        y[i].b = 2


@expect("whole rows", lambda: np.ones(6, ROW), rows, x="to", y="from")
def whole_rows(x, y):
    for i in y.indices():
        y[i] = x[i]


@expect("a row taken before it is assigned", lambda: np.ones(6, ROW), rows, x="to", y="tofrom")
def row_before(x, y):
    for i in y.indices():
        old = y[i]
        y[i] = x[i]
        y[i].a += old.a


@expect("a field read", lambda: np.ones(6, ROW), region, x="to", y="from")
def reads_a_field(x, y):
    for i in y.indices():
        y[i] = x[i].a + x[i]["b"]


@expect("a column read", lambda: np.zeros(6, ALIGNED), region, x="to", y="from")
def reads_a_column(x, y):
    for i in y.indices():
        y[i] = x.b[i]


@expect("a column alone moves nothing", lambda: np.zeros(6, ALIGNED), region, x="none", y="from")
def makes_a_column(x, y):
    for i in y.indices():
        y[i] = x.b.size


@expect("an array in a row is written", rows, y="tofrom")
def array_in_a_row(y):
    for i in y.indices():
        y[i].v[1] = 1.0


@offload_function
def bump(row):
    row.a += 1.0


@expect("a row written in a callee", rows, y="tofrom")
def row_in_a_callee(y):
    for i in y.indices():
        bump(y[i])


@expect("updated atomically", lambda: Accumulator(np.zeros(3), "+"), region, total="tofrom", y="none")
def accumulator(total, y):
    for i in y.indices():
        total.update(i % 3, 1.0)


@offload_function
def store_if(y, i, value):
    if value > 0.0:
        y[i] = value


@offload_function
def load_then_store(y, i):
    y[i] = y[i] + 1.0


@offload_function
def fill_all(y, value):
    for i in y.indices():
        y[i] = value


@expect("the callee assigns on one branch only", region, 1.0, y="tofrom", value="literal")
def a_callee_may_not_write(y, value):
    for i in y.indices():
        store_if(y, i, value)


@expect("the callee reads first", region, y="tofrom")
def a_callee_reads_first(y):
    for i in y.indices():
        load_then_store(y, i)


@expect("assigned before the callee reads", region, y="from")
def assigned_before_a_callee_reads(y):
    for i in y.indices():
        y[i] = 1.0
        load_then_store(y, i)


@expect("the callee's own loop covers", region, y="from")
def a_callee_covers(y):
    fill_all(y, 2.0)


@expect("the covering call may not run", region, True, y="tofrom", flag="literal")
def a_callee_may_not_run(y, flag):
    if flag:
        fill_all(y, 2.0)
