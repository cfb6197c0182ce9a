"""The lowering context of GPU targets."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from llvmlite import ir

from numba_offload.targets.callconv import state_field
from numba_offload.targets.context import OffloadContext

i64 = ir.IntType(64)


class OffloadGPUContext(OffloadContext):
    """Numba's target-neutral lowering; a vendor's subclass says how hardware threads know where they are."""

    kernel_convention: ClassVar[str]
    """LLVM's calling convention of a kernel's entry."""

    device_scope: ClassVar[str]
    """LLVM's name for the synchronisation scope of all threads of a device."""

    record_scope: ClassVar[str]
    """The scope in which threads claim the error record, which is in the host's memory."""

    @property
    def atomic_ordering(self) -> str:
        return f'syncscope("{self.device_scope}") monotonic'

    @abstractmethod
    def hardware_thread(self, builder: Any, axis: int) -> Any:
        """This thread's index in its block along an axis (0 is x), as i64."""

    @abstractmethod
    def hardware_block(self, builder: Any, axis: int) -> Any:
        """This thread's block along an axis, as i64."""

    @abstractmethod
    def hardware_block_extent(self, builder: Any, axis: int) -> Any:
        """Threads of a block along an axis, as i64."""

    def hardware_position(self, builder: Any, axis: int) -> Any:
        """This thread's position in the grid of hardware threads along an axis, as i64."""
        first = builder.mul(
            self.hardware_block(builder, axis),
            self.hardware_block_extent(builder, axis),
            flags=("nsw", "nuw"),
        )
        return builder.add(first, self.hardware_thread(builder, axis), flags=("nsw", "nuw"))

    def thread_in_block(self, builder: Any, axis: int) -> Any:
        self.active_code_library.uses_position = True
        return self.hardware_thread(builder, axis)

    def block_in_grid(self, builder: Any, axis: int) -> Any:
        self.active_code_library.uses_position = True
        # A launch may be made of several, each from another block on.
        origin = builder.load(state_field(builder, builder.function.args[1], "origin", axis))
        return builder.add(self.hardware_block(builder, axis), origin, flags=("nsw", "nuw"))
