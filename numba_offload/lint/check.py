"""All rules over all files."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from numba_offload.lint.finding import RULES, Finding, Remark, Unreadable
from numba_offload.lint.preloads import preloads
from numba_offload.lint.programs import HostProgram
from numba_offload.lint.project import Project
from numba_offload.lint.rules_borrow import borrow_remarks
from numba_offload.lint.rules_kernels import kernel_remarks, launch_remarks
from numba_offload.lint.rules_loops import loop_remarks
from numba_offload.lint.rules_preload import preload_remarks
from numba_offload.lint.sources import DEEPEST, Source, python_files, read_source


@dataclass(frozen=True)
class Checked:
    """What checking has found, in the order of the files and of their lines. ``files`` is how many were read."""

    findings: tuple[Finding, ...]
    unreadable: tuple[Unreadable, ...]
    files: int

    @property
    def status(self) -> int:
        """The command's exit status: 2 if a file could not be read, 1 if something was found, else 0."""
        return 2 if self.unreadable else 1 if self.findings else 0


def check_paths(paths: Sequence[Path], codes: frozenset[str] = frozenset(RULES)) -> Checked:
    """Check files, and all Python files in folders, together: a kernel imported from one of them is known in the others.

    ``codes`` are the rules to apply. Nothing is imported or run. What cannot be read or parsed is among ``unreadable``.
    """
    read = [read_source(path) for path in python_files(paths)]
    sources = [found for found in read if isinstance(found, Source)]
    unreadable = tuple(found for found in read if isinstance(found, Unreadable))
    return Checked(tuple(check_sources(sources, codes)), unreadable, len(sources))


def check_sources(sources: Sequence[Source], codes: frozenset[str] = frozenset(RULES)) -> list[Finding]:
    """What the rules find in files that were read."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, 10 * DEEPEST))
    try:
        remarks = list(_remarks(Project(sources)))
    finally:
        sys.setrecursionlimit(limit)
    found = {source: [] for source in sources}  # type: dict[Source, list[Finding]]
    for source, remark in remarks:
        place = source.place(remark.node)
        if remark.code in codes and not source.ignores(remark.code, place):
            line = source.lines[place.line - 1].rstrip("\r")
            found[source].append(Finding(remark.code, place, remark.message, remark.fix, line))
    in_order = (sorted(set(each), key=lambda f: (f.place.line, f.place.column, f.code)) for each in found.values())
    return [finding for each in in_order for finding in each]


def _remarks(project: Project) -> Iterator[tuple[Source, Remark]]:
    for kernel in project.kernels:
        for remark in kernel_remarks(project, kernel):
            yield kernel.scope.source, remark
    for scope in project.host_scopes():
        program = HostProgram(project, scope)
        for launch in program.launches:
            for remark in launch_remarks(project, launch):
                yield scope.source, remark
        held = list(preloads(program))
        for remark in (*loop_remarks(program), *preload_remarks(program, held), *borrow_remarks(program, held)):
            yield scope.source, remark
