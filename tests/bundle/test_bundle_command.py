"""``python -m numba_offload compile``: its table and its errors."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from numba_offload.bundle.command import find_kernel
from numba_offload.cli import main
from numba_offload.errors import BundleError

KERNELS = Path(__file__).with_name("field_kernels.py")
SAXPY = ["--signature", "f8, f8[::1], Region(f8[::1])"]


@pytest.fixture
def shown(capsys):
    """What a command prints, and its exit status."""

    def run(*arguments):
        status = main(["compile", *map(str, arguments)])
        return capsys.readouterr().out, status

    return run


def test_the_table_has_a_row_for_each_image(tmp_path, shown):
    file = tmp_path / "some.bundle"
    text, status = shown(
        f"{KERNELS}:saxpy", *SAXPY, "--signature", "f4, f4[:], Region(f4[:], Chunked1D(8))",
        "--targets", "cpu, compute_80", "-o", file,
    )  # fmt: skip
    assert status == 0 and "some.bundle" in text
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in text.splitlines() if line.startswith("│")]
    assert [row[0] for row in rows] == list("01234567")
    assert {row[1] for row in rows} == {"saxpy"}
    assert rows[4][2] == "f4, f4[:], Region(f4[:], Chunked1D(k=8))"
    assert [row[3] for row in rows] == ["cpu", "cpu", "compute_80", "compute_80"] * 2
    assert [row[5] for row in rows] == ["object", "object", "ptx", "ptx"] * 2
    assert all(int(row[6]) > 100 for row in rows)
    assert rows[0][7] == "safe" and re.fullmatch(r"\d facts settled", rows[1][7])
    assert shown("--list", file) == (text, 0)


def test_a_kernel_of_a_module_is_found(tmp_path, shown):
    text, status = shown("field_kernels:shifted", "--signature", "f8[:], i8, Region(f8[:])", "-o", tmp_path / "file")
    assert status == 0 and "shifted" in text


@pytest.mark.parametrize(
    "arguments, told",
    [
        (["saxpy", *SAXPY], "'saxpy' names no kernel; write module:kernel or path/to/file.py:kernel"),
        (["field_kernels:", *SAXPY], "names no kernel"),
        (["no_such_module:saxpy", *SAXPY], "no_such_module cannot be imported: ModuleNotFoundError"),
        (["no/such/file.py:saxpy", *SAXPY], "no/such/file.py cannot be imported: FileNotFoundError"),
        (["field_kernels:other", *SAXPY], "field_kernels has no 'other'; its kernels: saxpy, weigh, curved, shifted, picky"),
        (["field_kernels:scaled", *SAXPY], "field_kernels:scaled is of type OffloadFunction, and no kernel; decorate it with"),
        (["field_kernels:saxpy", "--signature", "f8"], "missing a required argument: 'x'"),
        (["field_kernels:saxpy", "--signature", "f8, g8[:]"], "'g8': neither NumPy's name"),
        (["field_kernels:saxpy", *SAXPY, "--targets", "cpu,vulkan"], "unknown target 'vulkan'"),
        (["field_kernels:saxpy", *SAXPY, "--targets", ","], "at least one kernel and one target"),
    ],
)
def test_errors_are_told_without_a_traceback(arguments, told, tmp_path, shown):
    text, status = shown(*arguments, "-o", tmp_path / "file")
    assert status == 1
    assert told in text.replace("\n", " ")
    assert not list(tmp_path.iterdir())


def test_a_file_that_cannot_be_written_or_read_is_told(tmp_path, shown):
    text, status = shown("field_kernels:saxpy", *SAXPY, "-o", tmp_path / "nowhere" / "file")
    assert status == 1 and "nowhere/file" in text.replace("\n", "")
    text, status = shown("--list", tmp_path / "file")
    assert status == 1 and "No such file" in text
    (tmp_path / "file").write_bytes(b"nothing")
    text, status = shown("--list", tmp_path / "file")
    assert status == 1 and "error: " in text


@pytest.mark.parametrize("arguments", [[], ["field_kernels:saxpy"], ["field_kernels:saxpy", *SAXPY], [*SAXPY, "-o", "file"]])
def test_what_is_missing_is_told_as_usage(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["compile", *arguments])
    assert stopped.value.code == 2
    assert "needs MODULE:KERNEL, at least one --signature, and --output; or --list FILE" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["random", "tokenize", "numba"])
def test_a_file_that_is_called_like_another_module(name, tmp_path):
    (tmp_path / f"{name}.py").write_text("pass\n")
    before = sys.modules.get(name)
    with pytest.raises(BundleError, match=f"take the place of another module '{name}'.*rename the file"):
        find_kernel(f"{tmp_path / name}.py:k")
    assert sys.modules.get(name) is before
