"""``transfer_guard`` in optimised functions: each copy is judged when it is made, and a refusal loses nothing."""

from __future__ import annotations

import shlex
import threading

import numpy as np
import pytest

from numba_offload import Region, TransferError, optimize_transfers, preload, profile, transfer_guard
from numba_offload.mapping import ArrayUse, early
from numba_offload.mapping.launch import LaunchMapping
from numba_offload.mapping.residency import Residency
from numba_offload.targets.registry import current_target

from .optimizer_helpers import add_one, add_to, assert_nothing_left, copy_to, twelve


def line_of(function, text):
    """The line of the function's file that has this text."""
    code = function.__wrapped__.__code__
    with open(code.co_filename) as file:
        for number, line in enumerate(file, start=1):
            if number >= code.co_firstlineno and text in line:
                return number
    raise AssertionError(text)


def transfers(capsys):
    found = [shlex.split(line) for line in capsys.readouterr().err.splitlines()]
    assert all(words[:2] == ["numba_offload:", "transfer"] for words in found)
    return [dict(pair.split("=", 1) for pair in words[2:]) for words in found]


@optimize_transfers
def loop(x, y, n):
    for _ in range(n):
        add_to(x, Region(y))
    total = y.sum()
    return total


def test_log_tells_each_copy_when_it_is_made(capsys):
    with transfer_guard("log"):
        assert loop(twelve(), twelve(), 3) == 4 * 66
    launch, use = (f"{__file__}:{line_of(loop, text)}" for text in ("add_to(x", "y.sum()"))
    common = {"kernel": "add_to", "target": "cpu", "bytes": "96", "asked": "implicit"}
    over = {"direction": "h2d", **common, "for": "add_to(x, Region(y))", "at": launch}
    first, second, *others = transfers(capsys)
    assert sorted((first, second), key=lambda said: said["argument"]) == [
        {**over, "argument": "x"},
        {**over, "argument": "y"},
    ]
    assert others == [{"direction": "d2h", "argument": "y", **common, "for": "y.sum()", "at": use}]


def test_a_launch_is_refused_for_what_goes_over():
    x, y = twelve(), twelve()
    with profile() as moved, transfer_guard("disallow"), pytest.raises(TransferError) as caught:
        loop(x, y, 3)
    message = str(caught.value)
    assert "argument 'x' (96 bytes) would" in message or "argument 'y' (96 bytes) would" in message
    assert f"to the cpu device at {__file__}:{line_of(loop, 'add_to(x')}, which" in message
    assert (moved.h2d_count, moved.d2h_count, moved.launches) == (0, 0, 0)
    assert y.tolist() == twelve().tolist()
    assert_nothing_left()


def test_names_are_those_of_the_host_function():
    @optimize_transfers
    def program(rate):
        add_one(Region(rate))

    with transfer_guard("disallow"), pytest.raises(TransferError, match=r"argument 'rate'.*'with preload_mut\(rate\) as"):
        program(twelve())


@optimize_transfers
def guarded_loop(y, n, level):
    add_one(Region(y))
    with transfer_guard(level):
        for _ in range(n):
            add_one(Region(y))
        if n > 3:
            print(y)
        for _ in range(n):
            add_one(Region(y))
    return y[0]


def test_a_loop_that_moves_nothing_passes():
    y = twelve()
    with profile() as moved:
        assert guarded_loop(y, 3, "disallow") == 7
    assert (moved.h2d_count, moved.d2h_count) == (1, 1)
    assert y.tolist() == (twelve() + 7).tolist()


def test_a_use_is_refused_at_its_line_and_what_was_computed_comes_back_at_the_end(capsys):
    y = twelve()
    with profile() as moved, pytest.raises(TransferError) as caught:
        guarded_loop(y, 4, "disallow")
    message, guard = str(caught.value), line_of(guarded_loop, "with transfer_guard")
    assert message.startswith("print(y): 'y' (96 bytes), which kernel 'add_one' wrote, would be copied back from the cpu device ")
    assert f"{__file__}:{line_of(guarded_loop, 'print(y)')}, which transfer_guard('disallow'), {__file__}:{guard}," in message
    assert capsys.readouterr().out == ""
    assert y.tolist() == (twelve() + 5).tolist()
    assert (moved.h2d_count, moved.d2h_count) == (1, 1)
    assert_nothing_left()


def unseen(y):
    return y.tolist()


def test_the_newest_values_stay_for_a_use_that_is_allowed():
    refused = []

    @optimize_transfers
    def program(y):
        seen = []
        add_one(Region(y))
        for _ in range(3):
            with transfer_guard("disallow"):
                try:
                    seen.append(float(y[0]))
                except TransferError as error:
                    refused.append(error)
                try:
                    y[1] = -1.0
                except TransferError as error:
                    refused.append(error)
                try:
                    unseen(y)
                except TransferError as error:
                    refused.append(error)
                add_one(Region(y))
        with transfer_guard("allow"):
            seen.append(y.tolist())
        y[2] = -1.0
        add_one(Region(y))
        seen.append(unseen(y))
        return seen

    y = twelve()
    expected = (twelve() + 4).tolist()
    after = [v + 1 for v in expected]
    after[2] = 0.0
    assert program(y) == [expected, after]
    assert len(refused) == 9
    assert [str(e).split(":")[0] for e in refused[:3]] == ["y[0]", "y[1] = -1.0", "unseen(y)"]
    assert_nothing_left()


class Watcher:
    """What it sees when it is left does not depend on a guard: it is left in any case."""

    def __init__(self, array):
        self.array, self.seen = array, None

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.seen = self.array.copy()


def test_what_a_manager_finds_is_not_refused():
    @optimize_transfers
    def watched(x, y, watcher, level):
        with watcher:
            add_to(x, Region(y))
            transfer_guard(level)

    for level in ("disallow", "allow"):
        x, y = twelve(), twelve()
        watcher = Watcher(y)
        with transfer_guard("allow"):
            watched(x, y, watcher, level)
        np.testing.assert_array_equal(watcher.seen, 2 * twelve())
        np.testing.assert_array_equal(y, watcher.seen)
    assert_nothing_left()


def test_what_comes_back_at_the_end_is_told_and_not_refused(capsys):
    @optimize_transfers
    def filled(x, y):
        copy_to(x, Region(y))
        return "result"

    x, y = twelve(), np.zeros(12)
    with preload(x) as device_x, transfer_guard("disallow"):
        assert filled(device_x, y) == "result"
        assert y.tolist() == x.tolist()
    assert transfers(capsys) == []
    with preload(x) as device_x, transfer_guard("log"):
        filled(device_x, y)
    (said,) = transfers(capsys)
    assert said["direction"] == "d2h" and said["for"] == "the end of filled()"
    assert said["at"] == f"{__file__}:{line_of(filled, 'return')}"


def test_the_end_brings_back_under_a_level_that_does_not_exist(monkeypatch):
    @optimize_transfers
    def filled(x, y):
        copy_to(x, Region(y))

    x, y = twelve(), np.zeros(12)
    with preload(x) as device_x:
        monkeypatch.setenv("NUMBA_OFFLOAD_TRANSFER_GUARD", "forbid")
        filled(device_x, y)
        assert y.tolist() == x.tolist()


def test_the_environment_guards_too(monkeypatch):
    monkeypatch.setenv("NUMBA_OFFLOAD_TRANSFER_GUARD", "disallow")
    with pytest.raises(TransferError, match="NUMBA_OFFLOAD_TRANSFER_GUARD=disallow"):
        loop(twelve(), twelve(), 1)


@optimize_transfers
def helper(y):
    add_one(Region(y))
    return y[0]


@optimize_transfers
def caller(y):
    add_one(Region(y))
    with transfer_guard("disallow"):
        return helper(y)


def test_a_function_that_is_called_is_named_by_its_own_line():
    y = twelve()
    with pytest.raises(TransferError) as caught:
        caller(y)
    message = str(caught.value)
    assert message.startswith("y[0]: 'y'") and f"{__file__}:{line_of(helper, 'return y[0]')}, which" in message
    assert y.tolist() == (twelve() + 2).tolist()


def test_making_room_for_a_launch_is_a_copy_like_others():
    first, second = np.zeros(1000), np.zeros(1000)

    @optimize_transfers(device_memory=8000)
    def program(first, second):
        add_one(Region(first))
        with transfer_guard("disallow"):
            add_one(Region(second))

    with pytest.raises(TransferError, match=r"argument 'second'"):
        program(first, second)

    @optimize_transfers(device_memory=8000)
    def filling(source, first, second):
        add_one(Region(first))
        with transfer_guard("disallow"):
            copy_to(source, Region(second))

    first[:] = 0
    with preload(np.ones(1000)) as source, pytest.raises(TransferError, match=r"^copy_to\(source, Region\(second\)\): 'first'"):
        filling(source, first, second)
    assert (first == 1).all() and (second == 0).all()
    assert_nothing_left()


@optimize_transfers
def read_later(x, y, z):
    add_to(x, Region(y))
    add_to(x, Region(z))
    return y[0] + z[0]


def test_copies_that_begin_early_are_told_with_the_line_that_needs_them(monkeypatch, capsys):
    monkeypatch.setattr(early, "LEAST_BYTES", 1)
    with transfer_guard("log"):
        read_later(np.ones(8), np.zeros(8), np.zeros(8))
    back = [said for said in transfers(capsys) if said["direction"] == "d2h"]
    assert [said["argument"] for said in back] == ["y", "z"]
    assert {said["at"] for said in back} == {f"{__file__}:{line_of(read_later, 'return')}"}
    assert back[0]["for"] == "return y[0] + z[0]"


def test_no_copy_begins_early_that_would_be_refused(monkeypatch):
    monkeypatch.setattr(early, "LEAST_BYTES", 1)

    @optimize_transfers
    def program(x, y, z):
        add_to(x, Region(y))
        add_to(x, Region(z))
        with transfer_guard("disallow"):
            add_to(x, Region(y))
            add_to(x, Region(z))
            try:
                return y[0]
            except TransferError:
                return None

    y = np.zeros(8)
    with profile() as moved:
        assert program(np.ones(8), y, np.zeros(8)) is None
    assert (moved.h2d_count, moved.d2h_count) == (3, 2)
    assert (y == 2).all()


def test_yield_is_a_use():
    @optimize_transfers
    def steps(x, y):
        copy_to(x, Region(y))
        yield

    x, y = twelve(), np.zeros(12)
    with preload(x) as device_x, transfer_guard("disallow"), pytest.raises(TransferError, match=r"^yield: 'y' "):
        next(steps(device_x, y))
    assert y.tolist() == x.tolist()
    assert_nothing_left()


def test_what_comes_back_for_another_functions_launch_is_judged_there():
    y, z = twelve(), np.zeros(12)
    device = current_target().device
    residency = Residency(device)
    mapping = LaunchMapping(device, [ArrayUse("y", y, "tofrom")], None, "held", residency)
    mapping.finish(True)
    failed = []

    def other():
        try:
            with transfer_guard("disallow"):
                copy_to(y, Region(z))
        except TransferError as error:
            failed.append(str(error))

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    (message,) = failed
    assert message.startswith("launching copy_to: 'y' (96 bytes), which kernel 'held' wrote") and f" at {__file__}:" in message
    (resident,) = device.present.residents
    assert resident.dirty is not None
    copy_to(y, Region(z))
    assert z.tolist() == twelve().tolist()
    residency.close()
    assert_nothing_left()
