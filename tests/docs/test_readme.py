"""The Python blocks of README and reference run, in order, in one namespace each, and print or raise what the text says."""

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

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
REFERENCE = ROOT / "docs" / "kernels.md"
CACHE = ROOT / "docs" / "cache.md"
PROFILING = ROOT / "docs" / "profiling.md"
STAGING = ROOT / "docs" / "staging.md"
TRANSFERS = ROOT / "docs" / "transfers.md"


def run(path: Path, block: Block, namespace: dict[str, Any]) -> str:
    """What a block prints, or the message of the error that it must raise."""
    # At its own lines of the document, so that errors point there.
    code = compile("\n" * (block.line - 1) + block.code, str(path), "exec")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        if block.raises is None:
            exec(code, namespace)
            return printed.getvalue()
        with pytest.raises(Exception) as caught:
            exec(code, namespace)
    assert type(caught.value).__name__ == block.raises, f"line {block.line}: {caught.value!r}"
    return str(caught.value) + "\n"


def run_all(path: Path, least: int = 10) -> None:
    namespace: dict[str, Any] = {"__name__": path.stem}
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    blocks = list(python_blocks(path))
    assert len(blocks) >= least
    for block in blocks:
        actual = run(path, block, namespace)
        if block.output is not None:
            example = doctest.Example(block.code, block.output)
            checker = doctest.OutputChecker()
            difference = f"line {block.line}:\n" + checker.output_difference(example, actual, options)
            assert checker.check_output(block.output, actual, options), difference
        else:
            assert actual == "", f"line {block.line} prints {actual!r}; {path.name} does not show it"


def test_every_block_does_what_the_readme_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_OFFLOAD_CPU_MEMORY", "unified")
    run_all(README)
    assert os.environ["NUMBA_OFFLOAD_CPU_MEMORY"] == "discrete"


@pytest.mark.parametrize("memory", ["unified", "discrete"])
def test_every_block_does_what_the_reference_says(memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_OFFLOAD_CPU_MEMORY", memory)
    run_all(REFERENCE)
    run_all(CACHE, least=1)
    run_all(STAGING)


def test_every_block_does_what_the_page_on_profiling_says(monkeypatch: pytest.MonkeyPatch) -> None:
    # The page itself chooses the discrete memory model; what it sets ends with the test.
    monkeypatch.setenv("NUMBA_OFFLOAD_CPU_MEMORY", "unified")
    run_all(PROFILING, least=4)


def test_every_block_does_what_the_page_on_transfers_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_OFFLOAD_CPU_MEMORY", "unified")
    run_all(TRANSFERS)


DOCUMENTS = [
    README, REFERENCE, CACHE, PROFILING, STAGING, TRANSFERS, ROOT / "docs" / "design.md", ROOT / "docs" / "check.md",
]  # fmt: skip


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_to_files_lead_somewhere(path: Path) -> None:
    prose = re.sub(r"```.*?```|`[^`\n]*`", "code", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#:]+)\)", prose):
        assert (path.parent / target).exists(), target
