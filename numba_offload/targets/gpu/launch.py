"""The shape that a launch takes on the hardware."""

from __future__ import annotations

import math

from numba_offload.errors import LaunchError
from numba_offload.targets.base import DeviceLimits, Extent, LaunchConfig


def launch_shape(
    config: LaunchConfig, positions: bool, limits: DeviceLimits, most_threads: int, name: str
) -> tuple[Extent, Extent, Extent]:
    """Blocks, threads of a block, and logical threads as the entry is given them.

    Code that does not ask for coordinates runs along x, whatever shape was asked for: the linear ids are the same.
    ``most_threads`` is what one block of this kernel can have. Raises LaunchError where the launch does not fit.
    """
    if positions:
        grid, block, threads = config.grid, config.block, config.threads
        if math.prod(block) > most_threads:
            raise LaunchError(
                f"kernel {name!r} uses so many registers that a block can have {most_threads} threads; {block} is "
                f"{math.prod(block)}. Launch smaller blocks"
            )
    else:
        total = math.prod(config.threads)
        wide = min(math.prod(config.block), most_threads)
        grid, block, threads = (-(-total // wide), 1, 1), (wide, 1, 1), (total, 1, 1)
    if any(blocks * wide > limits.axis_threads for blocks, wide in zip(grid, block, strict=True)):
        raise LaunchError(
            f"kernel {name!r}: {threads} threads in blocks of {block}, but the device takes at most {limits.axis_threads} along "
            "an axis; launch fewer threads that own more elements each (GridStride1D, Chunked1D)"
        )
    if any(blocks > limit for blocks, limit in zip(grid, limits.grid, strict=True)):
        raise LaunchError(
            f"kernel {name!r}: {math.prod(config.threads)} threads in blocks of {block} are {grid} blocks, but the "
            f"device allows {limits.grid}; launch larger blocks, or fewer threads that own more elements each"
        )
    return grid, block, threads
