"""What this installation and this machine have: versions, targets, memory model, threads."""

from __future__ import annotations

import os
import platform
from importlib import metadata

from rich.markup import escape
from rich.table import Table

from numba_offload.mapping.settings import cpu_memory
from numba_offload.targets import registry

_PACKAGES = ("numba-offload", "numba", "llvmlite", "numpy", "numba-cuda", "cuda-bindings", "hip-python")


def package_version(name: str) -> str | None:
    """A distribution's version without importing it; None if it is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def threading_layer() -> str:
    """Numba's threading layer and how many threads it has; it is started if it was not running."""
    import numba
    from numba.np.ufunc import parallel

    parallel._launch_threads()
    return f"{numba.threading_layer()}, {numba.get_num_threads()} threads"


def info_tables() -> list[Table]:
    """Tables of versions and of targets, for printing."""
    return [_versions(), _targets()]


def _versions() -> Table:
    table = Table(title="Versions and settings", show_header=False)
    table.add_row("Python", f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    for name in _PACKAGES:
        table.add_row(name, package_version(name) or "not installed")
    table.add_row("threading layer", threading_layer())
    table.add_row("NUMBA_OFFLOAD_TARGET", escape(os.environ.get("NUMBA_OFFLOAD_TARGET") or "not set"))
    table.add_row("CPU memory model", cpu_memory())
    return table


def _targets() -> Table:
    table = Table(title="Targets, in order of preference")
    for heading in ("target", "works here", "why not"):
        table.add_column(heading)
    for name in registry.known_targets():
        reason = registry.why_unavailable(name)
        table.add_row(name, "yes" if reason is None else "no", escape(reason or ""))
    return table
