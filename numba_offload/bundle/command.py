"""``python -m numba_offload compile``: a kernel by name into a bundle, and what a bundle holds."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from rich.markup import escape
from rich.table import Table

from numba_offload.bundle.compiling import compile_bundle
from numba_offload.bundle.loading import load_bundle
from numba_offload.errors import BundleError
from numba_offload.kernel import OffloadKernel

_FORM = "module:kernel or path/to/file.py:kernel"


def compile_command(where: str, signatures: Sequence[str], targets: str, output: str) -> None:
    """Compile one kernel. Raises OffloadError, and OSError where the file cannot be written."""
    kernel = find_kernel(where)
    wanted = [name.strip() for name in targets.split(",") if name.strip()]
    compile_bundle([(kernel, signature) for signature in signatures], wanted, output)


def find_kernel(where: str) -> OffloadKernel:
    """The kernel that a command line names. Raises BundleError where there is none."""
    place, _, name = where.rpartition(":")
    if not place or not name:
        raise BundleError(f"{where!r} names no kernel; write {_FORM}")
    found: Any = _module(place)
    for part in name.split("."):
        if not hasattr(found, part):
            raise BundleError(f"{place} has no {name!r}; its kernels: {', '.join(_kernels(place)) or 'none'}")
        found = getattr(found, part)
    if not isinstance(found, OffloadKernel):
        raise BundleError(
            f"{where} is of type {type(found).__name__}, and no kernel; decorate it with @offload_kernel. The kernels of "
            f"{place}: {', '.join(_kernels(place)) or 'none'}"
        )
    return found


def _module(place: str) -> ModuleType:
    try:
        if place.endswith(".py"):
            return _from_file(Path(place))
        return importlib.import_module(place)
    except Exception as error:  # importing runs code of others
        raise BundleError(f"{place} cannot be imported: {type(error).__name__}: {error}") from error


_from_files: set[str] = set()
"""Modules that were made of files here."""


def _from_file(path: Path) -> ModuleType:
    """As ``python file.py`` would run it, but by its own name: what lies beside it can be imported."""
    name = path.stem
    known = sys.modules.get(name)
    if known is not None and getattr(known, "__file__", None) == os.fspath(path.resolve()):
        return known
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    if spec is None or spec.loader is None or not path.is_file():
        raise FileNotFoundError(f"no file {path}")
    if name in sys.stdlib_module_names or (known is not None and name not in _from_files):
        raise ImportError(f"it would take the place of another module {name!r}, which may be needed; rename the file")
    _from_files.add(name)
    sys.path.insert(0, os.fspath(path.resolve().parent))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _kernels(place: str) -> list[str]:
    return [name for name, value in vars(_module(place)).items() if isinstance(value, OffloadKernel)]


def bundle_table(path: str) -> Table:
    """What a bundle holds, an image a row. Raises BundleError for a file that is none."""
    bundle = load_bundle(path)
    table = Table(title=f"{escape(path)}, {os.path.getsize(path)} bytes")
    for heading in ("image", "kernel", "arguments", "target", "arch", "kind"):
        table.add_column(heading, overflow="fold")
    table.add_column("bytes", justify="right")
    table.add_column("variant")
    signatures = {kernel.number: kernel for kernel in bundle.kernels}
    for number, image in enumerate(bundle.images):
        kernel, code = signatures[image.kernel], image.built_for
        table.add_row(
            str(number),
            escape(kernel.record.name),
            escape(kernel.signature),
            escape(image.target),
            escape(code.arch),
            code.kind,
            str(len(image.bundled.data)),
            image.variant,
        )
    return table
