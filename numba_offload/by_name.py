"""What a command line names: a kernel or a strategy of a module or a file, which is imported."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from numba_offload.bundle.signatures import strategy_of
from numba_offload.errors import BundleError, OffloadError
from numba_offload.kernel import OffloadKernel
from partitioning import PartitioningStrategy

_FORM = "module:{0} or path/to/file.py:{0}"


def find_kernel(where: str) -> OffloadKernel:
    """The kernel that a command line names. Raises BundleError where there is none."""
    place, _, name = where.rpartition(":")
    if not place or not name:
        raise BundleError(f"{where!r} names no kernel; write {_FORM.format('kernel')}")
    found: Any = module_of(place)
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


def find_strategy(where: str) -> PartitioningStrategy:
    """The strategy that a command line names: an object, or a class and its parameters, as in ``file.py:Every(3)``.

    Raises OffloadError where there is none.
    """
    place, _, text = where.rpartition(":")
    if not place or not text:
        raise OffloadError(f"{where!r} names no strategy; write {_FORM.format('strategy')}, or ...:Strategy(parameters)")
    module = module_of(place)
    try:
        node = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        raise OffloadError(f"{where!r}: {text!r} is no name, and no class with its parameters") from None
    found: Any = vars(module).get(node.id) if isinstance(node, ast.Name) else None
    if isinstance(found, PartitioningStrategy):
        return found
    if found is not None and not isinstance(found, type):
        why = f"it is of type {type(found).__name__}, and no strategy"
    else:
        try:
            found = strategy_of(ast.Call(node, [], []) if isinstance(node, ast.Name) else node, text, vars(module))
        except BundleError as error:
            why = str(error).removeprefix(f"signature {text!r}: ")
        except Exception as error:  # its constructor may be the user's
            raise OffloadError(f"{where}: {type(error).__name__}: {error}") from error
        else:
            if isinstance(found, PartitioningStrategy):
                return found
            why = f"it is a {type(found).__name__}, and no strategy by itself"
    raise OffloadError(f"{where}: {why}. The strategies of {place}: {', '.join(_strategies(module)) or 'none'}")


def module_of(place: str) -> ModuleType:
    """A module by its name, or from a file. Raises BundleError where it cannot be imported."""
    try:
        if place.endswith(".py"):
            return _from_file(Path(place))
        return importlib.import_module(place)
    except Exception as error:  # importing runs code of others
        raise BundleError(f"{place} cannot be imported: {type(error).__name__}: {error}") from error
    except SystemExit as error:
        raise BundleError(
            f"{place} cannot be imported: it ends the program (exit status {error.code!r}); put what it does as a program under "
            "if __name__ == '__main__'"
        ) from error


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
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)  # half of it
        raise
    return module


def _kernels(place: str) -> list[str]:
    return [name for name, value in vars(module_of(place)).items() if isinstance(value, OffloadKernel)]


def _strategies(module: ModuleType) -> list[str]:
    return [
        name
        for name, value in vars(module).items()
        if isinstance(value, PartitioningStrategy)
        or (isinstance(value, type) and issubclass(value, PartitioningStrategy) and value.__module__ == module.__name__)
    ]
