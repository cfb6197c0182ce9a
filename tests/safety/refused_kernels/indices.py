"""Kernels that must not compile: where an index comes from."""

from __future__ import annotations

from refused_kernels.table import (
    refused,
    region,
)


@refused(region, says="zero times")
def index_after_its_loop(y):
    for i in y.indices():
        pass
    y[i] = 1.0  # <- here


@refused(region, 0, says="zero times")
def index_of_a_loop_inside_a_loop_that_may_not_run(y, n):
    for _ in range(n):
        for i in y.indices():
            k = i
    y[k] = 1.0  # <- here


@refused(region, True)
def index_defined_on_one_branch(y, flag):
    for i in y.indices():
        if flag:
            k = i
        y[k] = 1.0  # <- here


@refused(region, says="plain integer")
def index_or_integer(y):
    k = 0
    for k in y.indices():
        pass
    y[k] = 1.0  # <- here


@refused(region, True, says="plain integer")
def index_or_integer_by_conditional_expression(y, flag):
    for i in y.indices():
        y[i if flag else 0] = 1.0  # <- here


@refused(region)
def index_from_the_else_of_a_loop(y):
    for i in y.indices():
        k = i
    else:
        y[k] = 1.0  # <- here


@refused(region)
def index_after_break(y):
    for i in y.indices():
        k = i
        break
    y[k] = 1.0  # <- here


@refused(region, says="plain integer")
def arithmetic_on_an_index(y):
    for i in y.indices():
        y[i + 1] = 1.0  # <- here


@refused(region, says="plain integer")
def arithmetic_that_changes_nothing(y):
    for i in y.indices():
        y[i * 1] = 1.0  # <- here


@refused(region, says="plain integer")
def augmented_arithmetic(y):
    for i in y.indices():
        i += 0
        y[i] = 1.0  # <- here


@refused(region, says="plain integer")
def index_converted_to_int(y):
    for i in y.indices():
        y[int(i)] = 1.0  # <- here


@refused(region, says="plain integer")
def smaller_of_an_index_and_a_number(y):
    for i in y.indices():
        y[min(i, 3)] = 1.0  # <- here


@refused(region, says="plain integer")
def the_first_element(y):
    for _ in y.indices():
        y[0] += 1.0  # <- here


@refused(region, says="plain integer")
def counter_of_a_range(y):
    for k in range(y.size):
        y[k] = 1.0  # <- here


@refused(region)
def index_from_next(y):
    y[next(iter(y.indices()))] = 1.0  # <- here


@refused(region)
def index_from_enumerate_after_the_loop(y):
    for _, i in enumerate(y.indices()):
        pass
    y[i] = 1.0  # <- here


@refused(region)
def index_from_enumerating_a_tuple(y):
    for i in y.indices():
        pass
    for _, j in enumerate((i, i)):
        y[j] = 1.0  # <- here


@refused(region, named="", says="a string is formatted")
def formatted_message(y):
    for i in y.indices():
        if y[i] > 1.0:
            raise ValueError(f"bad element {i}")  # <- here


@refused(region, named="", says="an exception in kernel code reports")
def tuple_in_an_exception(y):
    for i in y.indices():
        if y[i] > 1.0:
            raise ValueError("bad element", (i, i))  # <- here


@refused(region)
def undefined_index_through_a_loop_over_a_tuple(y):
    for i in y.indices():
        pass
    for k in (i, i):
        y[k] = 1.0  # <- here


@refused(region, named="held", says="Numba's type")
def index_from_a_list(y):
    for i in y.indices():
        held = [i]  # <- here
        y[held[0]] = 1.0
