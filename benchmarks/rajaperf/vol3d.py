"""VOL3D: the volumes of a 3-D mesh's hexahedra.

The loop runs over one contiguous range of zones whose rows wrap through ghost zones, so some results describe
no geometry; they are defined all the same.
"""

from __future__ import annotations

import numpy as np

from .benchmark import DEFAULT_SIZE, Benchmark, Data, HandwrittenCall, Launch
from .initialise import Domain, Initialiser

VNORMQ = 0.083333333333333333


def set_up(size: int = DEFAULT_SIZE) -> Data:
    domain = Domain.of_size(size, 3)
    init = Initialiser()
    for _ in ("x", "y", "z"):
        init.overwritten()
    x, y, z = domain.positions(0.3, 0.2, 0.1)
    vol = init.constant(0.0, domain.all_nodes)
    return {
        "x": x,
        "y": y,
        "z": z,
        "vol": vol,
        "vol_range": vol[domain.first_zone : domain.last_zone + 1],
        "first": domain.first_zone,
        "jp": domain.jp,
        "kp": domain.kp,
        "size": domain.real_zones,
    }


def launches(data: Data) -> list[Launch]:
    from numba_offload import Region

    from .kernels.vol3d import vol3d

    inputs = tuple(data[name] for name in ("x", "y", "z", "first", "jp", "kp"))
    return [Launch(vol3d, (*inputs, Region(data["vol_range"])))]


def handwritten(data: Data) -> list[HandwrittenCall]:
    names = ("x", "y", "z", "first", "jp", "kp", "vol_range")
    return [HandwrittenCall("vol3d", data["vol_range"].size, tuple(data[name] for name in names))]


def reference(data: Data) -> None:
    first, jp, kp, vol = (data[name] for name in ("first", "jp", "kp", "vol_range"))
    nodes = np.stack([data["x"], data["y"], data["z"]])
    offsets = (0, 1, jp, jp + 1, kp, kp + 1, kp + jp, kp + jp + 1)
    v = [nodes[:, first + offset : first + offset + vol.size] for offset in offsets]

    def triple(p: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.einsum("ci,ci->i", p, np.cross(a, b, axis=0))

    vol[:] = VNORMQ * (
        triple(v[7] - v[1] + (v[6] - v[0]), v[7] - v[2], v[3] - v[0])
        + triple(v[7] - v[2] + (v[5] - v[0]), v[7] - v[4], v[6] - v[0])
        + triple(v[7] - v[4] + (v[3] - v[0]), v[7] - v[1], v[5] - v[0])
    )


BENCHMARK = Benchmark(
    name="VOL3D",
    reps=100,
    checksum="25748.629110422268793",
    kernels=("vol3d",),
    outputs=("vol",),
    written=("vol_range",),
    set_up=set_up,
    launches=launches,
    handwritten=handwritten,
    reference=reference,
)
