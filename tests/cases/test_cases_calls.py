"""Cases from the field, 15 to 20: calls, signatures, launch configurations, sizes beyond 32 bits."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest
from numba import float32, float64, int64, void

from numba_offload import (
    BlockStriped1D,
    Chunked1D,
    EvenSplit1D,
    GridStride1D,
    Linear1D,
    Linear2D,
    Region,
    Tiles2D,
    cuda,
    offload_kernel,
)
from numba_offload.targets.registry import current_target
from partitioning import Runtime

X = np.arange(10.0)


@offload_kernel
def scale(x, y, s=2.0, shift=0.0):
    for i in y.indices():
        y[i] = s * x[i] + shift


def output(n=10):
    return np.zeros(n)


# --------------------------------------------------------------------------------------- 15: as a Python call


@pytest.mark.parametrize(
    ("args", "kwargs", "s", "shift"),
    [
        ((), {}, 2, 0),
        ((3.0,), {}, 3, 0),
        ((), {"s": 4}, 4, 0),
        ((), {"shift": 1}, 2, 1),
        ((5,), {"shift": np.float32(0.5)}, 5, 0.5),
        ((), {"shift": 1.0, "s": True}, 1, 1),
    ],
)
def test_case_15_keywords_and_defaults(target, args, kwargs, s, shift):
    y = output()
    scale(X, Region(y), *args, **kwargs)
    assert np.array_equal(y, s * X + shift)


def test_case_15_by_keyword_in_any_order_and_with_a_configuration(target):
    y = output()
    scale[1, 32](y=Region(y), shift=1, x=X, s=3)
    assert np.array_equal(y, 3 * X + 1)


WRONG_CALLS = [
    ((), {}),
    ((X,), {}),
    ((X, Region(output()), 1, 2, 3), {}),
    ((X, Region(output())), {"factor": 2}),
    ((X, Region(output())), {"x": X}),
    ((), {"y": Region(output())}),
]


@pytest.mark.parametrize(("args", "kwargs"), WRONG_CALLS)
@pytest.mark.parametrize("configured", [False, True])
def test_case_15_wrong_calls_fail_as_pythons_do(target, args, kwargs, configured):
    with pytest.raises(TypeError) as python:
        scale.py_func(*args, **kwargs)
    kernel = scale[1, 32] if configured else scale
    with pytest.raises(TypeError, match="scale") as ours:
        kernel(*args, **kwargs)
    for word in ("factor", "multiple values"):
        assert (word in str(python.value)) == (word in str(ours.value))


def test_case_15_parameters_that_kernels_cannot_have(target):
    for function in (lambda y, *rest: None, lambda y, **rest: None, lambda y, *, only=1: None):
        with pytest.raises(TypeError, match="rest|only"):
            offload_kernel(function)


def test_case_15_default_values_are_those_of_the_definition(target):
    default = 3.0

    def make():
        @offload_kernel
        def k(y, value=default):
            for i in y.indices():
                y[i] = value

        return k

    k, y = make(), output()
    default = 4.0
    k(Region(y))
    assert np.array_equal(y, np.full(10, 3.0))
    make()(Region(y))
    assert np.array_equal(y, np.full(10, 4.0))


# ------------------------------------------------------------------------------------------- 16: explicit signature


SIGNATURES = ["void(float64[:], float64[:], int64)", void(float64[:], float64[:], int64), (float64[:], float64[:], int64)]


def declared(signature):
    @offload_kernel(signature)
    def k(x, y, n):
        for i in y.indices():
            y[i] = n * x[i]

    return k


@pytest.mark.parametrize("signature", SIGNATURES, ids=["string", "signature", "tuple"])
def test_case_16_a_call_that_fits(target, signature):
    y = output()
    declared(signature)(X, Region(y), 3)
    assert np.array_equal(y, 3 * X)
    declared(signature)(X[::-1], Region(y[::1]), 3)
    assert np.array_equal(y, 3 * X[::-1])


@pytest.mark.parametrize("signature", SIGNATURES, ids=["string", "signature", "tuple"])
@pytest.mark.parametrize(
    ("args", "says"),
    [
        ((X.astype("f4"), Region(output()), 3), "'x'"),
        ((X, Region(np.zeros(10, "f4")), 3), "'y'"),
        ((X, Region(output()), 3.0), "'n'"),
        ((X.reshape(2, 5), Region(output()), 3), "'x'"),
        ((X, Region(output())), "n"),
        ((X, Region(output()), 3, 4), "too many"),
        ((3, Region(output()), 3), "'x'"),
    ],
    ids=["input dtype", "output dtype", "scalar", "axes", "too few", "too many", "no array"],
)
def test_case_16_a_call_that_does_not_fit_fails_each_time(target, signature, args, says):
    k = declared(signature)
    for _ in range(3):
        with pytest.raises(TypeError, match=says):
            k(*args)
    y = output()
    k(X, Region(y), 2)
    assert np.array_equal(y, 2 * X)
    with pytest.raises(TypeError, match=says):
        k(*args)


def test_case_16_a_signature_with_the_wrong_number_of_arguments(target):
    with pytest.raises(TypeError, match="takes 3 arguments.*declares 2"):
        declared("void(float64[:], float64[:])")


def test_case_16_contiguity_is_part_of_a_signature(target):
    @offload_kernel(void(float32[::1], float32[::1]))
    def copy(x, y):
        for i in y.indices():
            y[i] = x[i]

    x, y = np.arange(10, dtype="f4"), np.zeros(10, "f4")
    copy(x, Region(y))
    assert np.array_equal(x, y)
    with pytest.raises(TypeError, match="'x'"):
        copy(x[::2], Region(y[:5]))


# ------------------------------------------------------------------------------------------- 17: launch configurations


@offload_kernel
def add_one(y):
    for i in y.indices():
        y[i] += 1


@pytest.mark.parametrize(
    ("blocks", "threads", "says"),
    [
        (0, 32, "blocks = 0.*positive"),
        (-3, 32, "blocks = -3.*positive"),
        (1, 0, "threads per block = 0.*positive"),
        (1, -1, "threads per block = -1.*positive"),
        (1.0, 32, "blocks = 1.0.*integers"),
        (1, 32.5, "threads per block = 32.5.*integers"),
        ((1, 0), 32, "blocks.*positive"),
        ((1, 2.0), 32, "blocks.*integers"),
        ((1, 1, 1, 1), 32, "blocks.*one to three"),
        ([], 32, "blocks.*one to three"),
        ("12", 32, "blocks.*integers"),
        (None, 32, "blocks.*integers"),
        (True, 32, "blocks.*integers"),
        (np.array([1, 2]), 32, "blocks"),
    ],
)
def test_case_17_extents_that_are_none(target, blocks, threads, says):
    y = output()
    with pytest.raises(ValueError, match=f"(?s){says}"):
        add_one[blocks, threads](Region(y))
    assert not y.any()


def test_case_17_over_the_devices_limit(target):
    limits = current_target().target.limits
    y = output()
    over = limits.threads_per_block + 1
    with pytest.raises(ValueError, match=rf"threads per block.*{over}.*{limits.threads_per_block}"):
        add_one[1, over](Region(y))
    half = limits.threads_per_block // 2 + 1
    with pytest.raises(ValueError, match=rf"threads per block.*{limits.threads_per_block}"):
        add_one[1, (half, 2)](Region(y))
    with pytest.raises(ValueError, match=rf"{limits.grid[0] + 1}.*{limits.grid[0]}|launch has"):
        add_one[limits.grid[0] + 1, 1](Region(y))
    assert not y.any()


def test_case_17_more_threads_in_all_than_64_bits_count(target):
    y = output()
    with pytest.raises(ValueError, match="threads|blocks"):
        add_one[(2**40, 2**40), 32](Region(y))
    assert not y.any()


@pytest.mark.parametrize(
    ("blocks", "threads"),
    [([2], [16]), ([1, 1, 1], [32, 1, 1]), (np.int64(2), np.uint8(16)), ((np.int32(2), 1), 16)],
    ids=repr,
)
def test_case_17_lists_and_numpy_integers_mean_something(target, blocks, threads):
    y = output()
    add_one[blocks, threads](Region(y))
    assert np.array_equal(y, np.ones(10))


def test_case_17_a_block_at_the_limit(target):
    limit = min(current_target().target.limits.threads_per_block, 1024)
    y = output(limit)
    add_one[1, limit](Region(y))
    assert np.array_equal(y, np.ones(limit))


# ------------------------------------------------------------------------------------------------ 18: beyond 32 bits


@offload_kernel
def low_bits(y):
    for i in y.indices():
        y[i] = i & 0x7F


def _needs_memory(target, nbytes):
    if target.emulated:
        pytest.skip("an emulator takes days for billions of elements")
    if os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") <= nbytes:
        pytest.skip("needs 6 GiB of memory that is free")


BIG = 2**31 + 5


@pytest.mark.parametrize(
    ("strategy", "configuration"),
    [
        (Linear1D(), None),
        (Chunked1D(1000), None),
        (Chunked1D(Runtime(2**31)), None),
        (GridStride1D(), (1, 4)),
        (EvenSplit1D(), (32, 256)),
        (BlockStriped1D(2**15), (257, 256)),
    ],
    ids=lambda v: repr(v).replace(" ", ""),
)
def test_case_18_more_elements_than_32_bits_count(target, strategy, configuration):
    _needs_memory(target, 3 * BIG)
    if target.name == "cpu" and target.separate and not isinstance(strategy, Linear1D):
        pytest.skip("one strategy shows that the discrete model copies beyond 32 bits; the rest is the same code")
    y = np.full(BIG, -1, "i1")
    (low_bits[configuration] if configuration else low_bits)(Region(y, strategy))
    assert y[-6:].tolist() == [127, 0, 1, 2, 3, 4]
    pattern = np.arange(128, dtype="i1").view("u8")
    assert (y[: 2**31].view("u8").reshape(-1, 16) == pattern).all()


def test_case_18_two_axes(target):
    _needs_memory(target, 3 * BIG)

    @offload_kernel
    def mark(y):
        for i, j in y.indices():
            y[i, j] = 1 + (i + j) % 2

    y = np.zeros((2**16 + 1, 2**15), "i1")
    mark(Region(y, Tiles2D(64, 256)))
    pattern = np.array([1, 2] * 4 + [2, 1] * 4, "i1").view("u8")
    rows = y.view("u8")
    assert (rows[::2] == pattern[0]).all()
    assert (rows[1::2] == pattern[1]).all()


def test_case_18_an_index_beyond_32_bits_in_an_error(target):
    @offload_kernel
    def far(x, y, at):
        for i in y.indices():
            y[i] = x[at + i]

    with pytest.raises(IndexError, match=f"index {2**40 + 3} is out of bounds"):
        far(X, Region(output(), Chunked1D(100)), 2**40 + 3)


# ------------------------------------------------------------------------------------ 19: AMD's work-items per launch


@offload_kernel
def position(y, shift):
    for i in y.indices():
        y[i] = i + shift


@pytest.fixture
def few_at_once(target, monkeypatch):
    """A device that takes 1000 threads at once, as AMD's take 2**32."""
    device = current_target().target
    if target.name == "cpu":
        pytest.skip("the CPU takes any number of threads")
    monkeypatch.setattr(device, "limits", replace(device.limits, threads_at_once=1000))
    return device


@pytest.mark.parametrize("strategy", [Linear1D(), Chunked1D(3), GridStride1D(), BlockStriped1D(2)], ids=repr)
@pytest.mark.parametrize("configuration", [None, (40, 128)])
def test_case_19_more_work_items_than_a_device_takes_at_once(few_at_once, strategy, configuration):
    y = np.full(4321, -1)
    (position[configuration] if configuration else position)(Region(y, strategy), 7)
    assert np.array_equal(y, np.arange(4321) + 7)


def test_case_19_two_axes_in_parts(few_at_once):
    y = np.zeros((60, 70))
    add_one(Region(y, Linear2D()))
    assert np.array_equal(y, np.ones((60, 70)))


@offload_kernel(unsafe=True)
def coordinates(y):
    i, j = cuda.grid(2)
    if i < y.shape[0] and j < y.shape[1]:
        y[i, j] = cuda.blockIdx.x * 100 + cuda.blockIdx.y * 10 + cuda.threadIdx.x


def test_case_19_blocks_keep_their_coordinates(few_at_once):
    y = np.zeros((32, 64))
    coordinates[(4, 8), (8, 8)](y)
    i, j = np.indices(y.shape)
    assert np.array_equal(y, i // 8 * 100 + j // 8 * 10 + i % 8)


def test_case_19_a_failure_in_a_later_part(few_at_once):
    @offload_kernel
    def beyond(x, y):
        for i in y.indices():
            y[i] = x[i]

    y = np.zeros(4000)
    with pytest.raises(IndexError, match="index 3[0-9]{3} is out of bounds"):
        beyond(np.ones(3000), Region(y))
    assert not y.any()


# ------------------------------------------------------------------------------------------- 20: shared memory limits


@pytest.mark.skip(reason="needs shared arrays")
def test_case_20_shared_memory_at_the_limit():
    """Just under, at and over the device's limit: an error before the launch only where it truly does not fit."""


def test_case_20_nothing_shared_fits_everywhere(target):
    y = np.zeros((40, 40))
    add_one(Region(y, Linear2D()))
    assert np.array_equal(y, np.ones((40, 40)))


