"""MATVEC_3D_STENCIL: a symmetric matrix with 27 diagonals times a vector, over the real zones of a 3-D mesh.

A diagonal's name says where the neighbour lies: plane d, c or u (below, same, above), row b, c or f, column
l, c or r. Only 14 are stored; by symmetry the others are the same numbers seen from the neighbour: shifted
views. As in the suite the kernel takes 27 arrays of the vector and 27 of the matrix, all overlapping views.
"""

from __future__ import annotations

import itertools

from .benchmark import DEFAULT_SIZE, Benchmark, Data, HandwrittenCall, Launch
from .initialise import Domain, Initialiser

_AXES = ("dcu", "bcf", "lcr")
NAMES = tuple("".join(letters) for letters in itertools.product(*_AXES))
STORED = NAMES[:14]
_MIRROR = str.maketrans("dubflr", "udfbrl")


def offset_of(name: str, jp: int, kp: int) -> int:
    """How far the named neighbour lies from a zone in flat indices."""
    plane, row, column = (letters.index(letter) - 1 for letters, letter in zip(_AXES, name, strict=True))
    return plane * kp + row * jp + column


def set_up(size: int = DEFAULT_SIZE) -> Data:
    domain = Domain.of_size(size, 3)
    length = domain.last_zone + 1
    init = Initialiser()
    data: Data = {"b": init.constant(0.0, length), "x": init.ramp(length)}
    data.update({name: init.ramp(length) for name in STORED})
    init.overwritten()
    zones = domain.zone_list()

    # Each view starts at the first real zone or at that zone's neighbour, so that one index serves them all.
    first, count = int(zones[0]), int(zones[-1] - zones[0]) + 1
    data["zones"] = zones - first
    data["b_real"] = data["b"][first : first + count]
    for name in NAMES:
        offset = offset_of(name, domain.jp, domain.kp)
        data[f"x_{name}"] = data["x"][first + offset : first + offset + count]
        if name in STORED:
            data[f"m_{name}"] = data[name][first : first + count]
        else:
            data[f"m_{name}"] = data[name.translate(_MIRROR)][first + offset : first + offset + count]
    data["size"] = domain.real_zones
    return data


def _views(data: Data) -> tuple:
    return tuple(data[f"{kind}_{name}"] for kind in "xm" for name in NAMES)


def launches(data: Data) -> list[Launch]:
    from numba_offload import Permuted, Region

    from .kernels.matvec_3d_stencil import matvec_3d_stencil

    return [Launch(matvec_3d_stencil, (*_views(data), Region(data["b_real"], Permuted(data["zones"]))))]


def handwritten(data: Data) -> list[HandwrittenCall]:
    arguments = (*_views(data), data["zones"], data["b_real"])
    return [HandwrittenCall("matvec_3d_stencil", data["size"], arguments)]


def reference(data: Data) -> None:
    total = data["b_real"] * 0.0
    for name in NAMES:
        total += data[f"m_{name}"] * data[f"x_{name}"]
    data["b_real"][data["zones"]] = total[data["zones"]]


BENCHMARK = Benchmark(
    name="MATVEC_3D_STENCIL",
    reps=100,
    checksum="409996.67704533503360",
    kernels=("matvec_3d_stencil",),
    outputs=("b",),
    written=("b_real",),
    partition=("zones",),
    set_up=set_up,
    launches=launches,
    handwritten=handwritten,
    reference=reference,
)
