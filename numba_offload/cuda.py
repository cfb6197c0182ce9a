"""The indexing names of ``numba.cuda``, for unsafe kernels on every target."""

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
