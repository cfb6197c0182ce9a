"""Kernels that must not compile, by what is wrong with them."""

from refused_kernels import (
    axes,
    device_functions,
    indices,
    missing,
    newcomers,
    other_regions,
    shared_arrays,
    whole_regions,
)
from refused_kernels.table import TABLE, Refused

__all__ = [
    "TABLE",
    "Refused",
    "axes",
    "device_functions",
    "indices",
    "missing",
    "newcomers",
    "other_regions",
    "shared_arrays",
    "whole_regions",
]
