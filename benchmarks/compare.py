"""Safe kernels next to hand-written ones, timed in turn in one process: ``python -m benchmarks.compare``.

On the CPU the time is that of the whole call. On CUDA it is kernel time on arrays that stay on the device.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table

from numba_offload import synchronize, use_target

from .problems import CPU_PROBLEMS, Problem, unchecked
from .rajaperf.benchmark import DEFAULT_SIZE, Benchmark, Data, Launch
from .rajaperf.registry import select
from .timing import STATISTICS, CudaTimer, DeviceTime, Step, interleaved

BARS = {"unchecked": 1.10, "checked": 1.25}
"""How much of the hand-written kernel's time a safe one may take, without and with bounds checks."""

VARIANTS = ("by hand", *BARS)


@dataclass(frozen=True)
class Row:
    """One kernel's times by variant."""

    name: str
    times: dict[str, DeviceTime]

    def ratio(self, variant: str) -> float:
        return self.times[variant].seconds / self.times["by hand"].seconds

    def within(self, variant: str) -> bool:
        return self.ratio(variant) <= BARS[variant]


def _in_order(launches: Sequence[Launch]) -> Step:
    if len(launches) == 1:
        return launches[0]

    def step() -> None:
        for launch in launches:
            launch()

    return step


def _variants(problem: Problem, data: Data) -> dict[str, Step]:
    checked = problem.offload(data)
    return {
        "by hand": _in_order(problem.handwritten(data)),
        "unchecked": _in_order([unchecked(launch) for launch in checked]),
        "checked": _in_order(checked),
    }


def _require_equal(name: str, variant: str, actual: np.ndarray, expected: np.ndarray) -> None:
    # Not bitwise: compilers may contract and vectorise each variant in their own way.
    tolerance = 1e-5 if expected.dtype == np.float32 else 1e-11
    if not np.allclose(actual, expected, rtol=tolerance, atol=tolerance * np.abs(expected).max()):
        raise AssertionError(f"{name}: the result of the variant {variant!r} differs from that of 'by hand'")


def compare_cpu(only: str, rounds: int, statistic: str) -> Iterator[Row]:
    """Time each problem whose name begins with ``only``."""
    for problem in CPU_PROBLEMS:
        if not problem.name.lower().startswith(only.lower()):
            continue
        with use_target("cpu"):
            results = {}
            for variant in VARIANTS:
                data = problem.set_up()
                _variants(problem, data)[variant]()
                results[variant] = [data[name] for name in problem.outputs]
            for variant in BARS:
                for actual, expected in zip(results[variant], results["by hand"], strict=True):
                    _require_equal(problem.name, variant, actual, expected)
            times = interleaved(_variants(problem, problem.set_up()), rounds, statistic)
        yield Row(problem.name, {name: DeviceTime(seconds, False) for name, seconds in times.items()})


def _cuda_launches(benchmark: Benchmark, device: Data, host: Data, variant: str) -> list[Launch]:
    from .rajaperf import handwritten_cuda

    if variant == "by hand":
        return handwritten_cuda.launches(benchmark, device)
    launches = benchmark.launches({**device, **{name: host[name] for name in benchmark.partition}})
    return launches if variant == "checked" else [unchecked(launch) for launch in launches]


def compare_cuda(only: str, rounds: int, statistic: str, size: int) -> Iterator[Row]:
    """Time each kernel of the benchmarks whose name begins with ``only`` on device arrays."""
    from .rajaperf import device_arrays

    timer = CudaTimer()
    for benchmark in select(only):
        with use_target("cuda"):
            results = {}
            for variant in VARIANTS:
                data = benchmark.set_up(size)
                device = device_arrays.to_device(data)
                _in_order(_cuda_launches(benchmark, device, data, variant))()
                synchronize()
                device_arrays.to_host(device, data)
                results[variant] = [data[name] for name in benchmark.outputs]
            for variant in BARS:
                for actual, expected in zip(results[variant], results["by hand"], strict=True):
                    _require_equal(benchmark.name, variant, actual, expected)

            launches = {name: _cuda_launches(benchmark, device, data, name) for name in VARIANTS}
            for position, kernel in enumerate(benchmark.kernels):
                steps = {name: launches[name][position] for name in VARIANTS}
                name = benchmark.name if len(benchmark.kernels) == 1 else kernel
                yield Row(name, timer.interleaved(steps, rounds, statistic))


def table(title: str, unit: str, scale: float, rows: Sequence[Row]) -> Table:
    made = Table(title=title)
    made.add_column("kernel", no_wrap=True)
    made.add_column(f"by hand, {unit}", justify="right")
    for variant, bar in BARS.items():
        made.add_column(f"{variant}, {unit}", justify="right")
        made.add_column(f"ratio (<= {bar:.2f})", justify="right")
    for row in rows:
        cells = [row.name, _cell(row.times["by hand"], scale)]
        for variant in BARS:
            colour = "green" if row.within(variant) else "red"
            cells += [_cell(row.times[variant], scale), f"[{colour}]{row.ratio(variant):.3f}[/]"]
        made.add_row(*cells)
    if any(time.host_bound for row in rows for time in row.times.values()):
        made.caption = "* the host launched more slowly than the device ran: launch costs are in this time"
    return made


def _cell(time: DeviceTime, scale: float) -> str:
    return f"{time.seconds * scale:.3f}" + ("*" if time.host_bound else "")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__)
    parser.add_argument("--target", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--only", metavar="NAME", default="", help="only what begins with NAME")
    parser.add_argument("--rounds", type=int, default=51, help="samples of each variant (default: 51)")
    parser.add_argument("--statistic", choices=STATISTICS, default="median", help="of the samples")
    parser.add_argument("--size", type=int, default=DEFAULT_SIZE, help="CUDA: elements (default: 1000000)")
    parser.add_argument("--strict", action="store_true", help="exit status 1 if a ratio is over its bar")
    options = parser.parse_args(arguments)

    console = Console()
    with console.status("measuring ..."):
        if options.target == "cpu":
            rows = list(compare_cpu(options.only, options.rounds, options.statistic))
            made = table("Calls on the CPU", "ms", 1e3, rows)
        else:
            rows = list(compare_cuda(options.only, options.rounds, options.statistic, options.size))
            made = table("Kernels on CUDA", "us", 1e6, rows)
    (console if console.is_terminal else Console(width=120)).print(made)
    missed = any(not row.within(variant) for row in rows for variant in BARS)
    return 1 if options.strict and missed else 0


if __name__ == "__main__":
    sys.exit(main())
