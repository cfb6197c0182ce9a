"""What tests of bundles borrow from others."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
# kept.py: kernels of every kind of argument; fake_cuda.py: a stand-in for NVIDIA's driver.
sys.path += [str(TESTS / "records"), str(TESTS / "targets")]


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """A user's kernels, for the CPU."""
    import field_kernels

    from numba_offload import compile_bundle

    path = tmp_path_factory.mktemp("bundles") / "small.bundle"
    compile_bundle(field_kernels.SIGNATURES, ["cpu"], path)
    return path
