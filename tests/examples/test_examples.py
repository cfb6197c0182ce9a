"""Every example runs as its reader would run it, checks itself against NumPy, and writes what it says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"

OUTPUTS = {
    "saxpy": "table.txt",
    "heat": "heat.png",
    "mandelbrot": "mandelbrot.png",
    "batched_matmul": "products.npy",
    "image_filter": "edges.png",
    "own_strategy": "packed.npy",
    "profiled_heat": "timeline.png",
    "transfers": "tables.txt",
}


def environment(**settings: str) -> dict[str, str]:
    """This process's environment, with the source tree importable from anywhere."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "MPLBACKEND": "Agg", **settings}


def test_every_example_is_tested() -> None:
    assert set(OUTPUTS) == {path.stem for path in EXAMPLES.glob("*.py")}


@pytest.mark.parametrize("name", OUTPUTS)
def test_example_agrees_with_numpy_and_writes_its_output(name: str, tmp_path: Path) -> None:
    output = tmp_path / OUTPUTS[name]
    # The discrete memory model: a missing copy would show.
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py"), "--output", str(output)],
        cwd=tmp_path,
        env=environment(NUMBA_OFFLOAD_CPU_MEMORY="discrete"),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "agree" in done.stdout
    data = output.read_bytes()
    assert len(data) > 100
    if output.suffix == ".png":
        assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert [path.name for path in tmp_path.iterdir()] == [output.name]
