"""The shape that a launch takes on the hardware."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from numba_offload.errors import LaunchError
from numba_offload.targets.base import DeviceLimits, Extent, LaunchConfig


@dataclass(frozen=True, slots=True)
class LaunchShape:
    """Blocks, threads of a block, and logical threads as the entry is given them.

    ``blocks_at_once``: a device that takes fewer of them gets the launch in several parts.
    """

    grid: Extent
    block: Extent
    threads: Extent
    blocks_at_once: int

    def parts(self) -> Iterator[tuple[Extent, int]]:
        """Each part's blocks, and the number of its first thread."""
        blocks, most = self.grid[0], self.blocks_at_once
        if math.prod(self.grid) <= most:
            yield self.grid, 0
            return
        for start in range(0, blocks, most):
            yield (min(most, blocks - start), 1, 1), start * self.block[0]


def launch_shape(
    config: LaunchConfig, positions: bool, limits: DeviceLimits, most_threads: int, name: str
) -> LaunchShape:
    """How a launch is laid out on the device.

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
        if math.prod(grid) * math.prod(block) > limits.threads_at_once:
            raise LaunchError(
                f"kernel {name!r}: {grid} blocks of {block} threads are more than the {limits.threads_at_once} that the device "
                "takes at once; launch fewer threads that own more elements each (Tiles2D, GridStride1D)"
            )
        if any(blocks > limit for blocks, limit in zip(grid, limits.grid, strict=True)):
            raise LaunchError(
                f"kernel {name!r}: {math.prod(threads)} threads in blocks of {block} are {grid} blocks, but the device allows "
                f"{limits.grid}; launch larger blocks, or fewer threads that own more elements each"
            )
        return LaunchShape(grid, block, threads, math.prod(grid))
    total = math.prod(config.threads)
    wide = min(math.prod(config.block), most_threads)
    at_once = min(limits.threads_at_once // wide, limits.grid[0])
    blocks = -(-total // wide)
    return LaunchShape((blocks, 1, 1), (wide, 1, 1), (total, 1, 1), at_once)

