"""Kernels that must not compile: what kernels lack."""

from __future__ import annotations

import numpy as np

from refused_kernels.table import (
    CAPTURED,
    refused,
    region,
)


@refused(region, named="", says="returns a value")
def returning_a_value(y):
    return y.size  # <- here


@refused(region, named="", says="try/except")
def catching(y):
    for i in y.indices():
        try:
            y[i] = 1.0  # <- here
        except Exception:
            pass


@refused(region, named="", says="try/except")
def context_manager(y):
    with CAPTURED:  # <- here
        pass


@refused(region, named="", says="print")
def printing(y):
    print(y.size)  # <- here


@refused(region, named="", says="allocate")
def allocating(y):
    held = np.zeros(3)  # <- here
    for i in y.indices():
        y[i] = held[0]
