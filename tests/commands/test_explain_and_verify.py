"""``python -m numba_offload explain`` and ``verify``: what they print, their errors and their exit status."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from numba_offload.bundle.signatures import example_arguments
from numba_offload.by_name import find_kernel, find_strategy
from numba_offload.cli import main

FILE = Path(__file__).with_name("named_things.py")
SAXPY = "f8, f8[::1], Region(f8[::1])"


@pytest.fixture
def shown(capsys):
    """What a command prints, and its exit status."""

    def run(command, name, *arguments):
        status = main([command, f"{FILE}:{name}", *map(str, arguments)])
        return capsys.readouterr().out, status

    return run


def test_explain_prints_what_the_kernel_explains(shown):
    text, status = shown("explain", "saxpy", "--signature", SAXPY)
    assert status == 0
    assert text == find_kernel(f"{FILE}:saxpy").explain(*example_arguments(SAXPY, {})) + "\n"
    line = FILE.read_text().split("\n").index("        y[i] = alpha * x[i] + y[i]") + 1
    assert f"  x: to\n      line {line}: x an element is read" in text
    assert "  y: tofrom\n" in text and "  alpha: literal\n      passed by value" in text


def test_several_signatures_have_heads(shown):
    signatures = ("Region(f8[::1]), f8", "Region(f4[:, ::1], Rows()), f4")
    text, status = shown("explain", "filled", *(part for s in signatures for part in ("--signature", s)))
    assert status == 0
    first, second = text.split("\n\n")
    assert first.startswith(f"filled({signatures[0]})\nkernel filled ({FILE})\n  y: from\n")
    assert second.startswith(f"filled({signatures[1]})\nkernel filled")


@pytest.mark.parametrize(
    ("name", "signature", "told"),
    [
        ("saxpy", "f8", "signature 'f8': kernel saxpy(): missing a required argument: 'x'"),
        ("saxpy", "g8, f8[:], f8[:]", "'g8': neither NumPy's name"),
        ("refused", "f8[:], Region(f8[:])", "'x' is shared by all threads"),
        ("nothing", "f8", "has no 'nothing'; its kernels: saxpy, filled, refused"),
        ("host", "f8", "is of type HostFunction, and no kernel; decorate it with @offload_kernel"),
    ],
)
def test_errors_of_explain(name, signature, told, shown):
    text, status = shown("explain", name, "--signature", signature)
    assert status == 1 and text.startswith("error: ")
    assert told in text.replace("\n", " ")


def test_explain_needs_a_signature(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["explain", f"{FILE}:saxpy"])
    assert stopped.value.code == 2
    assert "--signature" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["MirrorPairs"], "MirrorPairs(), 44 shapes from (0,) to (4099,): every element has one owner. Others: --shape"),
        (
            ["MirrorPairs", "--shape", "10001", "--shape", 5, "--threads", 6000],
            "MirrorPairs() on shape (10001,) with 6000 threads: every element has one owner\n"
            "MirrorPairs() on shape (5,) with 6000 threads: every element has one owner",
        ),
        (["Strided(7)", "--shape", 100], "Strided(every=7) on shape (100,) with 15 threads: no element has two owners"),
        (["every_third", "--shape", 0], "Strided(every=3) on shape (0,): nothing to launch"),
        (["Rows", "--shape", "100x10", "--threads", 7], "Rows() on shape (100, 10) with 7 threads: every element has one owner"),
        (
            ["Tiles2D(8, 8).then(reverse())", "--shape", "100x10", "--threads", "13x2"],
            "on shape (100, 10) with (13, 2) threads: every element has one owner",
        ),
        (["PerBlock1D", "--shape", 4, "--threads", "4x32"], "PerBlock1D() on shape (4,) with (4, 32) threads: every element"),
        (["NoColumnGuard", "--shape", "4x4", "--threads", "4x4"], "with (4, 4) threads: every element has one owner"),
    ],
)
def test_partitions_pass(arguments, told, shown):
    text, status = shown("verify", *arguments)
    assert (told in text, status) == (True, 0), text


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["Overlapping"], "Overlapping() on shape (3,) with 2 threads: threads 0 and 1 both own element 1 (slots 1 and 0)"),
        (
            ["Overlapping", "--shape", "1", "--shape", "100", "--shape", "2"],
            "Overlapping() on shape (100,) with 50 threads: threads 0 and 1 both own element 1 (slots 1 and 0)",
        ),
        (["NoColumnGuard", "--shape", "4x4", "--threads", "4x8"], "both own element (1, 0)"),
        (["MirrorPairs", "--shape", "100", "--threads", "7"], "on shape (100,) needs 50 threads, but --threads gives 7"),
        (["Tiles2D(8, 8)", "--shape", "100x10", "--threads", "1x1"], "needs (13, 2) threads, but --threads gives (1, 1)"),
        (["PerBlock1D", "--shape", "4", "--threads", "2x32"], "needs 4 blocks, but --threads gives 2"),
        (["Failing", "--shape", "20"], "thread 3, count: integer division or modulo by zero"),
    ],
)
def test_what_is_no_partition_fails_with_the_counterexample(arguments, told, shown):
    text, status = shown("verify", *arguments)
    assert (told in text.replace("\n", " "), status) == (True, 1), text
    assert "kernel 'verify'" not in text


def test_each_shape_is_told(shown):
    text, status = shown("verify", "Overlapping", "--shape", "1", "--shape", "100", "--shape", "1")
    assert status == 1
    first, second, third = text.strip().split("\n")
    assert first == third == "Overlapping() on shape (1,) with 1 threads: every element has one owner"
    assert "both own" in second


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("MirrorPairs", ["--shape", "3x3"], "MirrorPairs() partitions arrays of 1 axes, not 2"),
        ("MirrorPairs", ["--shape", "many"], "--shape many: expected extents with x between them, such as 1000x1000"),
        ("MirrorPairs", ["--threads", "0"], "--threads 0: expected extents"),
        ("NoColumnGuard", ["--shape", "4x4", "--threads", "16"], "over a grid; write an extent for each axis"),
        ("PerBlock1D", ["--shape", "4", "--threads", "16"], "over blocks; write BLOCKSxTHREADS"),
        ("saxpy", [], "it is of type OffloadKernel, and no strategy. The strategies of"),
        ("Every(3)", [], "expected a strategy, such as"),
        ("Every(3)", [], "MirrorPairs, Overlapping, Strided, NoColumnGuard, Failing, every_third"),
        ("Strided", [], "TypeError: "),
        ("Strided(", [], "is no name, and no class with its parameters"),
        ("", [], "names no strategy; write module:strategy or path/to/file.py:strategy"),
        ("reverse()", [], "no strategy"),
    ],
)
def test_errors_of_verify(name, arguments, told, shown):
    text, status = shown("verify", name, *arguments)
    assert status == 1 and text.startswith("error: ")
    assert told in text.replace("\n", " "), text


def test_strategies_by_name():
    assert repr(find_strategy(f"{FILE}:every_third")) == repr(find_strategy(f"{FILE}:Strided(every=3)")) == "Strided(every=3)"


def test_as_processes():
    for arguments, status in ((["explain", f"{FILE}:saxpy", "--signature", SAXPY], 0), (["verify", f"{FILE}:Overlapping"], 1)):
        done = subprocess.run([sys.executable, "-m", "numba_offload", *arguments], capture_output=True, text=True)
        assert done.returncode == status and done.stdout and not done.stderr


def test_a_file_that_cannot_be_imported_is_no_module_afterwards(tmp_path, capsys):
    file = tmp_path / "broken_strategies.py"
    file.write_text("made = 1\nraise ValueError('broken')\n")
    for _ in range(2):
        assert main(["verify", f"{file}:made"]) == 1
        assert "cannot be imported: ValueError: broken" in capsys.readouterr().out.replace("\n", " ")
    assert "broken_strategies" not in sys.modules


@pytest.mark.parametrize(("ends", "code"), [("raise SystemExit(3)", "3"), ("import sys; sys.exit('usage: x')", "'usage: x'")])
@pytest.mark.parametrize("command", [["verify"], ["explain", "--signature", "f8"]])
def test_a_file_that_ends_the_program_is_told(command, ends, code, tmp_path, capsys):
    file = tmp_path / "program_that_ends.py"
    file.write_text(f"{ends}\n")
    assert main([*command, f"{file}:made"]) == 1
    assert f"cannot be imported: it ends the program (exit status {code}); put" in capsys.readouterr().out.replace("\n", " ")
    assert "program_that_ends" not in sys.modules


def test_a_strategy_of_four_axes(tmp_path, capsys):
    file = tmp_path / "strategies_of_four_axes.py"
    file.write_text(
        "from numba_offload import PartitioningStrategy\n"
        "class FourAxes(PartitioningStrategy):\n"
        "    ndim = 4\n"
        "    def count(self, t, T, shape): return 1\n"
        "    def index(self, t, k, T, shape): return (t, 0, 0, 0)\n"
        "    def threads(self, shape): return shape[0]\n"
    )
    assert main(["verify", f"{file}:FourAxes", "--shape", "2x1x1x1"]) == 1
    assert "FourAxes() partitions arrays of 4 axes; Regions have one to 3" in capsys.readouterr().out.replace("\n", " ")
