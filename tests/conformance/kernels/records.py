"""Kernels of the conformance suite: records."""

from __future__ import annotations

import numpy as np

from numba_offload import offload_kernel

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
