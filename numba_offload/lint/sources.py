"""Python files as text and trees: which are meant, what is in them, and which findings their comments switch off."""

from __future__ import annotations

import ast
import io
import os
import re
import tokenize
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from numba_offload.lint.finding import Place, Unreadable

_IGNORE = re.compile(r"#\s*numba-offload:\s*ignore(?:\[([^\]]*)\])?")
_TOO_DEEP = "nested too deeply"
DEEPEST = 1500
"""Nodes around a node. The analyses call themselves a few times for each."""
_SKIPPED = {"__pycache__", "node_modules", "site-packages"}


@dataclass(frozen=True, eq=False)
class Source:
    """A file that was parsed. ``ignored``: the codes that comments switch off, by line; an empty set stands for all."""

    path: Path
    lines: tuple[str, ...]
    tree: ast.Module
    ignored: dict[int, frozenset[str]]

    @cached_property
    def folder(self) -> tuple[str, ...]:
        """The absolute folder that the file lies in."""
        return self.path.absolute().parent.parts

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """Each node's parent."""
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, from the inside out."""
        while (found := self.parents.get(node)) is not None:
            yield found
            node = found

    def place(self, node: ast.AST) -> Place:
        """Where a node stands."""
        line, end_line = node.lineno, node.end_lineno  # type: ignore[attr-defined]
        start = self._characters(line, node.col_offset)  # type: ignore[attr-defined]
        return Place(self.path, line, start + 1, end_line, self._characters(end_line, node.end_col_offset) + 1)  # type: ignore[attr-defined]

    def _characters(self, line: int, column: int) -> int:
        # The parser counts bytes of UTF-8.
        return len(self.lines[line - 1].encode()[:column].decode(errors="replace"))

    def ignores(self, code: str, place: Place) -> bool:
        """Whether a comment on one of a finding's lines switches its rule off."""
        found = [self.ignored[n] for n in range(place.line, place.end_line + 1) if n in self.ignored]
        return any(not codes or code in codes for codes in found)


def read_source(path: Path) -> Source | Unreadable:
    """Parse a file."""
    try:
        return parse(path.read_bytes(), path)
    except OSError as error:
        return Unreadable(path, 0, error.strerror or str(error))


def parse(data: bytes, path: Path) -> Source | Unreadable:
    """The source that ``data`` holds, in the encoding that it declares."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = io.TextIOWrapper(io.BytesIO(data), encoding).read()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text, str(path))
        if _depth(tree) > DEEPEST:
            return Unreadable(path, 0, _TOO_DEEP)
        return Source(path, tuple(re.split("\n", text)), tree, dict(_ignored(text)))
    except SyntaxError as error:
        return Unreadable(path, error.lineno or 0, f"syntax error: {error.msg}")
    except (ValueError, LookupError) as error:
        return Unreadable(path, 0, str(error))
    except (RecursionError, MemoryError):
        return Unreadable(path, 0, _TOO_DEEP)


def _depth(tree: ast.AST) -> int:
    """How many nodes are around the innermost."""
    depth, level = 0, [tree]
    while level:
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        depth += 1
    return depth


def _ignored(text: str) -> Iterator[tuple[int, frozenset[str]]]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and (found := _IGNORE.search(token.string)):
            codes = found[1]
            yield token.start[0], frozenset() if codes is None else frozenset(re.findall(r"\w+", codes.upper()) or ["?"])


def python_files(paths: Sequence[Path]) -> Iterator[Path]:
    """The files that are named, and those ending in .py in the folders that are; hidden folders and environments left out."""
    seen: set[Path] = set()
    for path in paths:
        for file in _in_folder(path) if path.is_dir() else [path]:
            if file.absolute() not in seen:
                seen.add(file.absolute())
                yield file


def _in_folder(folder: Path) -> Iterator[Path]:
    for here, folders, files in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".") and name not in _SKIPPED and not os.path.exists(os.path.join(here, name, "pyvenv.cfg"))
        )
        yield from (Path(here, name) for name in sorted(files) if name.endswith(".py"))
