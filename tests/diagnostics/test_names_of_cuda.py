"""Names of numba.cuda that are not here: what to write instead is said, in kernels and on the host."""

from __future__ import annotations

import re

import numpy as np
import pytest

from numba_offload import LaunchError, SafetyError, cuda, offload_kernel


@offload_kernel(unsafe=True)
def shares(x):
    part = cuda.shared.array(8, np.float64)
    x[cuda.grid(1)] = part[0]


@offload_kernel(unsafe=True)
def waits(x):
    cuda.syncthreads()
    x[cuda.grid(1)] = 1


@offload_kernel(unsafe=True)
def adds(x):
    cuda.atomic.add(x, 0, 1.0)


@offload_kernel(unsafe=True)
def keeps(x):
    own = cuda.local.array(8, np.float64)
    x[cuda.grid(1)] = own[0]


@offload_kernel(unsafe=True)
def misspelt(x):
    x[cuda.gird(1)] = 1


@pytest.mark.parametrize(
    ("kernel", "name", "fix"),
    [
        (shares, "shared", "no shared memory"),
        (waits, "syncthreads", "no shared memory and no barriers yet"),
        (adds, "atomic", r"pass Accumulator\(array, '\+'\)"),
        (keeps, "local", "scalars and tuples"),
        (misspelt, "gird", "correct the spelling"),
    ],
)
def test_in_a_kernel(kernel, name, fix):
    with pytest.raises(SafetyError, match=f"has no '{name}'(.|\n)*Fix: .*{fix}"):
        kernel[1, 8](np.ones(8))


def test_imported_from_numbas_own_package():
    theirs = pytest.importorskip("numba.cuda")
    atomic, syncthreads, laneid = theirs.atomic, theirs.syncthreads, theirs.laneid

    @offload_kernel(unsafe=True)
    def adds_theirs(x):
        atomic.add(x, 0, 1.0)

    @offload_kernel(unsafe=True)
    def waits_for_theirs(x):
        syncthreads()
        x[0] = 1.0

    @offload_kernel(unsafe=True)
    def shares_through_the_module(x):
        x[0] = theirs.shared.array(8, np.float64)[0]

    @offload_kernel(unsafe=True)
    def asks_for_its_lane(x):
        x[0] = laneid

    for kernel, message in (
        (adds_theirs, r"atomic(.|\n)*Accumulator"),
        (waits_for_theirs, r"syncthreads(.|\n)*no barriers yet"),
        (shares_through_the_module, r"shared(.|\n)*no shared memory"),
        (asks_for_its_lane, "laneid"),
    ):
        with pytest.raises(SafetyError, match=message):
            kernel[1, 8](np.ones(8))


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("jit", "@offload_kernel"),
        ("to_device", "move by themselves"),
        ("device_array_like", "preload"),
        ("synchronize", r"numba_offload\.synchronize\(\)"),
        ("is_available", "available_targets"),
        ("warpsize", "blockDim"),
    ],
)
def test_on_the_host(name, fix):
    with pytest.raises(AttributeError, match=f"'numba_offload.cuda' has no attribute '{name}'.*{fix}"):
        getattr(cuda, name)
    assert not hasattr(cuda, name)


def test_the_size_of_shared_memory_in_a_configuration():
    said = "kernel waits[...] takes [blocks, threads] or [blocks, threads, stream], got (1, 8, 0, 64); leave the size of shared"
    with pytest.raises(LaunchError, match=re.escape(said)):
        waits[1, 8, 0, 64]
