"""Staged arrays on an NVIDIA GPU: streams other than the default one, and failures of other launches."""

from __future__ import annotations

import numpy as np
import pytest

from numba_offload import Region, offload_kernel, preload, preload_mut, profile, use_target
from numba_offload.targets.registry import target_state, why_unavailable

pytestmark = pytest.mark.cuda

N = 1_000_003


@pytest.fixture(scope="module", autouse=True)
def cuda():
    """The CUDA target, for every test here."""
    why = why_unavailable("cuda")
    if why is not None:
        pytest.skip(why)
    with use_target("cuda"):
        yield target_state("cuda").target


@offload_kernel
def add(x, y):
    for i in y.indices():
        y[i] += x[i]


def new_stream():
    """A non-blocking stream's handle."""
    driver = target_state("cuda").target._driver
    with driver.current():
        return int(driver.call("creating a stream", driver.api.cuStreamCreate, 1))


@pytest.mark.parametrize("count", [100, N])
def test_launches_on_other_streams_see_the_preload_and_are_in_the_copy_back(count):
    streams = [new_stream() for _ in range(3)]
    blocks = -(-count // 256)
    for _ in range(20):
        x, y = np.arange(float(count)), np.zeros(count)
        with profile() as p, preload(x) as gx, preload_mut(y) as gy:
            for stream in streams:
                add[blocks, 256, stream](gx, Region(gy))
        assert (p.h2d_count, p.d2h_count, p.launches) == (2, 1, 3)
        np.testing.assert_array_equal(y, 3 * x)


@offload_kernel
def gather(index, x, y):
    for i in y.indices():
        y[i] += x[index[i]]


def test_managed_launches_that_repeat():
    """Large ones, whose results are on their way before the kernel has been waited for."""
    index, x, y = np.arange(N), np.arange(float(N)), np.zeros(N)
    other = [index[::-1].copy(), x + 1, np.zeros(N)]
    for times in range(1, 11):
        gather(index, x, Region(y))
        gather(other[0], other[1], Region(other[2]))
        np.testing.assert_array_equal(y, times * x)
        np.testing.assert_array_equal(other[2], times * other[1][::-1])
    index[N // 2] = N
    for _ in range(2):
        with pytest.raises(IndexError, match=f"index {N}"):
            gather(index, x, Region(y))
        np.testing.assert_array_equal(y, 10 * x)
    index[N // 2] = N // 2
    gather(index, x, Region(y))
    np.testing.assert_array_equal(y, 11 * x)


def test_many_short_launches():
    x, y = np.ones(1000), np.zeros(1000)
    with profile() as p, preload(x) as gx, preload_mut(y) as gy:
        region = Region(gy)
        for _ in range(1000):
            add(gx, region)
    assert (p.h2d_bytes, p.d2h_bytes, p.launches) == (16_000, 8_000, 1000)
    assert (y == 1000).all()
