"""Programs of others that compilers use: found where there are several places to look, and run on a file."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path


class ToolFailedError(Exception):
    """What a program said when it refused."""


def first_program(candidates: Iterable[str]) -> str | None:
    """The first of these names or paths that is a program here, or None."""
    return next((found for found in map(shutil.which, candidates) if found), None)


def converted(data: bytes, command: Callable[[str, str], list[str]]) -> bytes:
    """What a program makes of a file. ``command`` is given the paths of the file and of the result.

    Raises ToolFailedError with what the program said.
    """
    with tempfile.TemporaryDirectory() as folder:
        source, result = Path(folder, "source"), Path(folder, "result")
        source.write_bytes(data)
        done = subprocess.run(command(str(source), str(result)), capture_output=True, text=True, check=False)
        if done.returncode:
            raise ToolFailedError((done.stderr or done.stdout).strip())
        return result.read_bytes()
