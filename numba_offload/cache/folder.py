"""The cache's folder: where it is, whether what lies in it can be trusted, and files that are read and written whole.

What is read here is executed. So a folder or a file that another user owns, or that others can write, is not used. Every
operation opens the folder, looks at what it has opened, and names files relative to that: nothing can be exchanged in
between. Many processes may use one folder at once: a file appears whole under its name, or not at all.

Nothing here raises for what a file system does. It warns once, and there is no file then.
"""

from __future__ import annotations

import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from numba_offload.cache.told import tell_once

MAX_BYTES = 256 << 20
"""Of all files together: beyond it, the files that were not used for longest are removed."""

_MAX_FILE = 64 << 20
_TOUCHED = 24 * 3600.0
"""Seconds after which a file that is used is marked as used again."""
_ABANDONED = 3600.0
"""Seconds after which a file that is still being written belongs to a process that was killed."""
_PRUNED_EVERY = 64
_TEMPORARY = ".writing-"


class _Refused(Exception):
    """The folder or a file cannot be used, for the reason that is the message."""


def cache_path() -> Path | None:
    """The folder: ``NUMBA_OFFLOAD_CACHE_DIR``, or ``numba_offload`` in the user's folder of caches. None: there is none."""
    named = os.environ.get("NUMBA_OFFLOAD_CACHE_DIR")
    if named:
        try:
            return Path(os.path.abspath(named))
        except OSError:  # the working directory is gone: using the path will tell
            return Path(named)
    root = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(root):  # the specification has such values ignored
        home = _home()
        if home is None:
            return None
        root = os.path.join(home, ".cache")
    return Path(root, "numba_offload")


def _home() -> str | None:
    home = os.environ.get("HOME")
    if not home:
        try:
            import pwd

            home = pwd.getpwuid(os.getuid()).pw_dir
        except (ImportError, KeyError):
            return None
    return home if os.path.isabs(home) else None


def read_file(name: str) -> bytes | None:
    """The contents of a file; None where there is none that can be used."""
    try:
        with _folder(create=False) as folder:
            # Not blocking: a pipe of that name must not hold the process.
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            file = os.open(name, flags, dir_fd=folder)
            try:
                return _contents(file, name)
            finally:
                os.close(file)
    except (FileNotFoundError, NotADirectoryError):
        return None  # where that is a fault, writing will tell
    except (OSError, _Refused) as error:
        _tell(error)
        return None


def _contents(file: int, name: str) -> bytes:
    about = os.fstat(file)
    if not stat.S_ISREG(about.st_mode):
        raise _Refused(f"{name} is no file")
    _check_owner(about, name)
    if about.st_size > _MAX_FILE:
        raise _Refused(f"{name} has {about.st_size} bytes")
    parts = []
    while part := os.read(file, 1 << 20):
        parts.append(part)
    if time.time() - about.st_mtime > _TOUCHED:
        with suppress(OSError):  # a folder that can only be read is a good cache
            os.utime(file)
    return b"".join(parts)


def write_file(name: str, data: bytes) -> bool:
    """Put a file into the folder, in place of one of the same name. Returns whether it is there."""
    try:
        with _folder(create=True) as folder:
            temporary = f"{_TEMPORARY}{os.getpid()}-{secrets.token_hex(8)}"
            file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder)
            try:
                try:
                    rest = memoryview(data)
                    while rest:
                        rest = rest[os.write(file, rest) :]
                finally:
                    os.close(file)
                os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                _remove(temporary, folder)
                raise
            _prune(folder)
            return True
    except (OSError, _Refused) as error:
        _tell(error)
        return False


def file_names(prefix: str) -> list[str]:
    """The names of the files whose names begin so."""
    try:
        with _folder(create=False) as folder:
            return sorted(name for name in os.listdir(folder) if name.startswith(prefix))
    except (OSError, _Refused):
        return []


# ------------------------------------------------------------------------------------------------------------- internals


@contextmanager
def _folder(create: bool) -> Iterator[int]:
    """The folder, opened and looked at."""
    path = cache_path()
    if path is None:
        raise _Refused("no home folder is known")
    if not hasattr(os, "geteuid") or os.open not in os.supports_dir_fd:
        raise _Refused("this system does not tell who owns a file")
    if create:
        os.makedirs(path.parent, 0o700, exist_ok=True)
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _check_owner(os.fstat(folder), "it")
        yield folder
    finally:
        os.close(folder)


def _check_owner(about: os.stat_result, what: str) -> None:
    if about.st_uid != os.geteuid():
        raise _Refused(f"{what} belongs to another user (uid {about.st_uid}), whose code would be executed")
    if about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise _Refused(f"other users can write to {what} (mode {stat.S_IMODE(about.st_mode):o}); chmod go-w mends that")


def _tell(error: OSError | _Refused) -> None:
    # Without the file's name, so that the same is not said of each file.
    reason = error.strerror or type(error).__name__ if isinstance(error, OSError) else str(error)
    tell_once(
        f"compiled kernels cannot be cached in {cache_path() or 'any folder'}: {reason}. Kernels work, and are compiled in each "
        "process; NUMBA_OFFLOAD_CACHE_DIR can name another folder"
    )


def _remove(name: str, folder: int) -> None:
    with suppress(OSError):  # another process was faster
        os.unlink(name, dir_fd=folder)


_writes = 0


def _prune(folder: int) -> None:
    """Now and then, remove what processes left that were killed, and the oldest files beyond the bound."""
    global _writes
    _writes += 1
    if _writes % _PRUNED_EVERY != 1:
        return
    files = []
    for name in os.listdir(folder):
        try:
            about = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except OSError:
            continue  # another process was faster
        if name.startswith(_TEMPORARY):
            if time.time() - about.st_mtime > _ABANDONED:
                _remove(name, folder)
        elif name.endswith((".record", ".code")):
            files.append((about.st_mtime, name, about.st_size))
    total = sum(size for _, _, size in files)
    for _, name, size in sorted(files):
        if total <= MAX_BYTES:
            break
        _remove(name, folder)
        total -= size
