"""The CUDA target (being built)."""

from numba_offload.errors import TargetError


class CUDATarget:
    """Placeholder until the target exists."""

    def __init__(self) -> None:
        raise TargetError("the CUDA target is not built yet")
