"""The benchmarks by name."""

from __future__ import annotations

from . import del_dot_vec_2d, energy, fir, ltimes, matvec_3d_stencil, pressure, vol3d
from .benchmark import Benchmark


def benchmarks(directions: tuple[int, ...] = (6, 64)) -> tuple[Benchmark, ...]:
    """All seven in the suite's order, LTIMES once for each number of directions."""
    return (
        del_dot_vec_2d.BENCHMARK,
        energy.BENCHMARK,
        fir.BENCHMARK,
        *(ltimes.benchmark(number) for number in directions),
        matvec_3d_stencil.BENCHMARK,
        pressure.BENCHMARK,
        vol3d.BENCHMARK,
    )


def select(name: str, directions: tuple[int, ...] = (6, 64)) -> tuple[Benchmark, ...]:
    """Those whose name begins with ``name`` in any case. Raises ``ValueError`` if there is none."""
    chosen = tuple(b for b in benchmarks(directions) if b.name.lower().startswith(name.lower()))
    if not chosen:
        names = ", ".join(b.name for b in benchmarks(directions))
        raise ValueError(f"no benchmark is called {name!r}; there are {names}")
    return chosen
