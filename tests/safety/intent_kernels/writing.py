"""Kernels and how their arguments are mapped: from or tofrom."""

from __future__ import annotations

from intent_kernels.table import chunks, expect, region, x


@expect("assigned whole", region, y="from")
def assigns(y):
    for i in y.indices():
        y[i] = 1.0


@expect("read first", region, y="tofrom")
def updates(y):
    for i in y.indices():
        y[i] += 1.0


@expect("read after it was assigned", region, y="from")
def reads_back(y):
    for i in y.indices():
        y[i] = 1.0
        y[i] = y[i] * 2.0


@expect("read before, in the same statement", region, y="tofrom")
def reads_then_writes(y):
    for i in y.indices():
        old = y[i]
        y[i] = 1.0 + old


@expect("written on one branch", x, region, x="to", y="tofrom")
def writes_on_a_branch(x, y):
    for i in y.indices():
        if x[i] > 0.0:
            y[i] = 1.0


@expect("written on both branches", x, region, x="to", y="from")
def writes_on_both_branches(x, y):
    for i in y.indices():
        if x[i] > 0.0:
            y[i] = 1.0
        else:
            y[i] = 2.0


@expect("one branch reads", x, region, x="to", y="tofrom")
def reads_on_one_branch(x, y):
    for i in y.indices():
        if x[i] > 2.0:
            y[i] = y[i] * 2.0
        else:
            y[i] = 2.0


@expect("only even indices", region, y="tofrom")
def writes_even(y):
    for i in y.indices():
        if i % 2 == 0:
            y[i] = 1.0


@expect("continue skips the write", region, y="tofrom")
def skips(y):
    for i in y.indices():
        if i == 2:
            continue
        y[i] = 1.0


@expect("continue after the write", region, y="from")
def continues_after(y):
    for i in y.indices():
        y[i] = 1.0
        if i == 2:
            continue


@expect("break leaves elements out", chunks, y="tofrom")
def breaks(y):
    for i in y.indices():
        y[i] = 1.0
        break


@expect("returns before the loop", region, True, y="tofrom", flag="literal")
def returns_early(y, flag):
    if flag:
        return
    for i in y.indices():
        y[i] = 1.0


@expect("returns inside the loop", chunks, y="tofrom")
def returns_inside(y):
    for i in y.indices():
        y[i] = 1.0
        if i == 3:
            return


@expect("an error is not a return", region, y="from")
def raises(y):
    for i in y.indices():
        if y.size > 100:
            raise ValueError("too large")
        y[i] = 1.0


@expect("a loop that may not run", region, 0, y="tofrom", n="literal")
def inner_loop(y, n):
    for i in y.indices():
        for _ in range(n):
            y[i] = 1.0


@expect("the whole loop may not run", region, 0, y="tofrom", n="literal")
def outer_loop(y, n):
    for _ in range(n):
        for i in y.indices():
            y[i] = 1.0


@expect("a while loop may not run", region, 0, y="tofrom", n="literal")
def while_loop(y, n):
    for i in y.indices():
        k = 0
        while k < n:
            y[i] = 1.0
            k += 1


@expect("the else of a while that always ends so", region, 3, y="from", n="literal")
def while_else(y, n):
    for i in y.indices():
        while n > 0:
            n -= 1
        else:
            y[i] = 1.0


@expect("the else of a loop with break may be skipped", region, 3, y="tofrom", n="literal")
def for_else(y, n):
    for i in y.indices():
        for k in range(n):
            if k == 1:
                break
        else:
            y[i] = 1.0


@expect("assigned, then accumulated in an inner loop", x, region, x="to", y="from")
def accumulates(x, y):
    for i in y.indices():
        y[i] = 0.0
        for k in range(x.size):
            y[i] += x[k]


@expect("two loops, the first assigns", region, y="from")
def two_loops(y):
    for i in y.indices():
        y[i] = 1.0
    for i in y.indices():
        y[i] += 1.0


@expect("two loops, the first reads", region, x, y="tofrom", x="to")
def two_loops_reading_first(y, x):
    total = 0.0
    for i in y.indices():
        total += y[i]
    for i in y.indices():
        y[i] = total + x[i]


@expect("each has its own loop", region, region, a="from", b="tofrom")
def two_regions(a, b):
    for i in a.indices():
        a[i] = 1.0
    for i in b.indices():
        b[i] += 1.0


@expect("one index serves two Regions that the launch checks to be alike", region, region, a="from", b="from")
def index_of_another(a, b):
    for i in a.indices():
        a[i] = 1.0
        b[i] = 1.0


@expect("one of the two is written", region, region, True, a="tofrom", b="tofrom", flag="literal")
def writes_an_alias(a, b, flag):
    chosen = a if flag else b
    for i in chosen.indices():
        chosen[i] = 1.0


@expect("another name for the same index", region, y="from")
def renamed_index(y):
    for i in y.indices():
        k = i
        y[k] = 1.0


@expect("another name for the same Region", region, y="from")
def renamed_region(y):
    z = y
    for i in z.indices():
        z[i] = 1.0


@expect("an element of another iteration is read", lambda: chunks(), chunks, a="tofrom", b="tofrom")
def reads_another_element(a, b):
    for i in a.indices():
        for j in b.indices():
            a[i] = 1.0
            b[j] = a[j]


@expect("assigned at another of its elements", chunks, chunks, a="tofrom", b="none")
def assigns_another_element(a, b):
    for _ in a.indices():
        for j in b.indices():
            a[j] = 1.0
