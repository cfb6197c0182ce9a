"""The display for long loops: what it shows, and that it is not there where nobody sees it."""

from __future__ import annotations

import io
import re
import sys

import numpy as np
import pytest
from observed_kernels import arrays, saxpy

from numba_offload import Region, progress
from numba_offload.diagnostics import events


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")


def shown(capsys) -> str:
    captured = capsys.readouterr()
    assert captured.out == ""
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", captured.err)


def test_steps_launches_and_bytes(discrete, capsys):
    x, y = arrays()
    done = []
    for step in progress(range(5), "heating", force=True):
        saxpy(2.0, x, Region(y))
        done.append(step)
    assert done == [0, 1, 2, 3, 4]
    text = shown(capsys)
    assert "heating" in text and "5/5" in text and "launches/s" in text
    assert "80.0 kB over" in text and "40.0 kB back" in text
    assert not events.listeners


def test_nothing_is_shown_where_standard_error_is_no_terminal(capsys):
    numbers = range(5)
    shown_numbers = progress(numbers)
    assert type(iter(shown_numbers)) is type(iter(numbers))
    assert list(shown_numbers) == list(numbers)
    with progress(total=3) as steps:
        steps.advance()
    assert shown(capsys) == "" and not events.listeners


def test_it_is_shown_on_a_terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert list(progress(range(3), "working")) == [0, 1, 2]
    assert "working" in terminal.getvalue()


def test_a_process_without_standard_error(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    assert list(progress(range(3))) == [0, 1, 2]


def test_leaving_the_loop_ends_the_display(capsys):
    for step in progress(range(100), force=True):
        if step == 3:
            break
    assert not events.listeners
    assert "3/100" in shown(capsys)


def test_an_exception_ends_the_display_and_gets_through(capsys):
    with pytest.raises(KeyError):
        for step in progress(range(100), force=True):
            raise KeyError(step)
    assert not events.listeners


def test_an_iterable_that_fails_ends_it_too(capsys):
    def failing():
        yield 1
        raise KeyError

    with pytest.raises(KeyError):
        list(progress(failing(), force=True))
    assert not events.listeners


def test_as_a_context(discrete, capsys):
    x, y = arrays()
    with progress(total=4, description="solving", force=True) as steps:
        for _ in range(2):
            saxpy(2.0, x, Region(y))
            steps.advance(2)
    text = shown(capsys)
    assert "solving" in text and "4/4" in text and "32.0 kB over" in text
    assert not events.listeners


def test_loops_inside_loops(capsys):
    seen = [(a, b) for a in progress(range(2), force=True) for b in progress(range(2), force=True)]
    assert seen == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert not events.listeners


def test_lengths():
    assert len(progress(range(7))) == 7
    assert len(progress(iter(range(7)), total=7)) == 7
    with pytest.raises(TypeError, match="give total="):
        len(progress(iter(range(7))))


def test_an_unknown_length_is_shown_without_an_end(capsys):
    assert list(progress(iter("ab"), force=True)) == ["a", "b"]
    assert "2/?" in shown(capsys)


def test_what_cannot_be_shown_is_refused():
    with pytest.raises(TypeError, match="give an iterable, or total="):
        progress()
    with pytest.raises(TypeError, match="nothing to iterate over"):
        iter(progress(total=3))
    with pytest.raises(TypeError, match=r"progress\(5\): expected something to iterate over, such as range\(5\)"):
        progress(5)
    for wrong in (-1, 2.5, "many"):
        with pytest.raises(ValueError, match=f"total={wrong!r}.: expected the number of steps"):
            progress(total=wrong)


@pytest.mark.parametrize("force", [True, False])
@pytest.mark.parametrize("wrong", [-1, 0.5, "x"])
def test_steps_that_cannot_have_been_made(wrong, force, capsys):
    with progress(total=3, force=force) as shown_steps:
        with pytest.raises(ValueError, match=f"advance.{wrong!r}.: expected how many steps"):
            shown_steps.advance(wrong)
        shown_steps.advance(np.int64(2))
