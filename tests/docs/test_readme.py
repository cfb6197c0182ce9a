"""The README's Python blocks run, in order, in one namespace, and print or raise what it says."""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
from pathlib import Path
from typing import Any

import pytest
from readme_blocks import Block, python_blocks

README = Path(__file__).parents[2] / "README.md"


def run(block: Block, namespace: dict[str, Any]) -> str:
    """What a block prints, or the message of the error that it must raise."""
    # At its own lines of the README, so that errors point there.
    code = compile("\n" * (block.line - 1) + block.code, str(README), "exec")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        if block.raises is None:
            exec(code, namespace)
            return printed.getvalue()
        with pytest.raises(Exception) as caught:
            exec(code, namespace)
    assert type(caught.value).__name__ == block.raises, f"line {block.line}: {caught.value!r}"
    return str(caught.value) + "\n"


def test_every_block_does_what_the_readme_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_OFFLOAD_CPU_MEMORY", "unified")
    namespace: dict[str, Any] = {"__name__": "readme"}
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    blocks = list(python_blocks(README))
    assert len(blocks) > 10
    for block in blocks:
        actual = run(block, namespace)
        if block.output is not None:
            example = doctest.Example(block.code, block.output)
            checker = doctest.OutputChecker()
            difference = f"line {block.line}:\n" + checker.output_difference(example, actual, options)
            assert checker.check_output(block.output, actual, options), difference
        else:
            assert actual == "", f"line {block.line} prints {actual!r}; the README does not show it"
    assert os.environ["NUMBA_OFFLOAD_CPU_MEMORY"] == "discrete"


def test_links_to_files_lead_somewhere() -> None:
    prose = re.sub(r"```.*?```|`[^`\n]*`", "code", README.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#:]+)\)", prose):
        assert (README.parent / target).exists(), target
