"""Programs to be checked, with what must be found written at their lines: ``# <- NO101``, several codes by spaces."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from numba_offload.lint.check import check_sources
from numba_offload.lint.finding import Finding
from numba_offload.lint.sources import Source, parse

HEADER = """
import numpy as np
from numba_offload import *
from numba_offload import offload_kernel, offload_function, Region, Accumulator, preload, preload_mut, optimize_transfers

@offload_kernel
def saxpy(alpha, x, y):
    for i in y.indices():
        y[i] = alpha * x[i] + y[i]

@offload_kernel
def copy(x, y):
    for i in y.indices():
        y[i] = x[i]

"""
_MARK = re.compile(r"#\s*<-\s*((?:NO\d+\s*)+)")


def source(text: str, path: str = "program.py") -> Source:
    made = parse(textwrap.dedent(text).encode(), Path(path))
    assert isinstance(made, Source), made
    return made


def findings(text: str) -> list[Finding]:
    """What is found in a program with two kernels, ``saxpy`` and ``copy``."""
    return check_sources([source(HEADER + textwrap.dedent(text))])


def marks(text: str) -> list[tuple[str, str]]:
    """The codes that a program's comments name, each with its line."""
    found = [(line.strip(), match[1].split()) for line in text.splitlines() if (match := _MARK.search(line))]
    return [(line, code) for line, codes in found for code in codes]


def check(text: str) -> list[Finding]:
    """Assert that what is marked is found, and nothing else."""
    found = findings(text)
    assert sorted((f.source.strip(), f.code) for f in found) == sorted(marks(text)), [f.message for f in found]
    return found
