"""The project's own programs: what is told of them was looked at, and is right."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from programs import source

from numba_offload.lint.check import check_paths, check_sources

ROOT = Path(__file__).parents[2]

def found(*folders: str) -> list[tuple[str, str, str]]:
    checked = check_paths([ROOT / folder for folder in folders])
    assert checked.unreadable == () and checked.files
    return [(f.place.path.name, f.source.strip(), f.code) for f in checked.findings]


def test_examples_repeat_their_transfers() -> None:
    assert found("examples") == [
        ("batched_matmul.py", "multiply(a, b, Region(c, tiles))", "NO101"),
        ("saxpy.py", "saxpy(alpha, x, Region(y, partition))", "NO101"),
        ("transfers.py", "step(rod, Region(scratch))", "NO101"),  # the managed way, to be compared with the others
    ]


def test_kernels_that_compile() -> None:
    assert found("benchmarks", "tests/conformance", "partitioning") == []


def test_the_demo_has_one_race_on_purpose() -> None:
    assert found("numba_offload") == [("kernels.py", "y[i // 2] = x[i]", "NO402")]


@pytest.mark.parametrize(
    "name, expected",
    [
        ("README.md", [("y[i // 2] = x[i]", "NO402")]),
        ("docs/kernels.md", [("relax(Region(u, RedBlack(0)))", "NO102"), ("relax(Region(u, RedBlack(1)))", "NO102")]),
        ("docs/cache.md", []),
    ],
)
def test_documents(name: str, expected: list[tuple[str, str]]) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    text = "\n".join(re.findall(r"^```python[^\n]*\n(.*?)^```$", text, re.DOTALL | re.MULTILINE))
    assert [(f.source.strip(), f.code) for f in check_sources([source(text, name)])] == expected
