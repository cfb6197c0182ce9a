"""How long compiling takes, and how long a new process takes to its first launch: ``python -m benchmarks.startup``.

Every measurement is made in a process of its own, because compilers keep what they have made. Those that are compared take
turns, so that a busy machine hits them alike.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[1]
SIZE = 2_000
DEFAULT_TARGETS = "cpu,sm_90,sm_80,gfx90a,gfx942"
MODES = ("imports only", "no cache", "cache=True, warm", "bundle")
STARTED = ("FIR", "VOL3D")
"""The benchmarks whose first launch is timed: a small kernel and a large one."""

# ------------------------------------------------------------------------------------------------------ in the processes


def _launches(only: str = "") -> Iterator[Any]:
    """A call of each of the thirteen kernels."""
    from .rajaperf.registry import select

    for benchmark in select(only, (6,)):
        yield from benchmark.launches(benchmark.set_up(SIZE))


def _seconds(step: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = step()
    return time.perf_counter() - start, result


def compile_all(targets: Sequence[str]) -> dict[str, dict[str, float]]:
    """Seconds of each kernel's host pass, and of its device pass for each target, once the compilers are set up."""
    from numba_offload.specialisation import build
    from numba_offload.targets.ahead import code_target

    chosen = [code_target(name) for name in targets]
    found: dict[str, dict[str, float]] = {}

    def passes(launch: Any) -> dict[str, float]:
        host, (_, specialisation) = _seconds(lambda: launch.kernel._prepare(launch.arguments, {}))
        facts = specialisation.record.facts
        device = {t.name: _seconds(lambda t=t: build(t, specialisation.source, facts))[0] for t in chosen}
        return {"host pass": host, **device}

    import numpy as np

    from numba_offload import Region

    from .problems import saxpy
    from .rajaperf.benchmark import Launch

    found["(the first kernel of a process)"] = passes(Launch(saxpy, (2.0, np.ones(9), Region(np.ones(9)))))
    for launch in _launches():
        found[launch.kernel.__name__] = passes(launch)
    return found


def first_launch(mode: str, name: str, bundle: str) -> dict[str, float | None]:
    """Seconds from the imports to the end of the first launch; None where there is no such mode."""
    import numba_offload

    from .rajaperf import registry  # noqa: F401 - counts as an import

    if mode == "imports only":
        return {"seconds": 0.0}
    launch = next(_launches(name))
    kernel = launch.kernel
    if mode == "cache=True, warm":
        kernel = numba_offload.offload_kernel(cache=True)(kernel.py_func)
        if not hasattr(kernel, "cache_stats"):
            return {"seconds": None}

    def run() -> None:
        (numba_offload.load_bundle(bundle)[kernel.__name__] if mode == "bundle" else kernel)(*launch.arguments)

    return {"seconds": _seconds(run)[0]}


# ---------------------------------------------------------------------------------------------------------- their parent


def _child(*arguments: str, **environment: str) -> tuple[float, Any]:
    """The wall seconds until a process has answered, and its answer."""
    command = [sys.executable, "-m", "benchmarks.startup", "--child", *arguments]
    env = {**os.environ, "NUMBA_OFFLOAD_TARGET": "cpu", **environment}
    start = time.perf_counter()
    with subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        seconds = time.perf_counter() - start
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed")
    return seconds, json.loads(line)


def _usable(names: Sequence[str], console: Console) -> list[str]:
    """The targets that can be compiled for here."""
    from numba_offload import TargetError
    from numba_offload.bundle.compiling import make_bundle

    from .problems import saxpy

    usable = []
    for name in names:
        try:
            make_bundle([(saxpy, "f8, f8[::1], Region(f8[::1])")], [name])
            usable.append(name)
        except TargetError as error:
            console.print(f"left out: {error}", markup=False)
    return usable


def compile_times(targets: Sequence[str], runs: int) -> Table:
    """A table of the medians of ``runs`` processes."""
    samples = [_child("compile", *targets)[1] for _ in range(runs)]
    table = Table(
        title=f"Compile time, ms: medians of {runs} processes",
        caption="sm_NN: with NVIDIA's assembler, where it is found. A vendor's second architecture takes over what Numba "
        "lowered for the first",
    )
    table.add_column("kernel", no_wrap=True)
    columns = ["host pass", *targets]
    for column in columns:
        table.add_column(column, justify="right")
    totals = dict.fromkeys(columns, 0.0)
    for number, kernel in enumerate(samples[0]):
        medians = {c: statistics.median(sample[kernel][c] for sample in samples) for c in columns}
        table.add_row(kernel, *(f"{medians[c] * 1e3:.1f}" for c in columns), end_section=number == 0)
        if number:
            totals = {c: totals[c] + medians[c] for c in columns}
    table.add_section()
    table.add_row(f"all {len(samples[0]) - 1}", *(f"{totals[c] * 1e3:.1f}" for c in columns))
    return table


def start_times(runs: int) -> Table:
    """A table of the medians of ``runs`` processes for each mode, which take turns."""
    from numba_offload import compile_bundle

    table = Table(title=f"A new process's first launch on the CPU: medians of {runs} processes")
    table.add_column("kernel")
    table.add_column("", no_wrap=True)
    for column in ("to first result, ms", "ratio", "after imports, ms", "ratio after imports"):
        table.add_column(column, justify="right")
    with tempfile.TemporaryDirectory() as folder:
        bundle = os.path.join(folder, "kernels.bundle")
        first = {name: next(_launches(name)) for name in STARTED}
        compile_bundle([(launch.kernel, launch.arguments) for launch in first.values()], ["cpu"], bundle)
        for name, launch in first.items():
            samples: dict[str, list[tuple[float, float]]] = {mode: [] for mode in MODES}
            for turn in range(runs + 1):  # the first fills caches, the machine's too
                for mode in MODES:
                    wall, answer = _child("start", mode, name, bundle, NUMBA_OFFLOAD_CACHE_DIR=folder)
                    if turn and answer["seconds"] is not None:
                        samples[mode].append((wall, answer["seconds"]))
            medians = {m: tuple(map(statistics.median, zip(*s, strict=True))) for m, s in samples.items() if s}
            least, work = medians["bundle"]
            for mode, (wall, after) in medians.items():
                cells = (f"{wall * 1e3:.0f}", f"{wall / least:.2f}", f"{after * 1e3:.1f}", f"{after / work:.1f}")
                table.add_row(launch.kernel.__name__, mode, *cells[: 4 if after else 2])
            table.add_section()
    return table


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.startup", description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="processes for each measurement (default: 5)")
    parser.add_argument("--targets", default=DEFAULT_TARGETS, help=f"to compile for (default: {DEFAULT_TARGETS})")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        what, *rest = options.child
        print(json.dumps(compile_all(rest) if what == "compile" else first_launch(*rest)), flush=True)
        return 0
    console = Console()
    with console.status("measuring ..."):
        targets = _usable([name.strip() for name in options.targets.split(",")], console)
        tables = [compile_times(targets, options.runs), start_times(options.runs)]
    for table in tables:
        (console if console.is_terminal else Console(width=130)).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
