"""What kernel code may use: types, typing and lowering, written once for every target. Importing registers it all."""

from numba_offload.device import (  # noqa: F401
    accumulators,
    indices,
    models,
    positions,
    records,
    reductions,
    strategies,
    target_name,
    views,
)
