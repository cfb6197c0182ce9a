"""Kernels and how their arguments are mapped: nothing and reading."""

from __future__ import annotations

import numpy as np

from intent_kernels.table import Pair, expect, region, x


@expect("the shape is not the content", x, region, x="none", y="from")
def shape_only(x, y):
    for i in y.indices():
        y[i] = x.size + x.shape[0] + len(x) + x.ndim


@expect("indices are not content either", x, region, x="none", y="none")
def indices_only(x, y):
    for _ in y.indices():
        pass


@expect("never mentioned", x, region, x="none", y="from")
def unused(x, y):
    for i in y.indices():
        y[i] = 1.0


@expect("a transpose that is not read", lambda: x((2, 3)), region, x="none", y="from")
def shape_of_a_transpose(x, y):
    for i in y.indices():
        y[i] = x.T.shape[0]


@expect("read", x, region, x="to", y="from")
def reads(x, y):
    for i in y.indices():
        y[i] = x[i]


@expect("read through a slice", x, region, x="to", y="from")
def reads_a_slice(x, y):
    part = x[1:]
    for i in y.indices():
        y[i] = part[0]


@expect("a slice alone moves nothing", x, region, x="none", y="from")
def makes_a_slice(x, y):
    part = x[1:]
    for i in y.indices():
        y[i] = part.size


@expect("read by iteration", x, region, x="to", y="from")
def iterates(x, y):
    for i in y.indices():
        total = 0.0
        for value in x:
            total += value
        y[i] = total


@expect("read by a reduction", x, region, x="to", y="from")
def reduces(x, y):
    for i in y.indices():
        y[i] = x.sum() + np.max(x)


@expect("the Region is only read", region, region, x="to", y="from")
def reads_a_region(x, y):
    for i in y.indices():
        y[i] = x[i]


@expect("read on one branch only", x, region, True, x="to", y="from", flag="literal")
def reads_on_a_branch(x, y, flag):
    for i in y.indices():
        if flag:
            y[i] = x[0]
        else:
            y[i] = 0.0


@expect("one of the two is read", x, x, region, True, a="to", b="to", y="from", flag="literal")
def reads_an_alias(a, b, y, flag):
    chosen = a if flag else b
    for i in y.indices():
        y[i] = chosen[0]


@expect("leaves of a tuple", lambda: (x(), x()), region, y="from", leaves={"t[0]": "none", "t[1]": "to"})
def reads_a_tuple(t, y):
    for i in y.indices():
        y[i] = t[1][0]


@expect("leaves of a named tuple", lambda: Pair(x(), region()), leaves={"p.pos": "to", "p.vel": "from"})
def named_tuple(p):
    for i in p.vel.indices():
        p.vel[i] = p.pos[i]


@expect("a nested tuple", lambda: (x(), (x(), region())), leaves={"t[0]": "none", "t[1][0]": "to", "t[1][1]": "from"})
def nested_tuple(t):
    for i in t[1][1].indices():
        t[1][1][i] = t[1][0][i]


@expect("any item of a tuple by a number", lambda: (x(), x()), region, 1, y="from", n="literal",
        leaves={"t[0]": "to", "t[1]": "to"})
def tuple_by_number(t, y, n):
    for i in y.indices():
        y[i] = t[n][0]


@expect("by value", region, 2.0, 1j, y="from", s="literal", c="literal")
def scalars(y, s, c):
    for i in y.indices():
        y[i] = s + c.real
