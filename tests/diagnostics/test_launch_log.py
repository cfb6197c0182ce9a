"""``NUMBA_OFFLOAD_INFO``: which lines there are, and what is in them."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from observed_kernels import N, arrays, divide, saxpy

from numba_offload import Region
from numba_offload.diagnostics import events, launch_log
from numba_offload.diagnostics.launch_log import (
    ALL,
    ARGUMENTS,
    CHANGES,
    COPIES,
    EXISTING,
    KERNELS,
    TABLE,
    configure,
    parse,
)
from numba_offload.errors import DeviceMemoryError
from numba_offload.mapping import ArrayUse
from numba_offload.targets.registry import current_target

ROOT = Path(__file__).parents[2]
HERE = str(Path(__file__))


@pytest.fixture(autouse=True)
def off() -> Iterator[None]:
    yield
    configure(0)
    assert not events.listeners


def lines(capsys: pytest.CaptureFixture[str]) -> list[tuple[str, dict[str, str]]]:
    """Category and pairs of each line written."""
    found = []
    for line in capsys.readouterr().err.splitlines():
        prefix, category, *pairs = shlex.split(line)
        assert prefix == "numba_offload:"
        found.append((category, dict(pair.split("=", 1) for pair in pairs)))
    return found


@pytest.mark.parametrize(
    "text, expected",
    [
        ("", 0),
        ("0", 0),
        ("1", ARGUMENTS),
        ("48", KERNELS | COPIES),
        ("0x30", KERNELS | COPIES),
        ("-1", ALL),
        ("all", ALL),
        ("kernels,copies", KERNELS | COPIES),
        (" Kernels , table,", KERNELS | TABLE),
        ("changes,existing,1", CHANGES | EXISTING | ARGUMENTS),
    ],
)
def test_settings(text, expected):
    assert parse(text) == expected


@pytest.mark.parametrize("text", ["kernel", "64", "-2", "1.5", "kernels;copies"])
def test_a_setting_that_is_not_understood_names_what_is(text):
    with pytest.raises(ValueError, match=r"NUMBA_OFFLOAD_INFO=.*no category.*16 \(kernels\)"):
        parse(text)


def in_a_process(setting: str) -> subprocess.CompletedProcess[str]:
    code = (
        "import sys; sys.path.insert(0, 'tests/diagnostics')\n"
        "from observed_kernels import arrays, saxpy\n"
        "from numba_offload import Region\n"
        "x, y = arrays()\n"
        "saxpy(2.0, x, Region(y))\n"
    )
    environment = {
        **os.environ, "NUMBA_OFFLOAD_INFO": setting, "NUMBA_OFFLOAD_CPU_MEMORY": "discrete", "NUMBA_OFFLOAD_TARGET": "cpu"
    }  # fmt: skip
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )


def test_the_environment_switches_it_on():
    written = in_a_process("kernels,copies").stderr.splitlines()
    assert [line.split()[1] for line in written] == ["copies", "copies", "kernels", "copies"]
    assert written[2].endswith("at=<string>:5") or written[2].endswith("at='<string>:5'")


def test_a_wrong_environment_warns_and_launches():
    done = in_a_process("everything")
    assert "UserWarning: NUMBA_OFFLOAD_INFO='everything'" in done.stderr and "Nothing is logged" in done.stderr
    assert "numba_offload: " not in done.stderr


def test_nothing_is_written_when_off(discrete, capsys):
    x, y = arrays()
    saxpy(2.0, x, Region(y))
    assert capsys.readouterr().err == ""
    assert launch_log.mask == 0 and events.listeners == ()


def test_arguments(unified, capsys):
    configure(ARGUMENTS)
    x, y = arrays()
    for _ in range(2):  # the second launch would go the short way
        saxpy(2.0, x, Region(y))
        found = lines(capsys)
        assert [category for category, _ in found] == ["arguments"] * 3
        by_name = {said["argument"]: said for _, said in found}
        assert by_name["x"]["map"] == "to" and by_name["y"]["map"] == "tofrom"
        assert by_name["x"]["dtype"] == "float64" and by_name["x"]["shape"] == str(N)
        assert by_name["x"]["bytes"] == str(x.nbytes)
        assert by_name["alpha"]["map"] == "literal" and by_name["alpha"]["value"] == "2.0"
        assert {said["kernel"] for said in by_name.values()} == {"saxpy"}
        assert all(said["at"].startswith(HERE + ":") for said in by_name.values())


def test_kernels(target, capsys):
    configure(KERNELS)
    x, y = arrays()
    saxpy[4, 256](2.0, x, Region(y))
    saxpy[4, 256](3.0, x, Region(y))
    found = lines(capsys)
    assert [category for category, _ in found] == ["kernels", "kernels"]
    for _, said in found:
        assert said["kernel"] == "saxpy" and said["target"] == target.name
        assert (said["grid"], said["block"], said["threads"]) == ("4x1x1", "256x1x1", "1024x1x1")
        assert current_target().target.arch.startswith(said["arch"]) and "," not in said["arch"]
        assert int(said["settled"]) >= 0 and float(said["ms"]) > 0 and said["waited"] == "yes"
        assert said["at"].startswith(HERE + ":")


def test_copies(target, capsys):
    configure(COPIES)
    x, y = arrays()
    saxpy(2.0, x, Region(y))
    found = lines(capsys)
    if not target.separate:
        assert found == []
        return
    assert sorted((said["direction"], said["argument"], said["bytes"]) for _, said in found) == [
        ("d2h", "y", str(y.nbytes)),
        ("h2d", "x", str(x.nbytes)),
        ("h2d", "y", str(y.nbytes)),
    ]
    assert all(float(said["GB/s"]) >= 0 and said["target"] == target.name for _, said in found)


def test_changes_and_table_of_a_launch(discrete, capsys):
    configure(CHANGES | TABLE)
    x, y = arrays()
    saxpy(2.0, x, Region(y))
    found = lines(capsys)
    changes = [(said["change"], said["argument"]) for category, said in found if category == "changes"]
    assert sorted(changes) == [("mapped", "x"), ("mapped", "y"), ("unmapped", "x"), ("unmapped", "y")]
    assert found[-1][0] == "table" and found[-1][1]["entries"] == "0" and found[-1][1]["launch"] == "ended"


def test_held_arrays(discrete, capsys):
    configure(EXISTING | CHANGES | TABLE)
    x, y = arrays()
    device = current_target().device
    entry = device.present.hold(ArrayUse("held", x, "to"))
    try:
        saxpy(2.0, x, Region(y))
    finally:
        device.present.release(entry)
    found = lines(capsys)
    assert found[0][0] == "changes" and found[0][1]["change"] == "added" and found[0][1]["entry"] == "held"
    existing = [said for category, said in found if category == "existing"]
    assert [(said["argument"], said["entry"], said["by"], said["count"]) for said in existing] == [
        ("x", "held", "saxpy", "2")
    ]
    table = [said for category, said in found if category == "table"]
    assert table[0]["entries"] == "1" and table[1]["entry"] == "held" and table[1]["bytes"] == str(x.nbytes)
    assert table[1]["host"] == hex(x.ctypes.data)
    assert found[-1][1]["change"] == "removed"
    assert "mapped" not in {said["change"] for c, said in found if c == "changes" and said.get("argument") == "x"}


def test_the_table_after_a_failure(discrete, capsys, monkeypatch):
    configure(TABLE)
    x, y = np.zeros(N, np.int64), np.ones(N, np.int64)
    with pytest.raises(ZeroDivisionError):
        divide(x, Region(y))
    assert [said["launch"] for _, said in lines(capsys)] == ["failed"]
    device = current_target().device
    device.pool.trim()
    monkeypatch.setattr(device.pool, "limit", 8)
    with pytest.raises(DeviceMemoryError):
        divide(x, Region(y))
    assert [said["launch"] for _, said in lines(capsys)] == ["failed"]


def test_values_with_blanks_are_quoted(capsys):
    configure(COPIES)
    events.record_copy("h2d", "a, b's", 8, 0.0, "k", "cpu")
    ((_, said),) = lines(capsys)
    assert said["argument"] == "a, b's" and "GB/s" not in said


@pytest.mark.parametrize("stream", [None, "closed"])
def test_an_error_stream_that_takes_nothing_does_not_matter(stream, monkeypatch, unified):
    configure(KERNELS)
    if stream == "closed":
        stream = open(os.devnull, "w")  # noqa: SIM115 - to be closed at once
        stream.close()
    monkeypatch.setattr(sys, "stderr", stream)
    x, y = arrays()
    saxpy(2.0, x, Region(y))
    assert (y == 2.0 * x + 1.0).all()
