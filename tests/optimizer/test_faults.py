"""Devices that fail under functions whose transfers are optimised: no result is lost or torn in silence, nothing stays behind."""

from __future__ import annotations

import re

import numpy as np
import pytest

from numba_offload import Region, use_target
from numba_offload.errors import DeviceMemoryError, TargetError
from numba_offload.mapping import early

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
