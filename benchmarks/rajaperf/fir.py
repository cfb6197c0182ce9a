"""FIR: a filter of 16 taps."""

from __future__ import annotations

import numpy as np

from .benchmark import DEFAULT_SIZE, Benchmark, Data, HandwrittenCall, Launch
from .initialise import Initialiser

TAPS = 16


def set_up(size: int = DEFAULT_SIZE) -> Data:
    init = Initialiser()
    return {
        "signal": init.random(size + TAPS - 1),
        "out": init.constant(0.0, size),
        "taps": np.where(np.arange(TAPS) % 5 == 0, 3.0, -1.0),
        "size": size,
    }


def launches(data: Data) -> list[Launch]:
    from numba_offload import Region

    from .kernels.fir import fir

    return [Launch(fir, (data["signal"], data["taps"], Region(data["out"])))]


def handwritten(data: Data) -> list[HandwrittenCall]:
    return [HandwrittenCall("fir", data["size"], (data["signal"], data["taps"], data["out"]))]


def reference(data: Data) -> None:
    out = data["out"]
    out[:] = 0.0
    for j, tap in enumerate(data["taps"]):
        out += tap * data["signal"][j : j + out.size]


BENCHMARK = Benchmark(
    name="FIR",
    reps=160,
    checksum="1606185.9025064281462",
    kernels=("fir",),
    outputs=("out",),
    written=("out",),
    set_up=set_up,
    launches=launches,
    handwritten=handwritten,
    reference=reference,
)
