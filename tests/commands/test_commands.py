"""``python -m numba_offload``: demo and info, their output and their exit status."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from numba_offload import Linear1D
from numba_offload.cli import main
from numba_offload.demo import report
from numba_offload.demo.cases import cases, saxpy_case
from numba_offload.demo.mistakes import mistakes


@pytest.fixture
def out() -> Console:
    return Console(file=io.StringIO(), width=200)


def text_of(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_demo_passes_on_the_cpu_and_shows_what_moved(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--target", "cpu"]) == 0
    shown = capsys.readouterr().out
    assert "All checks passed" in shown
    assert "FAIL" not in shown
    assert shown.count("│ pass ") == sum(len(case.partitions) for case in cases()) + len(mistakes())
    saxpy = next(line for line in shown.splitlines() if "Linear1D()" in line and "saxpy" in line)
    # 2000003 elements of 8 bytes: x and y go over, y comes back.
    assert "x to, y tofrom" in saxpy
    assert re.search(r"32\.0 +│ +16\.0", saxpy), saxpy


def test_a_wrong_result_fails_the_demo(monkeypatch: pytest.MonkeyPatch, out: Console) -> None:
    good = saxpy_case(1000)
    bad = replace(good, expected=good.expected + 1.0)
    monkeypatch.setattr(report, "cases", lambda: [good, bad])
    assert not report.run_demo(out, "cpu")
    assert "FAIL" in text_of(out)


def test_nan_is_a_wrong_result() -> None:
    good = saxpy_case(1000)
    bad = replace(good, output=lambda: np.full(1000, np.nan))
    assert report.launch(good, Linear1D()).passed
    assert not report.launch(bad, Linear1D()).passed


def test_a_mistake_that_is_not_caught_fails_the_demo(monkeypatch: pytest.MonkeyPatch, out: Console) -> None:
    harmless = replace(mistakes(1000)[0], launch=lambda: None)
    monkeypatch.setattr(report, "cases", list)
    monkeypatch.setattr(report, "mistakes", lambda: [harmless])
    assert not report.run_demo(out, "cpu")
    assert "no error" in text_of(out)


def test_every_mistake_is_told_with_its_place() -> None:
    for mistake in mistakes(1000):
        text, right = report.told(mistake)
        assert right, text


def test_an_unknown_target_is_an_error_and_not_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--target", "cpu-two"]) == 1
    assert "unknown target 'cpu-two'" in capsys.readouterr().out


def test_info_names_versions_and_targets(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info"]) == 0
    shown = capsys.readouterr().out
    for expected in ("Python", "numpy", np.__version__, "threading layer", "cpu", "cuda", "CPU memory model"):
        assert expected in shown


def test_help_and_missing_commands() -> None:
    done = subprocess.run([sys.executable, "-m", "numba_offload", "--help"], capture_output=True, text=True)
    assert done.returncode == 0
    assert "demo" in done.stdout and "info" in done.stdout
    with pytest.raises(SystemExit) as stopped:
        main([])
    assert stopped.value.code == 2


@pytest.mark.parametrize(
    ("place", "why"), [("missing", "No such file or directory"), ("", "Is a directory")], ids=["missing", "folder"]
)
def test_files_that_cannot_be_read_are_named(place, why, tmp_path, capsys):
    path = tmp_path / place
    assert main(["compile", "--list", str(path)]) == 1
    assert capsys.readouterr().out.replace("\n", "") == f"error: {path}: {why}"
