"""A bundle made in one process runs in another, where the kernels' file is gone and nothing is typed or compiled."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import numba_offload

ROOT = Path(numba_offload.__file__).parents[1]
KERNELS = Path(__file__).with_name("field_kernels.py")

MAKE = """
import sys
from field_kernels import SIGNATURES
from numba_offload import compile_bundle
compile_bundle(SIGNATURES, ["cpu"], sys.argv[1])
"""

# Where nothing is to be compiled, neither compilers nor code generators are made.
NOTHING_COMPILES = """
import numba.core.compiler
from numba_offload.targets.toolchain import Toolchain

def refuse(*args, **kwargs):
    raise AssertionError("something is compiled")

Toolchain.__init__ = Toolchain.compile_function = refuse
numba.core.compiler.compile_extra = numba.core.compiler.CompilerBase.__init__ = refuse
"""

USE = (
    """
import math
import sys
from collections import namedtuple
import numpy as np
"""
    + NOTHING_COMPILES
    + """
from numba_offload import Chunked1D, GridStride1D, OffloadError, Region, load_bundle, profile

bundle = load_bundle(sys.argv[1])
assert sorted(bundle) == ["curved", "picky", "saxpy", "shifted", "weigh"]

x, y = np.arange(10_000.0), np.ones(10_000)
with profile() as counted:
    bundle.saxpy(2.0, x, Region(y))
assert (y == 2 * x + 1).all()
assert counted.launches == 1 and counted.h2d_bytes == (160_000 if sys.argv[2] == "discrete" else 0)
bundle["saxpy"][40, 256](np.float64(2.0), y=Region(y), x=x)
assert (y == 4 * x + 1).all()
for _ in range(3):
    bundle.saxpy(0.0, x, Region(y))
assert (y == 4 * x + 1).all()

small = np.ones(30, "f4")
bundle.saxpy(np.float32(2), small[::3], Region(small[1::3], GridStride1D()))
assert small.tolist() == [1, 3, 1] * 10
bundle.saxpy(np.float32(2), np.ones(30, "f4"), Region(small, GridStride1D()))
assert small.tolist() == [3, 5, 3] * 10

# The class of a named tuple is looked for by module and name.
import types
module = types.ModuleType("field_kernels")
Pair = namedtuple("Pair", "scale rows", module="field_kernels")
rows = np.zeros(100, [("id", "i4"), ("mass", "f8"), ("ok", "?")])
rows["mass"], rows["ok"] = np.arange(100), np.arange(100) % 2
y = np.zeros(100)
call = ((Pair(0.5, rows), (10, None)), Region(y))
bundle.weigh(*call)
assert (y == np.where(rows["ok"], 1.5 * np.arange(100) + 11, 0)).all()
bundle.weigh(*call, shift=0)
assert (y == np.where(rows["ok"], 1.5 * np.arange(100) + 10, 0)).all()
assert bundle.weigh.mappings(*call)["pairs[0].rows"] == "to"
assert "field_kernels.py" in bundle.weigh.explain(*call)

x, y = np.linspace(0.1, 2, 50), np.zeros(50)
bundle.curved(x, Region(y))
expected = [math.erf(v) + v**2.5 + math.gamma(v + 1) + math.atan2(v, 0.3) + abs((v + 1j) ** 1.5) for v in x]
np.testing.assert_allclose(y, expected, rtol=1e-13)

y = np.zeros(100)
bundle.shifted(np.arange(105.0), 5, Region(y))
assert (y == np.arange(5, 105)).all()
try:
    bundle.shifted(np.arange(100.0), 5, Region(np.zeros(100)))
except IndexError as error:
    assert "index 100 is out of bounds for axis 0 with size 100 of x [kernel shifted" in str(error), error
else:
    raise AssertionError("no error")
try:
    bundle.picky(1.0, Region(np.array([0.0, 7.5])))
except OffloadError as error:
    assert "Complaint('too large', 7.5) was raised" in str(error), error
else:
    raise AssertionError("no error")
print("done")
"""
)


def run(code: str, *args: object, **environment: str) -> str:
    env = {**os.environ, "NUMBA_OFFLOAD_TARGET": "cpu", "PYTHONDONTWRITEBYTECODE": "1", **environment}
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, args)], env=env, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A bundle whose kernels' file is gone."""
    folder = tmp_path_factory.mktemp("made")
    source = folder / "source"
    source.mkdir()
    shutil.copy(KERNELS, source)
    run(MAKE, folder / "kernels.bundle", PYTHONPATH=f"{ROOT}{os.pathsep}{source}")
    shutil.rmtree(source)
    return folder / "kernels.bundle"


@pytest.mark.parametrize("memory", ["unified", "discrete"])
def test_a_bundle_runs_without_source_and_compiler(made, memory):
    assert run(USE, made, memory, PYTHONPATH=str(ROOT), NUMBA_OFFLOAD_CPU_MEMORY=memory) == "done\n"


def test_the_command_makes_the_same_bundles(tmp_path):
    shutil.copy(KERNELS, tmp_path)
    command = [sys.executable, "-m", "numba_offload", "compile", "field_kernels.py:weigh", "-o", "weigh.bundle"]
    command += ["--signature", "(Pair(f8, ROW[::1]), (i8, None)), Region(f8[::1])", "--targets", "cpu"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "weigh" in done.stdout and "safe" in done.stdout and "facts settled" in done.stdout
    (tmp_path / "field_kernels.py").unlink()
    code = f"{NOTHING_COMPILES}\nimport sys\nfrom numba_offload import load_bundle\nprint(*load_bundle(sys.argv[1]))"
    assert run(code, tmp_path / "weigh.bundle", PYTHONPATH=str(ROOT)) == "weigh\n"
