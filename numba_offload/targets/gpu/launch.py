"""The shape that a launch takes on the hardware."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from numba_offload.errors import LaunchError
from numba_offload.targets.base import DeviceLimits, Extent, LaunchConfig

_ORIGIN = (0, 0, 0)


@dataclass(frozen=True, slots=True)
class LaunchShape:
    """Blocks, threads of a block, and logical threads as the entry is given them.

    ``most_blocks`` is what the device takes at once; a larger launch is made of several.
    """

    grid: Extent
    block: Extent
    threads: Extent
    most_blocks: int

    def parts(self) -> Iterator[tuple[Extent, Extent, Extent]]:
        """Each part's blocks, its first thread and its first block."""
        x, y, z = self.grid
        if x * y * z <= self.most_blocks:
            yield self.grid, _ORIGIN, _ORIGIN
            return
        bx, by, bz = self.block
        for size, (i, j, k) in _parts(self.grid, self.most_blocks):
            yield size, (i * bx, j * by, k * bz), (i, j, k)


def _parts(grid: Extent, most: int) -> Iterator[tuple[Extent, Extent]]:
    """A grid in boxes of at most ``most`` blocks, and where each begins: cut across the slowest axis that can be."""
    if math.prod(grid) <= most:
        yield grid, _ORIGIN
        return
    axis = next(a for a in (2, 1, 0) if grid[a] > 1)
    thick = max(most // (math.prod(grid) // grid[axis]), 1)
    for start in range(0, grid[axis], thick):
        size = list(grid)
        size[axis] = min(thick, grid[axis] - start)
        for inner, at in _parts((size[0], size[1], size[2]), most):
            begin = list(at)
            begin[axis] += start
            yield inner, (begin[0], begin[1], begin[2])


def launch_shape(
    config: LaunchConfig, positions: bool, limits: DeviceLimits, most_threads: int, name: str
) -> LaunchShape:
    """How a launch is laid out on the device.

    Code that does not ask for coordinates runs along x, whatever shape was asked for: the linear ids are the same.
    ``most_threads`` is what one block of this kernel can have. Raises LaunchError where the launch does not fit.
    """
    if not positions:
        total = math.prod(config.threads)
        wide = min(math.prod(config.block), most_threads)
        most = min(limits.threads_at_once // wide, limits.grid[0])
        return LaunchShape((-(-total // wide), 1, 1), (wide, 1, 1), (total, 1, 1), most)
    grid, block = config.grid, config.block
    per_block = math.prod(block)
    if per_block > most_threads:
        raise LaunchError(
            f"kernel {name!r} uses so many registers that a block can have {most_threads} threads; {block} is "
            f"{per_block}. Launch smaller blocks"
        )
    if any(blocks > limit for blocks, limit in zip(grid, limits.grid, strict=True)):
        raise LaunchError(
            f"kernel {name!r}: {math.prod(config.threads)} threads in blocks of {block} are {grid} blocks, but the device "
            f"allows {limits.grid}; launch larger blocks, or fewer threads that own more elements each"
        )
    return LaunchShape(grid, block, config.threads, limits.threads_at_once // per_block)
