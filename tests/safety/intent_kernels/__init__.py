"""Small kernels, each with how its arguments must be mapped."""

from intent_kernels import device_functions, reading, records, strategies, writing
from intent_kernels.table import TABLE, Expected

__all__ = [
    "TABLE",
    "Expected",
    "device_functions",
    "reading",
    "records",
    "strategies",
    "writing",
]
