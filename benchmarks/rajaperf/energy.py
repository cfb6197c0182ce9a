"""ENERGY: an internal energy update in six element-wise kernels."""

from __future__ import annotations

import numpy as np

from .benchmark import DEFAULT_SIZE, Benchmark, Data, HandwrittenCall, Launch
from .initialise import Initialiser

RAMPS_BEFORE_Q_NEW = ("e_old", "delvc", "p_new", "p_old")
RAMPS_AFTER_Q_NEW = (
    "q_old",
    "work",
    "comp_half_step",
    "p_half_step",
    "bvc",
    "pbvc",
    "ql_old",
    "qq_old",
    "vnewc",
)
SCALARS = ("rho0", "e_cut", "emin", "q_cut")


def set_up(size: int = DEFAULT_SIZE) -> Data:
    init = Initialiser()
    data: Data = {"e_new": init.constant(0.0, size)}
    data.update({name: init.ramp(size) for name in RAMPS_BEFORE_Q_NEW})
    data["q_new"] = init.constant(0.0, size)
    data.update({name: init.ramp(size) for name in RAMPS_AFTER_Q_NEW})
    data.update({name: init.scalar() for name in SCALARS})
    data["size"] = size
    return data


def every_branch_data(size: int, seed: int = 0) -> Data:
    """Data on which every branch is taken by some element; the suite's own ``delvc`` is always positive."""
    random = np.random.default_rng(seed)
    data = set_up(size)
    for name in (*RAMPS_BEFORE_Q_NEW, *RAMPS_AFTER_Q_NEW):
        data[name][:] = random.uniform(-2.0, 2.0, size)
    data["comp_half_step"][:] = random.uniform(0.0, 1.0, size)
    data["delvc"][::7] = 0.0
    # A negative floor keeps apart the values that were cut to zero and those raised to the floor.
    data.update({"rho0": 0.5, "e_cut": 0.25, "emin": -1.0, "q_cut": 0.5})
    return data


ARGUMENTS = {
    "energy_1": ("delvc", "e_old", "p_old", "q_old", "work", "e_new"),
    "energy_2": (
        *("bvc", "comp_half_step", "delvc", "e_new", "p_half_step", "pbvc", "ql_old", "qq_old"),
        *("rho0", "q_new"),
    ),
    "energy_3": ("delvc", "p_half_step", "p_old", "q_new", "q_old", "e_new"),
    "energy_4": ("work", "e_cut", "emin", "e_new"),
    "energy_5": (
        *("bvc", "delvc", "p_half_step", "p_new", "p_old", "pbvc", "q_new", "q_old", "ql_old", "qq_old"),
        *("vnewc", "rho0", "e_cut", "emin", "e_new"),
    ),
    "energy_6": (
        *("bvc", "delvc", "e_new", "p_new", "pbvc", "ql_old", "qq_old", "vnewc"),
        *("rho0", "q_cut", "q_new"),
    ),
}
"""Each kernel's arguments, the written array last."""


def launches(data: Data) -> list[Launch]:
    from numba_offload import Region

    from .kernels import energy

    calls = []
    for kernel, (*inputs, output) in ARGUMENTS.items():
        arguments = (*(data[name] for name in inputs), Region(data[output]))
        calls.append(Launch(getattr(energy, kernel), arguments))
    return calls


def handwritten(data: Data) -> list[HandwrittenCall]:
    return [
        HandwrittenCall(kernel, data["size"], tuple(data[name] for name in names))
        for kernel, names in ARGUMENTS.items()
    ]


def reference(data: Data) -> None:
    d = data
    e_new, q_new, delvc = d["e_new"], d["q_new"], d["delvc"]
    compressing = delvc <= 0.0
    pressure_old = d["p_old"] + d["q_old"]

    def viscosity(volume: np.ndarray, pressure: np.ndarray) -> np.ndarray:
        t = (d["pbvc"] * e_new + volume**2 * d["bvc"] * pressure) / d["rho0"]
        sound_speed = np.where(t <= 0.1111111e-36, 0.3333333e-18, np.sqrt(np.maximum(t, 0.0)))
        return sound_speed * d["ql_old"] + d["qq_old"]

    def clip(energy: np.ndarray) -> np.ndarray:
        return np.maximum(np.where(np.abs(energy) < d["e_cut"], 0.0, energy), d["emin"])

    e_new[:] = d["e_old"] - 0.5 * delvc * pressure_old + 0.5 * d["work"]
    q_new[:] = np.where(compressing, viscosity(1.0 / (1.0 + d["comp_half_step"]), d["p_half_step"]), 0.0)
    e_new += 0.5 * delvc * (3.0 * pressure_old - 4.0 * (d["p_half_step"] + q_new))
    e_new[:] = clip(e_new + 0.5 * d["work"])
    q_tilde = np.where(compressing, viscosity(d["vnewc"], d["p_new"]), 0.0)
    balance = 7.0 * pressure_old - 8.0 * (d["p_half_step"] + q_new) + (d["p_new"] + q_tilde)
    e_new[:] = clip(e_new - balance * delvc / 6.0)
    q_last = viscosity(d["vnewc"], d["p_new"])
    q_last[np.abs(q_last) < d["q_cut"]] = 0.0
    np.copyto(q_new, q_last, where=compressing)


BENCHMARK = Benchmark(
    name="ENERGY",
    reps=130,
    checksum="97909.139016534247133",
    kernels=tuple(ARGUMENTS),
    outputs=("e_new", "q_new"),
    written=("e_new", "q_new"),
    set_up=set_up,
    launches=launches,
    handwritten=handwritten,
    reference=reference,
)
