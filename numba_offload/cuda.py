"""The indexing names of ``numba.cuda``, for unsafe kernels on every target.

What else ``numba.cuda`` has is not here; asking for it says what to write instead.
"""

from typing import NoReturn

from numba_offload.device.positions import (
    BLOCK_EXTENT as blockDim,
)
from numba_offload.device.positions import (
    BLOCK_INDEX as blockIdx,
)
from numba_offload.device.positions import (
    GRID_EXTENT as gridDim,
)
from numba_offload.device.positions import (
    THREAD_INDEX as threadIdx,
)
from numba_offload.device.positions import grid, gridsize

__all__ = ["blockDim", "blockIdx", "grid", "gridDim", "gridsize", "threadIdx"]

_AUTOMATIC = "pass NumPy arrays, which move by themselves; preload and preload_mut keep them on the device"
_NO_SHARED = (
    "kernels have no shared memory and no barriers yet: keep a thread's values in scalars and tuples, and make several launches "
    "where threads wait for each other"
)

INSTEAD = {
    "jit": "decorate with @offload_kernel, or with @offload_kernel(unsafe=True) where threads compute their indices; "
    "functions that kernels call with @offload_function",
    "to_device": _AUTOMATIC,
    "device_array": _AUTOMATIC,
    "device_array_like": _AUTOMATIC,
    "pinned_array": "use pinned_empty or pinned_zeros",
    "pinned_array_like": "use pinned_empty or pinned_zeros",
    "synchronize": "use numba_offload.synchronize()",
    "is_available": "use numba_offload.available_targets()",
    "shared": _NO_SHARED,
    "syncthreads": _NO_SHARED,
    "local": "use scalars and tuples for a thread's own values",
    "atomic": "pass Accumulator(array, '+') and call its update(index, value)",
    "stream": "leave it out, or pass a stream of numba.cuda, CuPy or PyTorch: kernel[blocks, threads, stream]",
}
"""What to write for names of numba.cuda that are not here."""


def __getattr__(name: str) -> NoReturn:
    message = f"module {__name__!r} has no attribute {name!r}"
    if not name.startswith("__"):
        fix = INSTEAD.get(name, f"the names of numba.cuda that are here are {', '.join(__all__)}")
        message += f"; {fix}"
    raise AttributeError(message)
