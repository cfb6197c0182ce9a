"""Safe partitioned kernels with automatic transfers, on the CPU, NVIDIA and AMD GPUs."""

from numba_offload.accumulator import Accumulator
from numba_offload.bundle.compiling import compile_bundle
from numba_offload.bundle.loading import load_bundle
from numba_offload.device.target_name import target
from numba_offload.diagnostics.profile import profile
from numba_offload.diagnostics.progress import progress
from numba_offload.diagnostics.transfer_guard import transfer_guard
from numba_offload.errors import (
    AliasError,
    BorrowError,
    BundleError,
    CacheWarning,
    DeviceMemoryError,
    LaunchError,
    NotPlainError,
    OffloadError,
    SafetyError,
    SignatureError,
    TargetError,
    TransferError,
    TransferWarning,
    UnsupportedArrayError,
)
from numba_offload.kernel import offload_function, offload_kernel
from numba_offload.mapping.pinned import pinned_empty, pinned_zeros
from numba_offload.optimizer.optimize import optimize_transfers
from numba_offload.region import Region
from numba_offload.staging import preload, preload_mut
from numba_offload.targets.registry import available_targets, synchronize, use_target
from partitioning import (
    BlockStriped1D,
    Chunked1D,
    Columns,
    EvenSplit1D,
    GridStride1D,
    Linear1D,
    Linear2D,
    Linear3D,
    PartitioningStrategy,
    PerBlock1D,
    Permuted,
    RedBlack,
    Rows,
    Runtime,
    Segments,
    Strided1D,
    Tiles2D,
    Tiles3D,
)

__all__ = [
    "Accumulator",
    "AliasError",
    "BlockStriped1D",
    "BorrowError",
    "BundleError",
    "CacheWarning",
    "Chunked1D",
    "Columns",
    "DeviceMemoryError",
    "EvenSplit1D",
    "GridStride1D",
    "LaunchError",
    "Linear1D",
    "Linear2D",
    "Linear3D",
    "NotPlainError",
    "OffloadError",
    "PartitioningStrategy",
    "PerBlock1D",
    "Permuted",
    "RedBlack",
    "Region",
    "Rows",
    "Runtime",
    "SafetyError",
    "Segments",
    "SignatureError",
    "Strided1D",
    "TargetError",
    "Tiles2D",
    "Tiles3D",
    "TransferError",
    "TransferWarning",
    "UnsupportedArrayError",
    "available_targets",
    "compile_bundle",
    "load_bundle",
    "offload_function",
    "offload_kernel",
    "optimize_transfers",
    "pinned_empty",
    "pinned_zeros",
    "preload",
    "preload_mut",
    "profile",
    "progress",
    "synchronize",
    "target",
    "transfer_guard",
    "use_target",
]
