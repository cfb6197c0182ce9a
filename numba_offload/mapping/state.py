"""What mapping keeps for each device."""

from __future__ import annotations

from numba_offload.mapping.pool import BufferPool
from numba_offload.mapping.present import PresentTable
from numba_offload.targets.base import DeviceMemory


class DeviceState:
    """Memory, buffer pool and present table of one device.

    ``limit`` bounds the pool's bytes (None: no bound but the device's); ``name`` is the target's.
    """

    __slots__ = ("memory", "name", "pool", "present")

    def __init__(self, memory: DeviceMemory, limit: int | None = None, name: str = "") -> None:
        self.memory = memory
        self.name = name
        self.pool = BufferPool(memory, limit)
        self.present = PresentTable(self.pool, name)
