"""The versions of everything that has a part in what code looks like. Another one of any of these is another cache."""

from __future__ import annotations

import hashlib
import os
import platform
import sys
import time
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import llvmlite
import llvmlite.binding as ll
import numba
import numpy as np

import partitioning
from numba_offload.errors import NotPlainError

_IMPORTED = time.time()
_SETTINGS = ("BOUNDSCHECK", "DEBUGINFO_DEFAULT", "EXTEND_VARIABLE_LIFETIMES")
"""Of Numba: what its compiler makes of a function depends on them."""


def versions() -> Mapping[str, str]:
    """By name. Raises NotPlainError where the package's sources are not those that this process runs."""
    settings = ",".join(str(getattr(numba.config, name, None)) for name in _SETTINGS)
    return {
        "python": f"{sys.implementation.cache_tag} {sys.version}",
        "platform": f"{sys.platform} {platform.machine()} {sys.byteorder}",
        "numba": f"{numba.__version__} {settings}",
        "llvmlite": f"{llvmlite.__version__} LLVM {'.'.join(map(str, ll.llvm_version_info))}",
        "numpy": np.__version__,
        "numba_offload": sources_digest(),
    }


@cache
def sources_digest() -> str:
    """A digest of the package's source files, and of those of ``partitioning``: versions of a checkout have no number."""
    digest = hashlib.sha256()
    found = False
    for root, path in _sources():
        found = True
        try:
            changed, data = os.stat(path).st_mtime, path.read_bytes()
        except OSError as error:
            raise NotPlainError(f"{path}, which stands for the package's version, cannot be read: {error.strerror}") from None
        if _IMPORTED < changed <= time.time():
            raise NotPlainError(f"{path} has changed since it was imported, so that its code is not that of the file")
        digest.update(f"{path.relative_to(root)}\0{len(data)}\0".encode())
        digest.update(data)
    if not found:
        raise NotPlainError("the package's source files, which stand for its version, are not there")
    return digest.hexdigest()


def _sources() -> Iterator[tuple[Path, Path]]:
    for folder in (Path(__file__).parents[1], Path(partitioning.__file__ or "").parent):
        for path in sorted(folder.rglob("*.py")):
            if path.stem.isidentifier():  # an editor's locks and backups are no modules
                yield folder.parent, path
