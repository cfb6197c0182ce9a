"""Files of vendors that code is made of, told apart without reading them."""

from __future__ import annotations

from pathlib import Path


def described(path: Path) -> str:
    """A file's path, size and time of change, links followed; what it says once the file is gone is another text."""
    try:
        real = path.resolve()
        about = real.stat()
    except OSError as error:
        return f"{path} {type(error).__name__}"
    return f"{real} {about.st_size} {about.st_mtime_ns}"
