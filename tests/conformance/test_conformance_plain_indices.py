"""An owned index is a plain integer wherever one is wanted, and unsafe kernels may use any index of a Region."""

import math

import numpy as np
import pytest

from numba_offload import Accumulator, Region, SafetyError, offload_kernel

TABLE = (5.0, 6.0, 7.0, 8.0)


@offload_kernel
def numpy_functions(y):
    for i in y.indices():
        y[i] = np.sqrt(i) + np.minimum(i, 2) + np.power(2, i) + math.exp(i) + np.sin(i)


@offload_kernel
def conversions(y):
    for i in y.indices():
        y[i] = np.uint64(i) + np.float32(i) + np.int32(i) + float(i) + int(i) + complex(i).real + abs(i) + round(i)


@offload_kernel
def comparisons(y):
    for i in y.indices():
        y[i] = max(i, 1, 2) + min(i, 3) + divmod(i, 2)[1] + bool(i) + (not i)


@offload_kernel
def picks(y):
    for i in y.indices():
        y[i] = TABLE[i]


@offload_kernel
def generator(y):
    for i in y.indices():
        state = np.uint64(i) * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        y[i] = float(state >> np.uint64(33))


@offload_kernel(unsafe=True)
def any_index(y):
    for i in y.indices():
        y[i] = 1.0
    y[0] = 7.0
    y[-1] = y[0] + 1.0


K = np.arange(4)
EXPECTED = {
    numpy_functions: np.sqrt(K) + np.minimum(K, 2) + 2.0**K + np.exp(K) + np.sin(K),
    conversions: 8.0 * K,
    comparisons: np.maximum(K, 2) + np.minimum(K, 3) + K % 2 + (K > 0) + (K == 0),
    picks: TABLE,
    generator: [float((k * 6364136223846793005 + 1442695040888963407) % 2**64 >> 33) for k in range(4)],
    any_index: [7.0, 1.0, 1.0, 8.0],
}


@pytest.mark.parametrize("kernel", EXPECTED, ids=lambda k: k.__name__)
def test_values(target, kernel):
    y = np.zeros(4)
    kernel(Region(y))
    np.testing.assert_allclose(y, EXPECTED[kernel], rtol=1e-14)


@offload_kernel
def totals(x, y):
    for i in y.indices():
        y[i] = x.sum() + x.mean()


@pytest.mark.parametrize("dtype", ["f4", "c8", "f8", "i2"])
def test_sums_of_narrow_floats_are_as_accurate_as_numpys(target, dtype):
    # One thread reads them all, which takes an emulator a while.
    x = np.full(2_000 if target.emulated else 200_000, 0.1).astype(dtype) + np.ones(1, dtype)
    y = np.zeros(1, "c16" if dtype == "c8" else "f8")
    totals(x, Region(y))
    np.testing.assert_allclose(y, x.astype("c16").sum() + x.astype("c16").mean(), rtol=2e-7)


@offload_kernel
def add(total, value):
    total.update(0, value)


@pytest.mark.parametrize(("dtype", "value"), [("i8", 0.5), ("f8", 1j), ("f4", 2j)])
def test_an_accumulator_takes_values_of_its_kind(target, dtype, value):
    with pytest.raises(SafetyError, match="total"):
        add[1, 1](Accumulator(np.zeros(1, dtype)), value)
    narrow = np.zeros(1, "f8")
    add[1, 4](Accumulator(narrow), 3)
    assert narrow[0] == 12
