"""DEL_DOT_VEC_2D: the divergence of a velocity field on the nodes of a 2-D mesh, for each real zone."""

from __future__ import annotations

import numpy as np

from .benchmark import DEFAULT_SIZE, Benchmark, Data, HandwrittenCall, Launch
from .initialise import Domain, Initialiser


def set_up(size: int = DEFAULT_SIZE) -> Data:
    domain = Domain.of_size(size, 2)
    init = Initialiser()
    for _ in ("x", "y", "zones"):
        init.overwritten()
    x, y = domain.positions(0.2, 0.1)
    return {
        "x": x,
        "y": y,
        "zones": domain.zone_list(),
        "xdot": init.ramp(domain.all_nodes),
        "ydot": init.ramp(domain.all_nodes),
        "div": init.constant(0.0, domain.all_nodes),
        "jp": domain.jp,
        "size": domain.real_zones,
    }


def launches(data: Data) -> list[Launch]:
    from numba_offload import Permuted, Region

    from .kernels.del_dot_vec_2d import del_dot_vec_2d

    # The strategy checks that no zone is listed twice: that makes the write div[zone] free of races.
    div = Region(data["div"], Permuted(data["zones"]))
    return [Launch(del_dot_vec_2d, (data["x"], data["y"], data["xdot"], data["ydot"], data["jp"], div))]


def handwritten(data: Data) -> list[HandwrittenCall]:
    names = ("x", "y", "xdot", "ydot", "jp", "zones", "div")
    return [HandwrittenCall("del_dot_vec_2d", data["size"], tuple(data[name] for name in names))]


def reference(data: Data) -> None:
    zones, jp = data["zones"], data["jp"]
    # Slices over the whole span cost far less than gathering; ghost zones between are left out at the end.
    first, count = int(zones[0]), int(zones[-1] - zones[0]) + 1
    corners = [slice(first + k, first + k + count) for k in (1, 1 + jp, jp, 0)]

    def a(node: list[np.ndarray]) -> np.ndarray:
        return 0.5 * (node[0] + node[1] - node[2] - node[3])

    def b(node: list[np.ndarray]) -> np.ndarray:
        return 0.5 * (node[1] + node[2] - node[3] - node[0])

    x, y, xdot, ydot = ([data[name][corner] for corner in corners] for name in ("x", "y", "xdot", "ydot"))
    ax, bx, ay, by = a(x), b(x), a(y), b(y)
    r = 1.0 / (ax * by - bx * ay + 1e-20)
    dfxdx = r * (a(xdot) * by - b(xdot) * ay)
    dfydy = r * (b(ydot) * ax - a(ydot) * bx)
    div = dfxdx + dfydy + sum(ydot) / sum(y)
    data["div"][zones] = div[zones - first]


BENCHMARK = Benchmark(
    name="DEL_DOT_VEC_2D",
    reps=100,
    checksum="12406.856982094239485",
    kernels=("del_dot_vec_2d",),
    outputs=("div",),
    written=("div",),
    partition=("zones",),
    set_up=set_up,
    launches=launches,
    handwritten=handwritten,
    reference=reference,
)
