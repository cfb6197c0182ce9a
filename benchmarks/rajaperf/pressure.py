"""PRESSURE: an equation of state in two element-wise kernels."""

from __future__ import annotations

import numpy as np

from .benchmark import DEFAULT_SIZE, Benchmark, Data, HandwrittenCall, Launch
from .initialise import Initialiser


def set_up(size: int = DEFAULT_SIZE) -> Data:
    init = Initialiser()
    data: Data = {
        "compression": init.ramp(size),
        "bvc": init.ramp(size),
        "p_new": init.constant(0.0, size),
        "e_old": init.ramp(size),
        "vnewc": init.ramp(size),
    }
    data.update({name: init.scalar() for name in ("cls", "p_cut", "pmin", "eosvmax")})
    data["size"] = size
    return data


def every_branch_data(size: int, seed: int = 0) -> Data:
    """Data on which every branch is taken by some element; the suite's own takes one way through."""
    random = np.random.default_rng(seed)
    data = set_up(size)
    data["compression"][:] = random.uniform(-1.0, 1.0, size)
    data["e_old"][:] = random.uniform(-4.0, 4.0, size)
    data["vnewc"][:] = random.uniform(0.0, 1.0, size)
    # A negative floor keeps apart the values that were cut to zero and those raised to the floor.
    data.update({"cls": 0.5, "p_cut": 0.25, "pmin": -1.0, "eosvmax": 0.75})
    return data


ARGUMENTS = {
    "pressure_1": ("compression", "cls", "bvc"),
    "pressure_2": ("bvc", "e_old", "vnewc", "p_cut", "eosvmax", "pmin", "p_new"),
}
"""Each kernel's arguments, the written array last."""


def launches(data: Data) -> list[Launch]:
    from numba_offload import Region

    from .kernels import pressure

    calls = []
    for kernel, (*inputs, output) in ARGUMENTS.items():
        arguments = (*(data[name] for name in inputs), Region(data[output]))
        calls.append(Launch(getattr(pressure, kernel), arguments))
    return calls


def handwritten(data: Data) -> list[HandwrittenCall]:
    return [
        HandwrittenCall(kernel, data["size"], tuple(data[name] for name in names))
        for kernel, names in ARGUMENTS.items()
    ]


def reference(data: Data) -> None:
    data["bvc"][:] = data["cls"] * (data["compression"] + 1.0)
    p = data["bvc"] * data["e_old"]
    p[np.abs(p) < data["p_cut"]] = 0.0
    p[data["vnewc"] >= data["eosvmax"]] = 0.0
    np.maximum(p, data["pmin"], out=data["p_new"])


BENCHMARK = Benchmark(
    name="PRESSURE",
    reps=700,
    checksum="97909.139016534247133",
    kernels=tuple(ARGUMENTS),
    outputs=("p_new",),
    written=("bvc", "p_new"),
    set_up=set_up,
    launches=launches,
    handwritten=handwritten,
    reference=reference,
)
