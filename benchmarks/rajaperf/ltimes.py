"""LTIMES: a discrete-ordinates transform from directions to moments, for every zone and group.

The suite's default is 6 directions; earlier releases, and work compared with them, used 64 on fewer zones.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from .benchmark import DEFAULT_SIZE, Benchmark, Data, HandwrittenCall, Launch
from .initialise import Initialiser

GROUPS, MOMENTS = 32, 25
CHECKSUMS = {6: "24977239.764896481345", 64: "24980980.280697550923"}
"""The reference by number of directions."""


def set_up(size: int = DEFAULT_SIZE, directions: int = 6) -> Data:
    zones = (size + directions * GROUPS // 2) // (directions * GROUPS)
    init = Initialiser()
    return {
        "phi": init.constant(0.0, zones, GROUPS, MOMENTS),
        "ell": init.ramp(MOMENTS, directions),
        "psi": init.ramp(zones, GROUPS, directions),
        "size": zones * GROUPS * directions,
    }


def launches(data: Data) -> list[Launch]:
    from numba_offload import Linear3D, Region

    from .kernels.ltimes import ltimes

    return [Launch(ltimes, (data["ell"], data["psi"], Region(data["phi"], Linear3D())))]


def handwritten(data: Data) -> list[HandwrittenCall]:
    phi = data["phi"]
    return [HandwrittenCall("ltimes", int(np.prod(phi.shape)), (data["ell"], data["psi"], phi))]


def reference(data: Data) -> None:
    data["phi"] += data["psi"] @ data["ell"].T


def benchmark(directions: int) -> Benchmark:
    """The benchmark with this number of directions, 6 or 64."""
    return Benchmark(
        name=f"LTIMES num_d={directions}",
        reps=50,
        checksum=CHECKSUMS[directions],
        kernels=("ltimes",),
        outputs=("phi",),
        written=("phi",),
        set_up=partial(set_up, directions=directions),
        launches=launches,
        handwritten=handwritten,
        reference=reference,
        accumulates=True,
    )
