"""Arrays on devices: checks, aliasing, buffers, the present table, and the mapping of a launch.

Mapping sees arrays and what is done with each; it knows nothing of kernels' code or of any vendor.
"""

from numba_offload.mapping.alias import check_aliases
from numba_offload.mapping.arrays import Array, DeviceArray, as_array, check_array, check_writable
from numba_offload.mapping.discrete import HostHeap, UnifiedHostMemory
from numba_offload.mapping.launch import ArrayUse, LaunchMapping, MappedArray
from numba_offload.mapping.state import DeviceState

__all__ = [
    "Array",
    "ArrayUse",
    "DeviceArray",
    "DeviceState",
    "HostHeap",
    "LaunchMapping",
    "MappedArray",
    "UnifiedHostMemory",
    "as_array",
    "check_aliases",
    "check_array",
    "check_writable",
]
