"""What ``explain()`` says, line by line. Lines of this file are told by the comments at their ends."""


from __future__ import annotations

import linecache
import re
import threading
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

from numba_offload import Region, offload_kernel, optimize_transfers, preload, use_target
from numba_offload.optimizer.scope import Scope

from .optimizer_helpers import add_one, add_to, copy_to, fail_beyond, twelve


def told(function):
    """The head and the lines of what a function explains, with the comments of lines for their numbers."""
    code = function.__wrapped__.__code__

    def marked(match):
        line = linecache.getline(code.co_filename, int(match[1]))
        return f"line {line.split('  # ')[1].strip()}" if "  # " in line else match[0]

    head, *lines = function.explain().split("\n")
    place = f"{code.co_qualname}() ({code.co_filename}:{code.co_firstlineno})"
    assert head.startswith(place)
    return [head.removeprefix(place).removeprefix(": "), *(re.sub(r"line (\d+)", marked, line).strip() for line in lines)]


def unseen(*values):
    """Code that cannot be seen."""
    return None


@optimize_transfers
def once(x, y):
    add_to(x, Region(y))  # launch
    return y[0]  # use


def test_once():
    once(np.ones(1000), np.ones(1000))
    assert told(once) == [
        "1 launch; 2 copies over, 16.0 kB; 1 back, 8.0 kB",
        "line launch: add_to(x, Region(y)) takes x over, 8.0 kB, once",
        "line launch: add_to(x, Region(y)) takes y over, 8.0 kB, once",
        "line use: y[0] brings y back, 8.0 kB, once",
    ]


@optimize_transfers
def every_iteration(y, n):
    for _ in range(n):
        add_one(Region(y))  # launch
        unseen(y)  # unseen


def test_every_iteration_and_the_line_that_makes_it_go_again():
    every_iteration(twelve(), 10)
    assert told(every_iteration) == [
        "10 launches; 10 copies over, 960 bytes; 10 back, 960 bytes",
        "line launch: add_one(Region(y)) takes y over, 96 bytes, every iteration; "
        "again 9 times because of line unseen: unseen(y)",
        "line unseen: unseen(y) brings y back, 96 bytes, every iteration",
    ]
    every_iteration(twelve(), 1)
    assert told(every_iteration)[1:] == [
        "line launch: add_one(Region(y)) takes y over, 96 bytes, once",
        "line unseen: unseen(y) brings y back, 96 bytes, once",
    ]
    every_iteration(twelve(), 2)
    assert "every iteration; again 1 time because of line unseen" in told(every_iteration)[1]


@optimize_transfers
def now_and_then(y, n):
    for step in range(n):
        add_one(Region(y))  # launch
        if step % 5 == 4:
            y.max()  # use


def test_some_iterations():
    now_and_then(twelve(), 20)
    assert told(now_and_then) == [
        "20 launches; 1 copy over, 96 bytes; 4 back, 384 bytes",
        "line launch: add_one(Region(y)) takes y over, 96 bytes, once",
        "line use: y.max() brings y back, 96 bytes, 4 times in 20 iterations",
    ]


@optimize_transfers
def while_loops(y, n):
    steps = 0
    while steps < n:
        add_one(Region(y))  # launch
        y[0] = 0.0  # write
        steps += 1
    while y[1] < 10:  # test
        add_one(Region(y))  # other launch


def test_iterations_of_while_loops_are_those_of_their_bodies():
    y = np.zeros(12)
    while_loops(y, 4)
    assert y[1] == 10
    assert told(while_loops) == [
        "10 launches; 5 copies over, 480 bytes; 10 back, 960 bytes",
        "line launch: add_one(Region(y)) takes y over, 96 bytes, every iteration; "
        "again 3 times because of line write: y[0] = 0.0",
        "line write: y[0] = 0.0 brings y back, 96 bytes, every iteration",
        "line test: y[1] brings y back, 96 bytes, every iteration",
        "line other launch: add_one(Region(y)) takes y over, 96 bytes, once; again because of line write: y[0] = 0.0",
    ]


@optimize_transfers
def left_early(y, how):
    for k in range(10):
        add_one(Region(y))  # launch
        if k == 2 and how == "break":
            break
        if k == 3 and how == "return":
            return "early"
        if k == 4 and how == "raise":
            raise KeyError(k)
        y[0]  # use
    return "late"  # end


@pytest.mark.parametrize(
    ("how", "launches", "uses", "iterations"), [("break", 3, 2, 3), ("return", 4, 3, 4), ("raise", 5, 4, 5)]
)
def test_a_loop_that_is_left(how, launches, uses, iterations):
    y = twelve()
    if how == "raise":
        with pytest.raises(KeyError):
            left_early(y, how)
    else:
        left_early(y, how)
    assert y[0] == launches
    assert told(left_early) == [
        f"{launches} launches; 1 copy over, 96 bytes; {uses + 1} back, {(uses + 1) * 96} bytes",
        "line launch: add_one(Region(y)) takes y over, 96 bytes, once",
        f"line use: y[0] brings y back, 96 bytes, {uses} times in {iterations} iterations",
        "line end: the end of left_early() brings y back, 96 bytes, once",
    ]


def test_a_launch_that_fails_is_not_counted():
    @optimize_transfers
    def program(x, y):
        add_one(Region(y))  # launch
        fail_beyond(x, Region(y), 3.0)  # failing; end

    with pytest.raises(ValueError, match="beyond"):
        program(twelve(), twelve())
    assert told(program) == [
        "1 launch; 2 copies over, 192 bytes; 1 back, 96 bytes",
        "line launch: add_one(Region(y)) takes y over, 96 bytes, once",
        "line failing; end: fail_beyond(x, Region(y), 3.0) takes x over, 96 bytes, once",
        "line failing; end: the end of program() brings y back, 96 bytes, once",
    ]


@optimize_transfers
def nested_loops(x, y, n, m):
    for _ in range(n):
        for _ in range(m):
            add_to(x, Region(y))  # launch
        y += 1  # update


def test_nested_loops_count_their_own_iterations():
    nested_loops(twelve(), twelve(), 3, 4)
    again = "again 2 times because of line update: y += 1"
    assert told(nested_loops) == [
        "12 launches; 4 copies over, 384 bytes; 3 back, 288 bytes",
        "line launch: add_to(x, Region(y)) takes x over, 96 bytes, once",
        "line launch: add_to(x, Region(y)) takes y over, 96 bytes, 3 times in 12 iterations; " + again,
        "line update: y += 1 brings y back, 96 bytes, every iteration",
    ]


def test_what_goes_over_for_the_first_time_goes_because_of_nothing():
    @optimize_transfers
    def program(x, y, z):
        add_one(Region(x))  # first
        unseen()  # unseen
        add_one(Region(y))  # second
        z[0] = 1.0
        add_to(z, Region(x))  # third

    program(twelve(), twelve(), twelve())
    assert told(program)[1:6] == [
        "line first: add_one(Region(x)) takes x over, 96 bytes, once",
        "line unseen: unseen() brings x back, 96 bytes, once",
        "line second: add_one(Region(y)) takes y over, 96 bytes, once",
        "line third: add_to(z, Region(x)) takes x over, 96 bytes, once; again because of line unseen: unseen()",
        "line third: add_to(z, Region(x)) takes z over, 96 bytes, once",
    ]


def test_another_array_at_an_address_that_was_used_is_another():
    @optimize_transfers
    def program(n):
        for _ in range(n):
            y = np.zeros(100_000)
            add_one(Region(y))  # launch
            y[0] = 2.0  # write
            del y

    program(5)
    assert told(program) == [
        "5 launches; 5 copies over, 4.0 MB; 5 back, 4.0 MB",
        "line launch: add_one(Region(y)) takes y over, 800.0 kB, every iteration",
        "line write: y[0] = 2.0 brings y back, 800.0 kB, every iteration",
    ]


def test_arrays_that_go_because_memory_is_short():
    @optimize_transfers(device_memory=8000)
    def program(x, y, n):
        for _ in range(n):
            add_one(Region(x))  # first
            add_one(Region(y))  # second

    program(np.zeros(1000), np.zeros(1000), 2)
    needed = "again 1 time because of line {}: add_one(Region({})), which needed its memory"
    assert told(program) == [
        "4 launches; 4 copies over, 32.0 kB; 4 back, 32.0 kB",
        f"line first: add_one(Region(x)) takes x over, 8.0 kB, every iteration; {needed.format('second', 'y')}",
        "line first: add_one(Region(x)) brings y back, 8.0 kB, once",
        f"line second: add_one(Region(y)) takes y over, 8.0 kB, every iteration; {needed.format('first', 'x')}",
        "line second: add_one(Region(y)) brings x back, 8.0 kB, every iteration",
        "line second: the end of program() brings y back, 8.0 kB, once",
    ]


@optimize_transfers
def sizes(arrays):
    for array in arrays:
        add_one(Region(array))  # launch; end


@pytest.mark.parametrize(
    ("nbytes", "shown"),
    [(1, "1 byte"), (96, "96 bytes"), (1000, "1.0 kB"), (1536, "1.5 kB"), (2_500_000, "2.5 MB")],
)
def test_bytes_are_in_si_units(nbytes, shown):
    sizes([np.zeros(nbytes, "u1")])
    assert told(sizes) == [
        f"1 launch; 1 copy over, {shown}; 1 back, {shown}",
        f"line launch; end: add_one(Region(array)) takes array over, {shown}, once",
        f"line launch; end: the end of sizes() brings array back, {shown}, once",
    ]


def test_sizes_that_differ_are_added():
    sizes([np.zeros(1000), np.zeros(3000)])
    assert told(sizes) == [
        "2 launches; 2 copies over, 32.0 kB; 2 back, 32.0 kB",
        "line launch; end: add_one(Region(array)) takes array over, 32.0 kB in all, every iteration",
        "line launch; end: the end of sizes() brings array back, 32.0 kB in all, 2 times",
    ]


class Pair(NamedTuple):
    left: np.ndarray
    right: np.ndarray


@offload_kernel
def sum_of(pair, out):
    for i in out.indices():
        out[i] = pair.left[i] + pair.right[i]


constant = np.ones(12)


@offload_kernel
def add_constant(y):
    for i in y.indices():
        y[i] += constant[i]


def test_arrays_are_called_as_the_source_calls_them():
    @optimize_transfers
    def program(model, pairs, key):
        add_one(Region(model.field))  # attribute
        add_one(y=Region(model.grid[key]))  # keyword
        sum_of(pairs[0], Region(model.out))  # tuple
        region = Region(model.kept)
        add_one(region)  # region
        arguments = (model.field, Region(model.other))
        add_to(*arguments)  # starred
        add_constant(Region(model.field))  # captured
        renamed = model.field
        return renamed[0]  # use

    model = SimpleNamespace(field=twelve(), grid={"a": twelve()}, out=twelve(), kept=twelve(), other=twelve())
    program(model, [Pair(twelve(), twelve())], "a")
    lines = told(program)
    over = sorted(re.sub(r"^line (.*?): .* takes (.*) over.*", r"\1: \2", line) for line in lines if " takes " in line)
    assert over == [
        "attribute: model.field",
        "captured: constant",
        "keyword: model.grid[key]",
        "region: region",
        "starred: y",
        "tuple: pairs[0].left",
        "tuple: pairs[0].right",
    ]
    assert "line use: renamed[0] brings model.field back, 96 bytes, once" in lines


@optimize_transfers
def statements(a, b):
    add_one(Region(a))
    for _ in a:  # for
        pass
    add_one(Region(a))
    p, *q = a  # unpacking
    add_one(Region(a))
    c = [*a]  # display
    add_one(Region(a))
    f"{a}"  # formatted
    add_one(Region(a))
    a[3:5] = b[3:5] = 2.0  # stores
    add_one(Region(a))
    del c[a.argmax() - 11]  # deleted
    add_one(Region(b))
    if (
        b.max()  # tested
        > 3
    ):
        pass
    add_one(Region(b))
    unseen(
        1,
        b[0],  # argument
    )
    return p, q, c


def test_a_line_tells_what_is_done_there():
    statements(twelve(), twelve())
    back = [line.removesuffix(", 96 bytes, once") for line in told(statements) if " brings " in line]
    assert back == [
        "line for: for _ in a brings a back",
        "line unpacking: p, *q = a brings a back",
        "line display: c = [*a] brings a back",
        "line formatted: f'{a}' brings a back",
        "line stores: a[3:5] = b[3:5] = 2.0 brings a back",
        "line deleted: a.argmax() brings a back",
        "line tested: b.max() brings b back",
        "line argument: b[0] brings b back",
    ]


@optimize_transfers
def step(x, y):
    add_to(x, Region(y))  # in step


@optimize_transfers
def looked_at(y):
    return y.max()  # in looked_at


@optimize_transfers
def simulation(x, y, n):
    for _ in range(n):
        step(x, y)
        looked_at(y)
    add_one(Region(y))  # own launch
    return y[0]  # own use


def test_functions_that_are_called_are_added_up():
    simulation(twelve(), twelve(), 3)
    own = [
        "line in step: add_to(x, Region(y)) takes x over, 96 bytes, once",
        "line in step: add_to(x, Region(y)) takes y over, 96 bytes, once",
    ]
    assert told(simulation) == [
        "4 launches; 2 copies over, 192 bytes; 4 back, 384 bytes",
        "line own use: y[0] brings y back, 96 bytes, once",
        *(f"in step(), {line}" for line in own),
        "in looked_at(), line in looked_at: y.max() brings y back, 96 bytes, 3 times",
    ]
    # Each tells of itself, not of its neighbours.
    assert told(step) == ["3 launches; 2 copies over, 192 bytes; 0 back, 0 bytes", *own]
    assert told(looked_at) == [
        "0 launches; 0 copies over, 0 bytes; 3 back, 288 bytes",
        "line in looked_at: y.max() brings y back, 96 bytes, 3 times",
    ]


@optimize_transfers
def recursive(x, y, depth):
    add_to(x, Region(y))  # launch
    if depth:
        recursive(x, y, depth - 1)
    return y[0]  # use


def test_recursion_is_one_function():
    recursive(twelve(), twelve(), 4)
    assert told(recursive) == [
        "5 launches; 2 copies over, 192 bytes; 1 back, 96 bytes",
        "line launch: add_to(x, Region(y)) takes x over, 96 bytes, once",
        "line launch: add_to(x, Region(y)) takes y over, 96 bytes, once",
        "line use: y[0] brings y back, 96 bytes, once",
    ]


@optimize_transfers
def even(y, n):
    add_one(Region(y))  # even
    return odd(y, n - 1) if n else y[0]  # base


@optimize_transfers
def odd(y, n):
    add_one(Region(y))  # odd
    return even(y, n - 1) if n else y[0]


def test_functions_that_call_each_other():
    even(twelve(), 4)
    assert told(even) == [
        "5 launches; 1 copy over, 96 bytes; 1 back, 96 bytes",
        "line even: add_one(Region(y)) takes y over, 96 bytes, once",
        "line base: y[0] brings y back, 96 bytes, once",
    ]


def test_a_call_of_a_function_that_is_left_as_it_is_is_a_use():
    with pytest.warns(match="leaves"):

        @optimize_transfers
        def plain(y):
            return {len(y): len(y), y[0]: 1}

    @optimize_transfers
    def program(y):
        add_one(Region(y))
        return plain(y)  # use

    program(twelve())
    assert told(program)[-1] == "line use: plain(y) brings y back, 96 bytes, once"
    line = plain.__wrapped__.__code__.co_firstlineno + 2
    assert told(plain) == [
        f" is left as it is: line {line}: calls in a dict display whose keys are no constants",
    ]


@optimize_transfers
def steps(y, n):
    for _ in range(n):
        add_one(Region(y))  # launch
        yield y[0]  # yield


def test_generators_tell_what_they_have_moved_so_far():
    running = steps(twelve(), 3)
    assert told(steps) == ["0 launches; 0 copies over, 0 bytes; 0 back, 0 bytes"]
    next(running)
    assert told(steps) == [
        "1 launch; 1 copy over, 96 bytes; 1 back, 96 bytes",
        "line launch: add_one(Region(y)) takes y over, 96 bytes, once",
        "line yield: y[0] brings y back, 96 bytes, once",
    ]
    assert list(running) == [2.0, 3.0]
    assert told(steps)[1:] == [
        "line launch: add_one(Region(y)) takes y over, 96 bytes, every iteration; "
        "again 2 times because of line yield: yield y[0]",
        "line yield: y[0] brings y back, 96 bytes, every iteration",
    ]


def test_before_the_first_call():
    @optimize_transfers
    def program(y):
        add_one(Region(y))

    assert told(program) == [" has not been called yet"]


def test_where_memory_is_shared(monkeypatch):
    @optimize_transfers
    def program(y):
        add_one(Region(y))  # launch; end

    monkeypatch.setenv("NUMBA_OFFLOAD_CPU_MEMORY", "unified")
    with use_target("cpu"):
        program(twelve())
    assert told(program) == [" has moved nothing: the target of its last call, 'cpu', shares the host's memory"]
    monkeypatch.setenv("NUMBA_OFFLOAD_CPU_MEMORY", "discrete")
    program(twelve())
    assert told(program)[0] == "1 launch; 1 copy over, 96 bytes; 1 back, 96 bytes"


class Model:
    class Inner:
        def __init__(self):
            self.x, self.__hidden = twelve(), twelve()

        @staticmethod
        @optimize_transfers
        def advanced(x):
            add_one(Region(x))  # static
            return x[0]

        @optimize_transfers
        def run(self, n):
            """Several lines

            of text.
            """
            for _ in range(n):
                add_to(
                    self.x,  # not here
                    Region(self.__hidden),
                )
            text = """
            more of them"""
            return self.__hidden[0], text  # use


def test_methods_of_nested_classes():
    model = Model.Inner()
    model.run(2)
    launch = Model.Inner.run.__wrapped__.__code__.co_firstlineno + 7
    assert told(Model.Inner.run) == [
        "2 launches; 2 copies over, 192 bytes; 1 back, 96 bytes",
        f"line {launch}: add_to(self.x, Region(self.__hidden)) takes self.__hidden over, 96 bytes, once",
        f"line {launch}: add_to(self.x, Region(self.__hidden)) takes self.x over, 96 bytes, once",
        "line use: self.__hidden[0] brings self.__hidden back, 96 bytes, once",
    ]
    assert model.run.explain() == Model.Inner.run.explain()
    Model.Inner.advanced(twelve())
    assert told(Model.Inner.advanced)[1] == "line static: add_one(Region(x)) takes x over, 96 bytes, once"


if True:
    if True:

        @optimize_transfers
        def indented(y): add_one(Region(y)); return (  # noqa: E702
            y[0])  # use


def test_indented_and_on_few_lines():
    indented(twelve())
    assert told(indented)[-1] == "line use: y[0] brings y back, 96 bytes, once"


def test_calls_in_several_threads_do_not_mix():
    begun, go_on = threading.Event(), threading.Event()

    def wait():
        begun.set()
        assert go_on.wait(10)

    @optimize_transfers
    def program(y, n, waiting):
        for _ in range(n):
            add_one(Region(y))  # launch
        waiting()  # unseen

    thread = threading.Thread(target=program, args=(twelve(), 3, wait))
    thread.start()
    assert begun.wait(10)
    program(np.zeros(1000), 2, unseen)
    go_on.set()
    thread.join()
    assert told(program) == [
        "2 launches; 1 copy over, 8.0 kB; 1 back, 8.0 kB",
        "line launch: add_one(Region(y)) takes y over, 8.0 kB, once",
        "line unseen: waiting() brings y back, 8.0 kB, once",
    ]


def test_what_another_thread_brings_back_is_no_line_of_the_function(monkeypatch):
    y, z = twelve(), np.zeros(12)
    launches = []
    name_arguments = Scope.name_arguments

    def with_another_launch_between(self, names):
        name_arguments(self, names)
        launches.append(names)
        if len(launches) == 2:
            thread = threading.Thread(target=copy_to, args=(y, Region(z)))
            thread.start()
            thread.join()

    monkeypatch.setattr(Scope, "name_arguments", with_another_launch_between)

    @optimize_transfers
    def program(x, y):
        add_one(Region(y))
        add_one(Region(x))
        return x[0]

    program(twelve(), y)
    assert z.tolist() == (twelve() + 1).tolist()
    assert told(program)[1] == "a launch or preload of another thread brings y back, 96 bytes, once"


def test_handles_are_not_moved():
    @optimize_transfers
    def program(x, y):
        copy_to(x, Region(y))  # launch; end

    with preload(twelve()) as x:
        program(x, np.zeros(12))
    assert told(program) == [
        "1 launch; 0 copies over, 0 bytes; 1 back, 96 bytes",
        "line launch; end: the end of program() brings y back, 96 bytes, once",
    ]
