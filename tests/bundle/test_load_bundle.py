"""load_bundle: kernels launch as those that they were compiled from, on the best code for the machine; else they say why not."""

from __future__ import annotations

import kept
import numpy as np
import pytest

from numba_offload import (
    Chunked1D,
    LaunchError,
    Region,
    UnsupportedArrayError,
    compile_bundle,
    load_bundle,
    offload_kernel,
    use_target,
)
from numba_offload.errors import SignatureError
from numba_offload.targets.cpu.target import CPUTarget
from numba_offload.targets.toolchain import Toolchain

CALLS = {name: call for name, call in kept.calls().items() if name != "captured"}


@pytest.fixture(params=["unified", "discrete"])
def cpu(request, monkeypatch):
    monkeypatch.setenv("NUMBA_OFFLOAD_CPU_MEMORY", request.param)
    with use_target("cpu"):
        yield


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Every kind of call in one bundle."""
    path = tmp_path_factory.mktemp("load") / "all.bundle"
    calls = {**CALLS, **kept.failing_calls()}
    compile_bundle(list(calls.values()), ["cpu"], path)
    return path


def nothing_compiles(monkeypatch):
    def compile_function(self, py_func, *args):
        # But for the check of a user's strategy.
        if not args[-1].partition:
            raise AssertionError(f"{py_func.__name__} is compiled")
        return compiled(self, py_func, *args)

    compiled = Toolchain.compile_function
    monkeypatch.setattr(Toolchain, "compile_function", compile_function)


# ---------------------------------------------------------------------------------------------------------- launches


@pytest.mark.parametrize("name", CALLS)
def test_a_loaded_kernel_computes_the_same(name, made, cpu, monkeypatch):
    kernel, args = CALLS[name]
    args, again = kept.copied(args), kept.copied(args)
    kernel(*args)
    nothing_compiles(monkeypatch)
    read = load_bundle(made)[kernel.__name__]
    read(*again)
    for expected, actual in zip(kept.arrays_of(args), kept.arrays_of(again), strict=True):
        np.testing.assert_array_equal(actual, expected, strict=True)
    assert read.mappings(*again) == kernel.mappings(*again)
    assert read.explain(*again) == kernel.explain(*again)


@pytest.mark.parametrize("name", kept.failing_calls())
def test_a_loaded_kernel_fails_with_the_same_words(name, made, cpu, monkeypatch):
    kernel, args = kept.failing_calls()[name]
    again = kept.copied(args)
    with pytest.raises(Exception) as expected:
        kernel(*args)
    nothing_compiles(monkeypatch)
    with pytest.raises(type(expected.value)) as actual:
        load_bundle(made)[kernel.__name__](*again)
    assert str(expected.value) == str(actual.value)


def test_a_configuration_keywords_and_defaults_are_as_for_the_kernel(made, cpu):
    image, out = np.arange(600.0).reshape(20, 30), np.zeros((20, 30))
    blur = load_bundle(made).blur
    kept.blur(image, Region(out))
    for call in (
        lambda result: blur(image, Region(result)),
        lambda result: blur(image, out=Region(result), width=1),
        lambda result: blur[(4, 5), (8, 4)](image, Region(result)),
    ):
        result = np.zeros((20, 30))
        call(result)
        np.testing.assert_array_equal(result, out)
    with pytest.raises(LaunchError, match="kernel blur\\[...\\] takes \\[blocks, threads\\]"):
        blur[4]
    with pytest.raises(TypeError, match=r"kernel blur\(\): it has no parameter 'wide'; it is defined as blur\(image, out, "):
        blur(image, Region(out), wide=2)


def test_a_default_that_is_not_kept_must_be_passed(tmp_path):
    one, three = np.float32(1), np.float32(3)

    @offload_kernel
    def odd(y, first=one, second=2, third=three, /):
        for i in y.indices():
            y[i] = first + second + third

    compile_bundle([(odd, "Region(f8[::1])")], ["cpu"], tmp_path / "odd")
    read = load_bundle(tmp_path / "odd").odd
    y = np.zeros(3)
    with pytest.raises(TypeError, match="first"):
        read(Region(y))
    with use_target("cpu"):
        with pytest.raises(TypeError, match="the bundle does not keep the default of 'third'; pass it"):
            read(Region(y), np.float32(1))
        read(Region(y), np.float32(1), 5, np.float32(7))
    assert y.tolist() == [13.0] * 3


def test_a_launch_that_repeats_the_last_takes_the_short_way(small, monkeypatch):
    monkeypatch.setenv("NUMBA_OFFLOAD_CPU_MEMORY", "unified")
    with use_target("cpu"):
        saxpy = load_bundle(small).saxpy
        x, y = np.ones(10), np.zeros(10)
        saxpy(1.0, x, Region(y))
        monkeypatch.setattr(type(saxpy), "_prepare", None)
        saxpy(2.0, x, Region(y))
    assert (y == 3).all()


def test_code_is_made_ready_when_a_launch_needs_it(small, monkeypatch):
    ready = []
    load = CPUTarget.load
    monkeypatch.setattr(CPUTarget, "load", lambda self, image, name: ready.append(name) or load(self, image, name))
    with use_target("cpu"):
        bundle = load_bundle(small)
        assert not ready
        for _ in range(2):
            bundle.saxpy(2.0, np.ones(8), Region(np.ones(8)))
        assert ready == ["saxpy"]


def test_a_launch_takes_the_variant_that_it_has_settled(small):
    with use_target("cpu"):
        shifted = load_bundle(small).shifted
        shifted(np.arange(9.0), 1, Region(np.ones(8)))
        with pytest.raises(IndexError):
            shifted(np.arange(8.0), 1, Region(np.ones(8)))
        (found,) = shifted._loaded.values()
        safe, fast = sorted((code.image for code in found.code.values()), key=lambda image: len(image.assumed))
        assert (safe.assumed, safe.may_fail) == (frozenset(), True)
        assert (fast.assumed, fast.may_fail) == (found.record.facts, False)


# ------------------------------------------------------------------------------------------------------------ the bundle


def test_a_bundle_is_a_mapping_with_attributes(small):
    bundle = load_bundle(str(small))
    assert list(bundle) == ["saxpy", "weigh", "curved", "shifted", "picky"] and len(bundle) == 5
    assert bundle.saxpy is bundle["saxpy"] is bundle.get("saxpy")
    assert "saxpy" in dir(bundle) and "saxpy" in bundle and "other" not in bundle
    assert repr(bundle.saxpy) == f"<offload kernel saxpy of {small}>"
    assert "saxpy, weigh" in repr(bundle)
    with pytest.raises(KeyError, match="has no kernel 'other'; it has saxpy, weigh"):
        bundle["other"]
    with pytest.raises(AttributeError, match="no kernel 'other'; it has saxpy, weigh"):
        bundle.other  # noqa: B018


# ------------------------------------------------------------------------------------------------------------- arguments


def test_other_arguments_are_told_with_what_the_bundle_has(small):
    with pytest.raises(TypeError) as told:
        load_bundle(small).saxpy(2, np.ones((2, 3)), Region(np.ones(3), Chunked1D(8)))
    assert isinstance(told.value, LaunchError)
    assert (
        f"kernel 'saxpy': {small} was compiled for other types of arguments.\n"
        "  given: i8, f8[:, ::1], Region(f8[::1], Chunked1D(k=8))\n"
        "  compiled for: f8, f8[::1], Region(f8[::1])\n"
        "  compiled for: f4, f4[:], Region(f4[:], GridStride1D())\n"
    ) in str(told.value)


def test_an_argument_that_no_kernel_takes_is_told_as_ever(small):
    with pytest.raises(UnsupportedArrayError, match="argument 'x' is a list"):
        load_bundle(small).saxpy(2.0, [1.0], Region(np.ones(1)))


def layouts(tmp_path, *signatures):
    @offload_kernel
    def copied(x, y):
        for i, j in y.indices():
            y[i, j] = x[i, j]

    compile_bundle([(copied, signature) for signature in signatures], ["cpu"], tmp_path / "file")
    return load_bundle(tmp_path / "file").copied


def arrays():
    yield "C", np.arange(12.0).reshape(3, 4)
    yield "I", np.arange(24.0).reshape(3, 8)[:, 2:6]
    yield "A", np.arange(24.0).reshape(3, 8)[:, ::2]
    yield "A", np.arange(12.0).reshape(4, 3).T
    yield "A", np.arange(12.0).reshape(3, 4)[::-1, ::-1]


def test_code_for_any_strides_takes_every_array(tmp_path, cpu):
    copied = layouts(tmp_path, "f8[:, :], Region(f8[:, :])")
    for _, x in arrays():
        for _, y in arrays():
            y = y.copy(order="K") if y.flags.c_contiguous else y
            copied(x, Region(y))
            np.testing.assert_array_equal(x, y)


def test_code_for_contiguous_rows_takes_stricter_arrays_only(tmp_path, cpu):
    copied = layouts(tmp_path, "f8[::, ::1], Region(f8[:, ::1])")
    for layout, x in arrays():
        y = np.zeros((3, 4))
        if layout == "A":
            with pytest.raises(TypeError, match=r"given: f8\[:, :\]"):
                copied(x, Region(y))
        else:
            copied(x, Region(y))
            np.testing.assert_array_equal(x, y)


def test_the_strictest_code_is_taken(tmp_path):
    copied = layouts(tmp_path, "f8[:, :], Region(f8[:, :])", "f8[::, ::1], Region(f8[:, ::1])", "f8[:, ::1], Region(f8[:, :])")
    with use_target("cpu"):
        for x, number in zip((array for _, array in arrays()), (1, 1, 0, 0, 0), strict=True):
            copied(x, Region(np.zeros((3, 4))))
            _, specialisation = copied._prepare((x, Region(np.zeros((3, 4)))), {})
            assert specialisation is copied._loaded[number]


@offload_kernel
def fields_of(x, y):
    for i in y.indices():
        y[i] = x[i].a


def test_records_that_look_alike(cpu, tmp_path):
    path = tmp_path / "records.bundle"
    parts = {"names": ["a", "b"], "formats": ["i4", "f4"]}
    x, y = np.zeros(3, np.dtype({**parts, "offsets": [0, 4]})), np.zeros(3)
    compile_bundle([(fields_of, (x, Region(y)))], ["cpu"], path)
    moved = np.zeros(3, np.dtype({**parts, "offsets": [4, 0]}))
    with pytest.raises(SignatureError, match="look alike, but are not: the offsets"):
        load_bundle(path).fields_of(moved, Region(y))
    with pytest.raises(SignatureError) as told:
        load_bundle(path).fields_of(y, Region(y.copy()))
    assert "look alike" not in str(told.value)
