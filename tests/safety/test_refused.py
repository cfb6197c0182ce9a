"""Kernels that must not compile: each with its error, and with the argument, the line and the fix that it must name."""



from __future__ import annotations

import inspect
import math
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numba import njit

from numba_offload import (
    Accumulator,
    Chunked1D,
    GridStride1D,
    Region,
    Rows,
    SafetyError,
    offload_function,
    offload_kernel,
)

ROW = np.dtype([("a", "f8"), ("v", "f8", (3,)), ("n", [("q", "f8")])])
Pair = namedtuple("Pair", "first second")
ALIGNED = np.dtype([("a", "f8"), ("b", "i4")], align=True)
CAPTURED = np.arange(4.0)
ARRAYS = (np.arange(3.0), np.arange(3.0))


def region(shape: Any = 6, strategy: Any = None, dtype: Any = float) -> Region:
    return Region(np.zeros(shape, dtype), strategy)


@dataclass(frozen=True)
class Refused:
    function: Callable[..., Any]
    arguments: Callable[[], tuple[Any, ...]]
    named: str
    marked_in: Callable[..., Any]
    says: str


TABLE: list[Refused] = []


def refused(*arguments: Any, named: str = "y", says: str = "", inside: Any = None) -> Any:
    """Register a kernel. ``arguments`` are made anew for the test; ``inside`` is the function with the marked line."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        made = lambda: tuple(a() if callable(a) else a for a in arguments)
        holder = getattr(inside, "__wrapped__", inside) or function
        TABLE.append(Refused(function, made, named, getattr(holder, "py_func", holder), says))
        return function

    return register


def marked_line(function: Callable[..., Any]) -> int:
    lines, first = inspect.getsourcelines(function)
    marked = [first + k for k, text in enumerate(lines) if text.rstrip().endswith("# <- here")]
    assert len(marked) == 1, f"{function.__name__} has {len(marked)} marked lines"
    return marked[0]


@pytest.mark.parametrize("case", TABLE, ids=lambda case: case.function.__name__)
def test_is_refused_with_argument_line_and_fix(case: Refused) -> None:
    with pytest.raises(SafetyError) as caught:
        offload_kernel(case.function)(*case.arguments())
    text = str(caught.value)
    assert f"{__file__}:{marked_line(case.marked_in)}" in text
    assert "\nFix: " in text
    assert f"argument {case.named!r}" in text if case.named else "argument" not in text.splitlines()[0]
    assert case.says in text
    assert "Failed in" not in text, "Numba's own wording came through"


def x() -> np.ndarray:
    return np.zeros(6)


def square() -> np.ndarray:
    return np.zeros((6, 6))


def rows() -> np.ndarray:
    return np.zeros(6, ROW)


def plane() -> Region:
    return region((4, 4))


# ------------------------------------------------------------------------------------------ where an index comes from


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


# --------------------------------------------------------------------------------------------------- several axes


@refused(plane, says="one unpacking")
def swapped_components(y):
    for i, j in y.indices():
        y[j, i] = 1.0  # <- here


@refused(plane, says="one unpacking")
def components_of_two_loops(y):
    for i, _ in y.indices():
        for _, j in y.indices():
            y[i, j] = 1.0  # <- here


@refused(plane, says="one unpacking")
def components_of_two_iterations(y):
    for i, j in y.indices():
        row = i
    for i, j in y.indices():
        y[row, j] = 1.0  # <- here


@refused(plane, says="one unpacking")
def one_component_twice(y):
    for i, _ in y.indices():
        y[i, i] = 1.0  # <- here


@refused(plane, says="one unpacking")
def reversed_index(y):
    for p in y.indices():
        y[p[::-1]] = 1.0  # <- here


@refused(plane, says="one unpacking")
def components_mixed_in_a_tuple_of_tuples(y):
    for i, _ in y.indices():
        for _, j in y.indices():
            for p in ((i, j), (i, j)):
                y[p] = 1.0  # <- here


@refused(plane, says="plain integer")
def component_and_number(y):
    for i, _ in y.indices():
        y[i, 0] = 1.0  # <- here


@refused(plane)
def a_row_at_an_owned_row_number(y):
    for i, _ in y.indices():
        y[i] = 1.0  # <- here


@offload_function
def write_at(y, i, j):
    y[i, j] = 1.0  # <- here


@refused(plane, inside=write_at, says="whole index")
def components_passed_separately(y):
    for i, j in y.indices():
        write_at(y, i, j)


# ------------------------------------------------------------------------------------------------ device functions


@offload_function
def write_one(y, k):
    y[k] = 1.0


@refused(region, says="is passed on")
def undefined_index_passed_on(y):
    for i in y.indices():
        pass
    write_one(y, i)  # <- here


@refused(region, says="is passed on")
def undefined_index_passed_on_by_star(y):
    for i in y.indices():
        pass
    write_one(y, *(i,))  # <- here


@offload_function
def write_first_of(t):
    for k in t[0]:
        t[1][k] = 1.0  # <- here


@refused(region, inside=write_first_of)
def undefined_index_in_nested_tuples(y):
    for i in y.indices():
        write_first_of(((i, i), y))


@offload_function
def last_index(y):
    for i in y.indices():
        pass
    return i  # <- here


@refused(region, inside=last_index, says="is returned")
def undefined_index_returned(y):
    y[last_index(y)] = 1.0


@njit
def write_neighbour(y, i):
    y[i + 1] = 1.0  # <- here


@refused(region, inside=write_neighbour, says="plain integer")
def plain_index_in_a_function_of_numba(y):
    for i in y.indices():
        write_neighbour(y, i)


@offload_function  # <- here
def countdown(y, n):
    if n > 0:
        countdown(y, n - 1)


@refused(region, named="", inside=countdown, says="calls itself")
def recursive_device_function(y):
    countdown(y, 3)


@njit
def owned(y):
    for i in y.indices():
        yield i  # <- here


@refused(region, named="", inside=owned, says="generators")
def generator_of_indices(y):
    for i in owned(y):
        y[i] = 1.0


# -------------------------------------------------------------------------------------------- another Region's index


@refused(lambda: region(8, Chunked1D(4)), lambda: region(8, Chunked1D(2)), named="b", says="Chunked1D(4)")
def index_of_another_partition(a, b):
    for i in a.indices():
        b[i] = 1.0  # <- here


@refused(lambda: region(8), lambda: region(8, GridStride1D()), named="b", says="GridStride1D")
def index_of_another_strategy(a, b):
    for i in a.indices():
        b[i] = 1.0  # <- here


@refused(lambda: region(8), plane, named="b", says="Linear2D")
def index_of_fewer_axes(a, b):
    for i in a.indices():
        b[i, i] = 1.0  # <- here


# ---------------------------------------------------------------------------------------------------- shared arrays


@refused(x, region, named="x", says="Region(x)")
def write_to_a_shared_array(x, y):
    for i in y.indices():
        x[i] = 1.0  # <- here


@refused(x, region, named="x")
def write_to_a_shared_array_at_a_number(x, y):
    x[0] = 1.0  # <- here


@refused(x, region, named="x", says="Accumulator")
def count_in_a_shared_array(x, y):
    for i in y.indices():
        x[0] += 1.0  # <- here


@offload_function
def set_first(a):
    a[0] = 1.0  # <- here


@refused(x, region, named="x", inside=set_first)
def write_in_an_offload_function(x, y):
    set_first(x)


@njit
def set_second(a):
    a[1] = 1.0  # <- here


@refused(x, region, named="x", inside=set_second)
def write_in_a_function_of_numba(x, y):
    set_second(x)


@refused(x, region, named="x", inside=set_first)
def write_to_a_slice_in_a_callee(x, y):
    set_first(x[1:3])


@refused(x, region, named="x")
def write_through_a_slice(x, y):
    part = x[2:4]
    part[0] = 1.0  # <- here


@refused(x, region, named="x")
def fill_a_slice(x, y):
    x[:] = 0.0  # <- here


@refused(square, region, named="x")
def write_through_the_transpose(x, y):
    x.T[0, 1] = 1.0  # <- here


@refused(square, region, named="x")
def write_through_iteration(x, y):
    for row in x:
        row[0] = 1.0  # <- here


@refused(square, region, named="x")
def write_through_two_indices(x, y):
    x[1][2] = 1.0  # <- here


@refused(lambda: (np.zeros(3), np.zeros(3)), region, named="t[1]")
def write_through_a_tuple(t, y):
    t[1][0] = 1.0  # <- here


@refused(lambda: Pair(np.zeros(3), np.zeros(3)), region, named="p.second")
def write_through_a_named_tuple(p, y):
    p.second[0] = 1.0  # <- here


@refused(x, region, True, named="x")
def write_through_an_alias(x, y, flag):
    a = x if flag else x[1:]
    a[0] = 1.0  # <- here


@refused(rows, region, named="x")
def write_a_field(x, y):
    x[0].a = 1.0  # <- here


@refused(rows, region, named="x")
def write_a_field_by_name(x, y):
    x[0]["a"] = 1.0  # <- here


@refused(rows, region, named="x")
def write_a_field_of_a_field(x, y):
    x[0].n.q = 1.0  # <- here


@refused(rows, region, named="x")
def write_an_array_in_a_row(x, y):
    x[0].v[1] = 1.0  # <- here


@refused(lambda: np.zeros(6, ALIGNED), region, named="x", says="Region(x)")
def write_a_column(x, y):
    x.a[0] = 1.0  # <- here


@refused(rows, region, named="x", says="x[i].a")
def column_of_packed_rows(x, y):
    x.a[0]  # <- here


@refused(rows, lambda: region(6, dtype=ROW), True, named="x or y")
def write_a_row_of_one_or_the_other(x, y, flag):
    for i in y.indices():
        row = x[i] if flag else y[i]
        row.a = 1.0  # <- here


@refused(region, named="CAPTURED")
def write_a_captured_array(y):
    CAPTURED[0] = 1.0  # <- here


@offload_function
def read_captured(i):
    return CAPTURED[i]  # <- here


@refused(region, named="CAPTURED", inside=read_captured, says="captured")
def captured_array_in_a_callee(y):
    for i in y.indices():
        y[i] = read_captured(i)


@refused(region, named="ARRAYS", says="captured")
def captured_tuple_of_arrays(y):
    for i in y.indices():
        y[i] = ARRAYS[0][0]  # <- here


@refused(lambda: region(8, Chunked1D(4)), x, True, says="hold it on one path")
def region_or_array(y, x, flag):
    a = y if flag else x  # <- here
    a[0] = 1.0


def _closure_writes() -> Any:
    held = np.zeros(4)

    def closure_writes_what_it_captured(y):
        held[0] = 1.0  # <- here

    return closure_writes_what_it_captured


refused(region, named="held")(_closure_writes())


# ------------------------------------------------------------------------------------------------ a Region as a whole


@refused(region, says="second array")
def neighbour_of_the_region(y):
    for i in y.indices():
        y[i] = y[i - 1]  # <- here


@refused(region, says="slice")
def slice_of_a_region(y):
    part = y[1:3]  # <- here
    y[0] = part[0]


@refused(region)
def whole_region_by_ellipsis(y):
    y[...] = 0.0  # <- here


@refused(region)
def region_at_no_index(y):
    y[()] = 0.0  # <- here


@refused(region, says="iterating")
def iterating_over_a_region(y):
    for value in y:  # <- here
        y[0] = value


@refused(region)
def updating_a_region_as_a_whole(y):
    y += 1.0  # <- here


@refused(region)
def truth_of_a_region(y):
    if y:  # <- here
        pass


@refused(lambda: region(6, GridStride1D()), says="not one block")
def local_of_a_partition_without_blocks(y):
    y.local[0] = 1.0  # <- here


@refused(region, says=".flat")
def flat(y):
    y.flat[0] = 1.0  # <- here


@refused(x, region, named="x", says=".flat")
def flat_of_a_shared_array(x, y):
    x.flat[0] = 1.0  # <- here


@refused(x, region, named="x", says=".fill")
def fill(x, y):
    x.fill(1.0)  # <- here


@refused(x, region, named="x", says=".view")
def reinterpretation(x, y):
    x.view(np.int64)[0] = 1  # <- here


@refused(square, region, named="x", says="fill_diagonal")
def fill_diagonal(x, y):
    np.fill_diagonal(x, 1.0)  # <- here


@refused(x, region, named="x", says="ascontiguousarray")
def contiguous_copy(x, y):
    np.ascontiguousarray(x)[0] = 1.0  # <- here


@refused(x, region, named="x", says="nditer")
def nditer(x, y):
    for value in np.nditer(x):  # <- here
        value[()] = 1.0


@refused(x, region, named="x")
def ufunc_with_out(x, y):
    np.add(x, x, x)  # <- here


@refused(x, region, named="x")
def arithmetic_on_whole_arrays(x, y):
    y = x + x  # <- here


@refused(x, named="x", says="Region(x)")
def indices_of_a_shared_array(x):
    for i in x.indices():  # <- here
        x[i] = 1.0


@refused(lambda: Accumulator(np.zeros(3), "+"), named="total", says="update")
def reading_an_accumulator(total):
    total.update(0, total[1])  # <- here


@refused(lambda: Accumulator(np.zeros(3), "+"), named="total", says="update")
def assigning_to_an_accumulator(total):
    total[0] = 1.0  # <- here


@refused(lambda: Accumulator(np.zeros((3, 3)), "+"), named="total", says=".T")
def transposing_an_accumulator(total):
    total.T[0, 0]  # <- here


# ----------------------------------------------------------------------------------------------- what kernels lack


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


# -------------------------------------------------------------------------------------- what a newcomer gets wrong


def plain_helper(v):
    return v * v


@refused(x, region, named="", says="@offload_function")
def undecorated_helper(x, y):
    for i in y.indices():
        y[i] = plain_helper(x[i])  # <- here


A_REGION, A_LIST, AN_OBJECT = region(), [1.0], object()


@refused(region, named="A_REGION", says="captured")
def captured_region(y):
    for i in A_REGION.indices():  # <- here
        y[i] = 1.0


@refused(region, named="A_LIST", says="captured")
def captured_list(y):
    for i in y.indices():
        y[i] = A_LIST[0]  # <- here


@refused(region, named="AN_OBJECT", says="captured")
def captured_object(y):
    for i in y.indices():
        y[i] = AN_OBJECT.a  # <- here


@refused(x, region, named="x", says="indexed by a float64")
def float_index(x, y):
    for i in y.indices():
        y[i] = x[i / 2]  # <- here


@refused(x, x, region, named="x", says="indexed by a float64")
def index_out_of_a_float_array(x, k, y):
    for i in y.indices():
        y[i] = x[k[i]]  # <- here


@refused(x, region, named="x", says="1 axis")
def too_many_indices(x, y):
    for i in y.indices():
        y[i] = x[i, i]  # <- here


@refused(x, plane, named="x", says="whole index of y (2 axes)")
def whole_index_of_more_axes(x, y):
    for i in y.indices():
        y[i] = x[i]  # <- here


@refused(square, plane, named="x", says="unpack it")
def whole_index_among_others(x, y):
    for i in y.indices():
        y[i] = x[i, 0]  # <- here


@refused(lambda: region((4, 4), Rows()), says="whole index")
def row_and_column(y):
    for i in y.indices():
        y[i, 0] = 1.0  # <- here


@refused(lambda: np.array(1.0), region, named="x", says="x[()]")
def index_of_no_axes(x, y):
    for i in y.indices():
        y[i] = x[i]  # <- here


@refused(x, lambda: np.arange(6), region, named="x", says="x[k[i]]")
def index_array(x, k, y):
    x[k]  # <- here


@refused(x, region, named="x", says="'>'")
def mask(x, y):
    y[x > 0] = 1.0  # <- here


@refused(lambda: region(8, Chunked1D(2)), says="indexing and slicing")
def fill_of_a_block(y):
    y.local.fill(1.0)  # <- here


@refused(lambda: Accumulator(np.zeros(3)), named="acc", says="float64")
def update_at_a_float(acc):
    acc.update(0.5, 1.0)  # <- here


@refused(lambda: Accumulator(np.zeros(3)), named="acc", says="1 argument")
def update_without_a_value(acc):
    acc.update(0)  # <- here


@refused(x, named="x", says="Accumulator(x)")
def update_of_an_array(x):
    x.update(0, 1.0)  # <- here


@refused(x, region, named="x", says="'*'")
def scalar_times_array(x, y):
    for i in y.indices():
        y[i] = 2 * x  # <- here


@refused(lambda: np.zeros(6, complex), region, says="complex128")
def complex_into_float(x, y):
    for i in y.indices():
        y[i] = x[i]  # <- here


@refused(square, region, says="of 1 axis is assigned")
def row_into_element(x, y):
    for i in y.indices():
        y[i] = x[i]  # <- here


@refused(region, says="None is assigned")
def none_into_element(y):
    for i in y.indices():
        y[i] = None  # <- here


@refused(region, says="a string is assigned")
def string_into_element(y):
    for i in y.indices():
        y[i] = "a"  # <- here


@refused(lambda: np.zeros(6, "m8[s]"), lambda: region(6, dtype="m8[D]"), says="unit")
def another_unit(x, y):
    for i in y.indices():
        y[i] = x[i]  # <- here


@refused(lambda: region(6, dtype=complex), named="", says=".real")
def real_part_assigned(z):
    for i in z.indices():
        z[i].real = 1.0  # <- here


@refused(region, named="", says="not defined")
def undefined_name(y):
    for i in y.indices():
        y[i] = undefined_thing  # noqa: F821  # <- here


@refused(region, named="", says="no 'sine'")
def misspelt_function(y):
    for i in y.indices():
        y[i] = math.sine(1.0)  # <- here


@refused(x, region, named="", says="reversed()")
def builtin_that_is_missing(x, y):
    for _ in reversed(x):  # <- here
        pass


@refused(x, region, named="", says="generator expression")
def generator_expression(x, y):
    for i in y.indices():
        y[i] = sum(v for v in x)  # <- here


@refused(region, named="", says="top of the file")
def import_in_a_kernel(y):
    import math as inner  # <- here

    for i in y.indices():
        y[i] = inner.pi


@refused(x, region, named="", says="a if condition else b")
def where_of_scalars(x, y):
    for i in y.indices():
        y[i] = np.where(x[i] > 0, 1.0, 0.0)  # <- here


@refused(region, says="1 axis")
def one_axis_unpacked(y):
    for i, _ in y.indices():  # <- here
        y[i] = 1.0


@offload_function
def of_two(a, b):
    return a + b


@refused(region, named="", says="of_two(a, b)")
def called_with_too_little(y):
    for i in y.indices():
        y[i] = of_two(1)  # <- here


@refused(2.0, x, named="y", says="order of the parameters")
def swapped_arguments(y, a):
    for i in y.indices():  # <- here
        y[i] = a


@refused(region, named="", says="raise ... from")
def raise_from_none(y):
    raise ValueError("no") from None  # <- here
