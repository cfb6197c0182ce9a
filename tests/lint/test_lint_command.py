"""``python -m numba_offload check``: what it prints in each format, its options and its exit status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from numba_offload.cli import main

PROGRAM = '''"""A program with two mistakes; running it would fail."""
from numba_offload import Region, offload_kernel
raise RuntimeError("imported")

@offload_kernel
def fill(y):
    y[0] = 1.0

def run(y, n):
    for _ in range(n):
        "\u00e9"; fill(Region(y))
'''


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM, encoding="utf-8")
    return path


def test_text_shows_the_place_the_line_and_the_fix(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(program)]) == 1
    shown = capsys.readouterr().out
    assert f"{program}:7:5: NO402 y is written at [0]" in shown
    assert f"{program}:11:19: NO102 y comes back" in shown
    lines = shown.splitlines()
    at = next(n for n, line in enumerate(lines) if "fill(Region(y))" in line)
    assert lines[at].index("Region(y)") == lines[at + 1].index("^") and lines[at + 1].count("^") == len("Region(y)")
    assert "Fix: decorate run with @optimize_transfers" in lines[at + 2]
    assert "2 findings in 1 file" in shown


def test_json(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(program), "--format", "json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert [(f["code"], f["line"], f["column"], f["end_column"]) for f in told["findings"]] == [
        ("NO402", 7, 5, 9), ("NO102", 11, 19, 28),
    ]  # fmt: skip
    assert told["findings"][0]["path"] == str(program) and told["findings"][0]["fix"]
    assert told["unreadable"] == [] and told["files"] == 1


def test_annotations_of_github(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(program), "--format", "github"]) == 1
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith(f"::warning file={program},line=7,endLine=7,col=5,endColumn=9,title=NO402::y is written at [0]")
    assert "%0AFix: " in first and "title=NO102" in second


def test_rules_are_chosen(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(program), "--select", "NO1"]) == 1
    shown = capsys.readouterr().out
    assert "NO102" in shown and "NO402" not in shown
    assert main(["check", str(program), "--select", "NO1,NO402", "--ignore", "no102,NO4"]) == 0
    with pytest.raises(SystemExit) as stopped:
        main(["check", str(program), "--select", "E501"])
    assert stopped.value.code == 2
    assert "there is no rule 'E501'" in capsys.readouterr().err


def test_comments_switch_rules_off(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    for comment, status in [
        ("# numba-offload: ignore[NO402]", 0),
        ("# numba-offload: ignore[NO101, NO402] - on purpose", 0),
        ("# numba-offload: ignore", 0),
        ("# noqa # numba-offload: ignore[no402]", 0),
        ("# numba-offload: ignore[NO401]", 1),
        ("# numba-offload: ignore[]", 1),
        ("; '# numba-offload: ignore'", 1),
    ]:
        text = f"from numba_offload import *\n@offload_kernel\ndef fill(y):\n    y[0] = 1.0  {comment}\n"
        path.write_text(text)
        assert main(["check", str(path)]) == status, comment


def test_nothing_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "empty.py"
    path.write_text("")
    assert main(["check", str(path)]) == 0
    assert "nothing found in 1 file" in capsys.readouterr().out


@pytest.mark.parametrize(
    "content, reason",
    [
        (b"def f(:\n", "syntax error"),
        (b"x = 1\n  y = 2\n", "syntax error"),
        (b"# coding: nonsense\n", "unknown encoding"),
        (b"x = '\xff\xfe'\n", "encoding"),
        (b"\n\n\nx = '\xff\xfe'\n", "utf-8"),
        (b"x = 1\0\n", "null byte"),
        (b"(" * 5000, "too many nested parentheses"),
        (b"x = " + b"+".join([b"1"] * 2000) + b"\n", "nested too deeply"),
    ],
)
def test_files_that_cannot_be_parsed(
    content: bytes, reason: str, tmp_path: Path, program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "broken.py"
    path.write_bytes(content)
    assert main(["check", str(path), str(program)]) == 2
    shown = capsys.readouterr().out
    assert "broken.py" in shown and "cannot be checked" in shown and reason in shown
    assert "NO402" in shown, "the others are checked all the same"


def test_long_sums_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text("x = " + "+".join(["1"] * 1200) + "\nif x:\n    pass\n" + "elif x:\n    pass\n" * 600)
    assert main(["check", str(path)]) == 0


def test_files_that_do_not_exist(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(tmp_path / "missing.py")]) == 2
    assert "missing.py" in capsys.readouterr().out
    assert main(["check", str(tmp_path / "missing.py"), "--format", "github"]) == 2
    assert capsys.readouterr().out.startswith("::error file=")


def test_folders(tmp_path: Path, program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder in (".hidden", "env/lib", "package/inner"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "copy.py").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "env" / "pyvenv.cfg").write_text("")
    (tmp_path / "notes.txt").write_text("def f(:")
    assert main(["check", str(tmp_path), str(program), "--format", "json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert {Path(f["path"]).name for f in told["findings"]} == {"program.py", "copy.py"}
    assert told["files"] == 2, "each once"


def test_windows_lines_and_tabs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "program.py"
    path.write_bytes(b"from numba_offload import *\r\n\f\r\n@offload_kernel\r\ndef fill(y):\r\n\ty[0] = 1.0\r\n")
    assert main(["check", str(path)]) == 1
    shown = capsys.readouterr().out
    assert f"{path}:5:2: NO402" in shown and "\r" not in shown
