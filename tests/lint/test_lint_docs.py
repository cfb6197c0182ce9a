"""The examples of docs/check.md: each is found at its marked lines and nowhere else, and its mended form is not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from programs import source

from numba_offload.lint.check import check_sources
from numba_offload.lint.finding import RULES

TEXT = (Path(__file__).parents[2] / "docs" / "check.md").read_text(encoding="utf-8")
SHARED = re.findall(r"^```python\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
EXAMPLES = re.findall(r"^### (NO\d+)$(.*?)(?=^##|\Z)", TEXT, re.DOTALL | re.MULTILINE)


def block(text: str, kind: str) -> str:
    (found,) = re.findall(rf"^```python {kind}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return found


def found(text: str) -> list[tuple[str, str]]:
    return [(f.code, f.source) for f in check_sources([source(SHARED[0] + text)])]


def test_every_rule_has_its_example() -> None:
    assert [code for code, _ in EXAMPLES] == list(RULES)
    assert len(SHARED) == 1


@pytest.mark.parametrize("code, text", EXAMPLES, ids=[code for code, _ in EXAMPLES])
def test_an_example_is_found_and_its_mended_form_is_not(code: str, text: str) -> None:
    lines = [line for line in block(text, "found").splitlines() if re.search(r"# NO\d+$", line)]
    assert lines and all(line.endswith(f"# {code}") for line in lines)
    assert found(block(text, "found")) == [(code, line) for line in lines]
    assert [(each, line) for each, line in found(block(text, "mended")) if each == code] == []


@pytest.mark.parametrize("code, text", EXAMPLES, ids=[code for code, _ in EXAMPLES])
def test_a_mended_form_has_no_other_problem(code: str, text: str) -> None:
    assert found(block(text, "mended")) == []
