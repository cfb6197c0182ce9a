"""The cache between processes: the second one compiles nothing, many may start at once, errors tell the same lines."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import numba_offload

ROOT = Path(numba_offload.__file__).parents[1]

SCRIPT = """
    import json, sys, warnings
    import numpy as np
    warnings.simplefilter("error")
    import numba_offload
    from numba_offload import Linear1D, PartitioningStrategy, Region, offload_function, offload_kernel

    class Complaint(Exception):
        pass

    class Evens(PartitioningStrategy):
        ndim = 1
        covers = False

        def count(self, t, T, shape):
            return 1 if 2 * t < shape[0] else 0

        def index(self, t, k, T, shape):
            return 2 * t

        def threads(self, shape):
            return (shape[0] + 1) // 2

    WEIGHTS = np.arange(4.0)
    FACTOR = 2.0

    @offload_function
    def checked(value, most):
        if value > most:
            raise Complaint("too large", value)
        turned = (value * 1e-3 + 1j) ** (2.5 + value * 1e-3j)
        return np.sin(value) + value ** 1.5 + FACTOR + turned.real

    @offload_kernel(cache=True)
    def k(x, most, y):
        for i in y.indices():
            y[i] = checked(x[i], most) * WEIGHTS[i % 4]

    before = set(sys.modules)
    from numba_offload.targets.toolchain import Toolchain
    compiled = []
    real = Toolchain.compile_function

    def compile_function(self, py_func, *args):
        compiled.append(py_func.__name__)
        return real(self, py_func, *args)

    Toolchain.compile_function = compile_function
    out = []
    for strategy in (Linear1D(), Evens()):
        y = np.zeros(1000)
        k(np.arange(1000.0), 1e9, Region(y, strategy))
        out.append(y.tolist())
        try:
            k(np.arange(1000.0), 998.5, Region(y[::-1], Linear1D()))
        except Complaint as error:
            out.append([str(error), repr(error.args)])
    new = sorted(m for m in set(sys.modules) - before if m.startswith(("numba.", "llvmlite.")))
    from dataclasses import asdict
    print(json.dumps({"out": out, "compiled": compiled, "new": new, "stats": asdict(k.cache_stats)}))
"""


@pytest.fixture(params=["unified", "discrete"])
def start(request, tmp_path):
    """Start the script, without waiting for it."""
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))

    def run(**more):
        environment = {
            **os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "random",
            "NUMBA_OFFLOAD_TARGET": "cpu", "NUMBA_OFFLOAD_CPU_MEMORY": request.param,
            "NUMBA_OFFLOAD_CACHE_DIR": str(tmp_path / "cache"), **more,
        }  # fmt: skip
        return subprocess.Popen([sys.executable, str(script)], env=environment, stdout=subprocess.PIPE, text=True)

    return run


def told(process):
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    return json.loads(output)


def test_a_second_process_compiles_nothing(start, tmp_path):
    first = told(start())
    second = told(start())
    assert first["compiled"]
    assert first["stats"]["written"] > 0
    assert second["compiled"] == []
    # Only the threading layer, which launches need.
    assert [m for m in second["new"] if not m.startswith("numba.np.ufunc.")] == []
    assert second["out"] == first["out"]
    hits = {"record_hits", "code_hits"}
    assert {name for name, count in second["stats"].items() if count} == hits
    assert second["stats"]["code_hits"] == first["stats"]["code_misses"] == 4
    # What fresh code says has the same lines.
    fresh = told(start(NUMBA_OFFLOAD_CACHE_DIR=str(tmp_path / "other")))
    assert fresh["out"] == first["out"]
    assert "script.py, line 30, in checked" in first["out"][1][0]


def test_eight_processes_at_once(start, tmp_path):
    processes = [start() for _ in range(8)]
    found = [told(process) for process in processes]
    assert all(one["out"] == found[0]["out"] for one in found)
    assert all(one["stats"]["ignored"] == 0 for one in found)
    assert all(path.suffix in (".record", ".code") for path in (tmp_path / "cache").iterdir())
    last = told(start())
    assert last["compiled"] == []
    assert last["out"] == found[0]["out"]
