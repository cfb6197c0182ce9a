"""Every example's kernels become code objects for AMD GPUs."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest
from emulation.compiled_for_amd import compiled_for_amd, why_not
from test_examples import OUTPUTS

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
@pytest.mark.parametrize("name", OUTPUTS)
def test_an_examples_kernels_compile_for_every_architecture(name, tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_OFFLOAD_TARGET", "cpu")
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.setattr(sys, "argv", [name, "--output", str(tmp_path / OUTPUTS[name])])
    with compiled_for_amd(monkeypatch) as names:
        try:
            runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
        except SystemExit as ended:
            assert not ended.code
    assert names
