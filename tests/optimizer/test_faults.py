"""Devices that fail under functions whose transfers are optimised: no result is lost or torn in silence, nothing stays behind."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import numpy as np
import pytest

from numba_offload import Region, optimize_transfers, use_target
from numba_offload.errors import DeviceMemoryError, TargetError
from numba_offload.mapping import early
from numba_offload.targets.registry import current_target

from .faults import (
    BEYOND,
    INFINITE,
    NAMES,
    ZEROS,
    Faults,
    Injected,
    Program,
    add_shifted,
    assert_nothing_left,
    blend,
    fill,
)

PROGRAMS = {
    "several arrays": """
add_shifted(a, Region(b), shifts.pop())
blend(b, Region(a), Region(c))
add_shifted(c, Region(m), shifts.pop())
""",
    "reads between": """
add_shifted(a, Region(b), shifts.pop())
seen.append(float(b.sum()))
blend(b, Region(a), Region(m))
seen.append(float(m[3] + a[1]))
add_shifted(m, Region(c), shifts.pop())
seen.append(c.tolist())
""",
    "writes between": """
add_shifted(a, Region(b), shifts.pop())
a[2:5] = 7.0
blend(a, Region(b), Region(c))
b += 1.0
c.sort()
add_shifted(c, Region(b), shifts.pop())
m[:] = b
add_shifted(m, Region(a), shifts.pop())
""",
    "repeated": """
for k in range(6):
    add_shifted(a, Region(b), shifts.pop())
    blend(b, Region(c), Region(m))
seen.append(float(c[0]))
for k in range(3):
    add_shifted(b, Region(a), shifts.pop())
""",
    "changing places": """
x, y = a, b
for k in range(4):
    add_shifted(x, Region(y), shifts.pop())
    x, y = y, x
""",
    "views": """
v = a[2:8]
fill(Region(v), 5.0)
add_shifted(b[:6], Region(v), shifts.pop())
add_shifted(a, Region(c), shifts.pop())
t = a
blend(c, Region(t), Region(m))
seen.append(float(v[0]))
fill(Region(m[1:3]), 9.0)
add_shifted(m, Region(b), shifts.pop())
""",
    "nested": """
part(a, shifts.pop(), done)
part(b, shifts.pop(), done)
add_shifted(a, Region(c), shifts.pop())
for s in steps(m, done):
    seen.append(float(s))
add_shifted(m, Region(a), shifts.pop())
""",
    "read by and by": """
for k in range(3):
    add_shifted(a, Region(b), shifts.pop())
    add_shifted(a, Region(c), shifts.pop())
    seen.append(float(b[0]))
    seen.append(float(c[0]))
d = np.ones(12)
for k in range(2):
    add_shifted(a, Region(d), shifts.pop())
a[:] = d
""",
    "staged within": """
add_shifted(a, Region(b), shifts.pop())
with preload_mut(b) as gb:
    fill(Region(gb), 4.0)
    blend(a, Region(gb), Region(c))
    add_shifted(gb, Region(c), shifts.pop())
add_shifted(b, Region(a), shifts.pop())
""",
}
HANDLED = {
    "a launch follows": """
add_shifted(b, Region(a), shifts.pop())
blend(a, Region(b), Region(m))
seen.append(float(b[3]))
""",
    "the host follows": """
seen.append(float(a.sum() + b.sum() + c.sum() + m.sum()))
a[1] = 4.0
fill(Region(a[2:4]), 8.0)
m[:] = a
""",
}
CAPS = {"": None, "capped": 250}


@pytest.fixture(autouse=True)
def discrete(monkeypatch):
    monkeypatch.setenv("NUMBA_OFFLOAD_CPU_MEMORY", "discrete")
    with use_target("cpu"):
        yield


@pytest.fixture(params=["", "early"])
def early_copies(request, monkeypatch):
    monkeypatch.setattr(early, "LEAST_BYTES", 1 if request.param else 1 << 60)


def told_lost(*errors):
    """The arrays of which errors say that something is lost."""
    found = set()
    for error in errors:
        while error is not None:
            for text in (str(error), *getattr(error, "__notes__", ())):
                if "lost" in text:
                    found |= {array for name in re.findall(r"'(\w+)", text) for array in ALIASES.get(name, name)}
            error = error.__cause__ or error.__context__
    return found


ALIASES = {"v": "a", "t": "a", "y": "ab", "x": "ab", "z": "m", "gb": "b", "d": ""}
"""Other names of arrays in programs."""


def check_run(program, run, shifts=ZEROS):
    """The host's arrays are as what was done makes them, but for those of which an error says otherwise."""
    errors = [error for error in (run.raised, *run.caught) if error is not None]
    # The model has the kernels' errors, but not the device's.
    faulty = any(not isinstance(error, IndexError) for error in errors)
    done, after = len(run.done) if faulty else INFINITE, len(run.after) if faulty and run.raised is not None else INFINITE
    wanted = program.model(done, after, shifts)
    assert run.seen == wanted.seen
    lost = told_lost(*errors)
    for name in NAMES:
        got = getattr(run.w, name).tolist()
        if name not in lost:
            assert got == getattr(wanted.w, name).tolist(), name
        else:  # older, but never torn
            before = [getattr(program.model(n, 0, shifts).w, name).tolist() for n in range(1, len(run.done) + 1)]
            assert got in before, name
    return lost


def check_next(program):
    """Launches and host functions work, and what was left of a failure disturbs none of them."""
    assert_nothing_left()
    x, y = np.arange(12.0), np.ones(12)
    add_shifted(x, Region(y), 0.0)
    assert y.tolist() == (2 + np.arange(12.0) % 7).tolist()
    run = program.run()
    assert run.raised is None
    assert not check_run(program, run)
    assert_nothing_left()


def check_error(error, kind):
    """It says what has failed with which array."""
    assert isinstance(error, DeviceMemoryError if kind == "allocation" else TargetError), error
    assert re.search(r"'\w+", str(error)) and "injected" in str(error)


def each_fault(program, kind, lasting=False, shifts=ZEROS, error=Injected):
    """Runs of a program with each fault of a kind, and the faults."""
    for at in range(200):
        faults = Faults(kind, at, lasting, error)
        yield program.run(faults, shifts)
        if not faults.raised:
            return
    raise AssertionError("the program has no end")


def each_launch(program):
    """For each launch that can fail, what makes it fail."""
    total = len(ZEROS) - program.launches
    assert program.launches > 1
    return [[BEYOND if k == at else 0.0 for k in range(len(ZEROS))] for at in range(total, len(ZEROS))]


@pytest.mark.usefixtures("early_copies")
@pytest.mark.parametrize("cap", CAPS)
@pytest.mark.parametrize("lasting", [False, True], ids=["once", "lasting"])
@pytest.mark.parametrize("kind", ["allocation", "over", "back", "aside"])
@pytest.mark.parametrize("body", PROGRAMS)
def test_each_allocation_and_copy(body, kind, lasting, cap):
    program = Program(PROGRAMS[body], CAPS[cap])
    program.run()  # what it tells of early copies
    for run in each_fault(program, kind, lasting):
        assert_nothing_left()
        if run.raised is not None:
            check_error(run.raised, kind)
        lost = check_run(program, run)
        assert kind == "back" or not lost
    check_next(program)


@pytest.mark.usefixtures("early_copies")
@pytest.mark.parametrize("kind", ["allocation", "over", "back", "aside"])
@pytest.mark.parametrize("handler", HANDLED)
@pytest.mark.parametrize("body", PROGRAMS)
def test_each_allocation_and_copy_with_a_handler(body, handler, kind):
    if (body, kind) == ("staged within", "back"):
        pytest.skip("what comes back at a preload's end comes back once")
    program = Program(PROGRAMS[body], handler=HANDLED[handler])
    program.run()
    handled = 0
    for run in each_fault(program, kind):
        assert_nothing_left()
        handled += len(run.caught)
        for error in run.caught:
            check_error(error, kind)
        lost = check_run(program, run)
        assert run.raised is not None or not lost
    assert handled or kind in ("back", "aside")
    check_next(program)


@pytest.mark.usefixtures("early_copies")
@pytest.mark.parametrize("cap", CAPS)
@pytest.mark.parametrize("handler", ["", *HANDLED])
@pytest.mark.parametrize("body", PROGRAMS)
def test_each_kernels_error(body, handler, cap):
    program = Program(PROGRAMS[body], CAPS[cap], HANDLED.get(handler, ""))
    program.run()
    for shifts in each_launch(program):
        run = program.run(shifts=shifts)
        assert_nothing_left()
        assert [type(error) for error in (run.raised, *run.caught) if error is not None] == [IndexError]
        assert not check_run(program, run, shifts)
    check_next(program)


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "lasting"])
@pytest.mark.parametrize("kind", ["over", "back", "aside"])
@pytest.mark.parametrize("body", PROGRAMS)
def test_copies_that_fail_when_a_kernel_has_failed(body, kind, lasting):
    program = Program(PROGRAMS[body])
    for shifts in each_launch(program):
        for run in each_fault(program, kind, lasting, shifts):
            assert_nothing_left()
            assert isinstance(run.raised, IndexError | TargetError)
            check_run(program, run, shifts)
    check_next(program)


@pytest.mark.parametrize("kind", ["allocation", "over", "back", "aside"])
@pytest.mark.parametrize("body", sorted(set(PROGRAMS) - {"staged within"}))
def test_an_interrupt_of_each_allocation_and_copy(body, kind):
    program = Program(PROGRAMS[body])
    for run in each_fault(program, kind, error=KeyboardInterrupt):
        assert_nothing_left()
        assert run.raised is None or type(run.raised) is KeyboardInterrupt
        assert not check_run(program, run)
    check_next(program)


@pytest.mark.parametrize("when", ["before", "behind"])
@pytest.mark.parametrize("body", PROGRAMS)
def test_an_interrupt_of_each_launch(body, when, monkeypatch):
    program, target = Program(PROGRAMS[body]), current_target().target
    for at in count():
        calls, original = count(), target.launch

        def launch(*arguments, at=at, calls=calls, original=original):
            interrupted = next(calls) == at
            if interrupted and when == "before":
                raise KeyboardInterrupt
            report = original(*arguments)
            if interrupted:
                raise KeyboardInterrupt
            return report

        with monkeypatch.context() as patch:
            patch.setattr(target, "launch", launch)
            run = program.run()
        assert_nothing_left()
        if run.raised is None:
            break
        assert type(run.raised) is KeyboardInterrupt
        before, behind = program.model(len(run.done)), program.model(len(run.done) + 1)
        assert run.seen == before.seen
        for name in NAMES:
            either = [getattr(state.w, name).tolist() for state in (before, behind)]
            assert getattr(run.w, name).tolist() in either, (name, at)
    check_next(program)


def twelve():
    return np.arange(12.0)


def test_what_a_function_could_not_bring_back_comes_back_no_later():
    @optimize_transfers
    def program(x, a):
        fill(Region(a), 5.0)

    a = twelve()
    with Faults("back", 0, lasting=True).armed(), pytest.raises(
        TargetError, match=r"'a' \(96 bytes\), written by fill, back .* failed: injected.* what was computed in 'a' .* is lost"
    ):
        program(twelve(), a)
    assert_nothing_left()
    a[:] = 1.0
    add_shifted(a, Region(b := np.zeros(12)), 0.0)
    assert a.tolist() == [1.0] * 12
    assert b.tolist() == [2.0] * 12


BLENDED = {"a": 1.0 - twelve(), "b": 0.5 * twelve() + 1.0}


def test_one_copy_that_fails_keeps_no_other_array_from_the_host():
    @optimize_transfers
    def program(x, a, b):
        blend(x, Region(a), Region(b))

    memory = current_target().device.memory
    original = memory.copy_to_host
    for broken in "ab":
        arrays = {"a": twelve(), "b": twelve()}

        def copy(host, device, nbytes, *rest, expected=BLENDED[broken]):
            # Where it is going to does not tell, as it may be memory aside.
            original(host, device, nbytes, *rest)
            if np.array_equal(np.ctypeslib.as_array((ctypes.c_double * 12).from_address(host)), expected):
                ctypes.memmove(host, twelve().ctypes.data, nbytes)
                raise Injected("injected")

        memory.copy_to_host = copy
        try:
            with pytest.raises(TargetError, match=f"'{broken}' .*lost"):
                program(np.ones(12), arrays["a"], arrays["b"])
        finally:
            del memory.copy_to_host
        assert_nothing_left()
        for name, array in arrays.items():
            assert array.tolist() == (twelve() if name == broken else BLENDED[name]).tolist()


def test_the_host_reads_no_old_content_after_a_copy_back_that_failed():
    @optimize_transfers
    def program(a):
        fill(Region(a), 5.0)
        for _ in range(3):
            try:
                return float(a[0])
            except TargetError:
                pass
        return None

    for fails, expected in ((1, 5.0), (2, 5.0), (4, 5.0), (6, None)):
        faults, a = Faults("back", 0), twelve()
        faults.until = fails
        with faults.armed():
            assert program(a) == expected
        assert a.tolist() == [5.0] * 12
        assert_nothing_left()


class Manager:
    def __init__(self, array):
        self.array = array

    def __enter__(self):
        pass

    def __exit__(self, *_):
        self.array += 1.0


def test_what_cannot_be_brought_back_for_a_managers_exit_is_lost_before_it():
    @optimize_transfers
    def program(a, manager):
        try:
            with manager:
                fill(Region(a), 5.0)
        except TargetError as error:
            return error

    a = twelve()
    with Faults("back", 0).armed():
        error = program(a, Manager(a))
    assert re.search("'a'.*failed: injected.*runs next.*'a'.*lost", str(error))
    assert a.tolist() == (twelve() + 1.0).tolist()
    assert_nothing_left()


class Own(Exception):
    pass


def test_a_copy_back_that_fails_while_another_exception_is_under_way():
    @optimize_transfers
    def program(a, error):
        fill(Region(a), 5.0)
        raise error

    with Faults("back", 0, lasting=True).armed():
        with pytest.raises(TargetError, match="'a'.*lost") as lost:
            program(twelve(), error := Own())
        seen = lost.value
        while seen is not error:
            seen = seen.__context__  # who looks for the first exception finds it
        for interrupt in (KeyboardInterrupt(), SystemExit(1)):
            with pytest.raises(type(interrupt)) as raised:
                program(twelve(), interrupt)
            assert raised.value is interrupt
            assert "'a' (96 bytes) is lost" in raised.value.__notes__[0]
        with pytest.raises(TargetError):  # an old exception is none that is under way
            try:
                raise KeyboardInterrupt
            except KeyboardInterrupt:
                program(twelve(), Own())
    assert_nothing_left()


@optimize_transfers
def yielding(a, b, log):
    try:
        fill(Region(a), 5.0)
        yield a[0]
        add_shifted(a, Region(b), 0.0)
        yield b[0]
    finally:
        fill(Region(b), 9.0)
        log.append(float(b[0]))


@pytest.mark.parametrize("close", [lambda g: g.close(), lambda g: None], ids=["closed", "dropped"])
@pytest.mark.parametrize("steps", [0, 1, 2])
def test_generators_that_are_closed_early(steps, close):
    a, b, log = twelve(), twelve(), []
    made = yielding(a, b, log)
    for _ in range(steps):
        next(made)
        assert a.tolist() == [5.0] * 12
    close(made)
    del made
    gc.collect()
    assert log == ([9.0] if steps else [])
    assert b.tolist() == ([9.0] * 12 if steps else twelve().tolist())
    assert_nothing_left()


def test_a_generator_whose_last_copy_fails_tells_who_closes_it():
    @optimize_transfers
    def endless(a):
        try:
            yield
        finally:
            fill(Region(a), 5.0)

    made = endless(a := twelve())
    next(made)
    with Faults("back", 0, lasting=True).armed(), pytest.raises(TargetError, match="'a'.*lost"):
        made.close()
    assert a.tolist() == twelve().tolist()
    assert_nothing_left()


class Finalized:
    """Looks at an array, or runs something, when it goes."""

    def __init__(self, job):
        self.job = job

    def __del__(self):
        self.job()


@pytest.mark.parametrize("shift", [0.0, BEYOND])
def test_finalizers_of_a_functions_objects_see_what_launches_computed(shift):
    @optimize_transfers
    def program(a, b, make, shift):
        kept = make(lambda: log.append(b[0]))
        fill(Region(b), 2.0)
        dropped = make(lambda: log.append(b[0]))
        fill(Region(b), 3.0)
        del dropped
        fill(Region(b), 4.0)
        add_shifted(a, Region(b), shift)
        return kept is None

    log, b = [], twelve()
    with contextlib.suppress(IndexError):
        program(twelve(), b, Finalized, shift)
    gc.collect()
    assert log == [3.0, 4.0 if shift else 5.0]
    assert_nothing_left()


def test_a_host_function_that_a_finalizer_runs(recwarn):
    @optimize_transfers
    def inner(a, shift):
        fill(Region(a), 2.0)
        add_shifted(a.copy(), Region(a), shift)

    @optimize_transfers
    def program(a, b, make, shift):
        held = [make(lambda: inner(b, 0.0))]
        fill(Region(a), 1.0)
        held.clear()
        add_shifted(b, Region(a), shift)

    for shift in (0.0, BEYOND):
        a, b = twelve(), twelve()
        try:
            program(a, b, Finalized, shift)
        except IndexError:
            assert shift
        assert b.tolist() == [5.0] * 12
        assert a.tolist() == [1.0 if shift else 7.0] * 12
        assert_nothing_left()


@pytest.mark.parametrize("broken", ["submit", "mark"])
def test_early_copies_that_cannot_begin(broken, monkeypatch):
    monkeypatch.setattr(early, "LEAST_BYTES", 1)
    program = Program(PROGRAMS["read by and by"])
    program.run()

    def failing(*_):
        raise RuntimeError("injected")

    if broken == "submit":
        monkeypatch.setattr(ThreadPoolExecutor, "submit", failing)
    else:
        monkeypatch.setattr(current_target().device.memory, "mark", failing, raising=False)
    for _ in range(2):
        run = program.run()
        assert run.raised is None
        assert not check_run(program, run)
        assert_nothing_left()


def test_copies_aside_stand_in_no_launchs_way(monkeypatch):
    @optimize_transfers
    def program(a, b, c, d):
        add_shifted(a, Region(b), 0.0)
        add_shifted(a, Region(b), 0.0)
        add_shifted(c, Region(d), 0.0)

    arrays = [np.ones(100) for _ in range(4)]
    pool = current_target().device.pool
    pool.trim()
    monkeypatch.setattr(pool, "limit", 2 * 896)
    program(*arrays)
    pool.trim()
    assert [float(array[0]) for array in arrays] == [1.0, 5.0, 1.0, 3.0]
    assert_nothing_left()


def test_another_thread_does_not_keep_a_failing_launch_from_being_undone(monkeypatch):
    @optimize_transfers
    def program(a, b, c, shift):
        add_shifted(a, Region(b), 0.0)
        add_shifted(a, Region(c), 0.0)
        for k in range(2):
            add_shifted(a, Region(b), shift * k)

    def use_c():
        with use_target("cpu"):
            fill(Region(c), 8.0)

    b, c, other = twelve(), twelve(), threading.Thread(target=use_c)
    target = current_target().target
    original, calls = target.launch, count()

    def launch(*arguments):
        if next(calls) == 3:
            other.start()
            time.sleep(0.2)
        return original(*arguments)

    monkeypatch.setattr(target, "launch", launch)
    with pytest.raises(IndexError):
        program(np.zeros(12), b, c, BEYOND)
    other.join()
    assert b.tolist() == (twelve() + 2).tolist()
    assert c.tolist() == [8.0] * 12
    assert_nothing_left()
