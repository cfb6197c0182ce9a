"""The code blocks of a Markdown file, as its readers see them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A Python block. ``raises``: the error it ends in; ``output``: the text block right after it."""

    code: str
    line: int
    raises: str | None
    output: str | None


def python_blocks(path: Path) -> Iterator[Block]:
    """All Python blocks in order, each with the text block that follows it at once."""
    text = path.read_text(encoding="utf-8")
    found = list(_BLOCK.finditer(text))
    for match, after in zip(found, [*found[1:], None], strict=True):
        if match[1] != "python":
            continue
        follows = after is not None and after[1] == "text" and after.start() == match.end() + 1
        words = match[2].split()
        yield Block(
            match[3],
            text.count("\n", 0, match.start(3)) + 1,
            words[1] if words[:1] == ["raises"] else None,
            after[3] if follows and after is not None else None,
        )
