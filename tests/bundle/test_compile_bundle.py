"""compile_bundle: what it takes, what it writes, and what it refuses."""

from __future__ import annotations

import os
from pathlib import Path

import field_kernels
import kept
import numpy as np
import pytest

from numba_offload import (
    BundleError,
    Chunked1D,
    OffloadError,
    Region,
    SafetyError,
    TargetError,
    UnsupportedArrayError,
    compile_bundle,
    load_bundle,
    offload_function,
    offload_kernel,
)
from numba_offload.bundle.compiling import make_bundle
from numba_offload.bundle.content import candidates_of
from numba_offload.bundle.manifest import read_bundle
from numba_offload.targets.amdgpu import devicelibs, linker
from numba_offload.targets.cuda import ahead as cuda_ahead
from numba_offload.targets.cuda import ptxas

SAXPY = (field_kernels.saxpy, "f8, f8[::1], Region(f8[::1])")


@pytest.fixture
def file(tmp_path):
    return tmp_path / "some.bundle"


def images(calls, targets):
    return [(c.target, c.built_for.arch, c.built_for.kind, bool(c.assumed)) for c in candidates_of(make_bundle(calls, targets))]


# -------------------------------------------------------------------------------------------------------------- content


def test_each_target_has_a_safe_variant_and_one_that_assumes_what_a_launch_can_settle(file):
    compile_bundle([SAXPY], ["cpu", "compute_80"], file)
    bundle = load_bundle(file)
    (kernel,) = bundle.kernels
    assert kernel.record.facts
    assert [image.assumed for image in bundle.images] == [frozenset(), kernel.record.facts] * 2
    assert [image.image().may_fail for image in bundle.images] == [True, False] * 2


def test_a_kernel_with_nothing_to_settle_has_one_variant():
    @offload_kernel(unsafe=True)
    def nothing(x):
        pass

    assert [found[3:] for found in images([(nothing, "f8[::1]")], ["cpu"])] == [(False,)]


def test_arguments_and_types_can_be_mixed(file):
    y = np.ones(10)
    compile_bundle([(field_kernels.saxpy, ("f8", "f8[::1]", Region(y, Chunked1D(4))))], ["cpu"], file)
    load_bundle(file).saxpy(2.0, np.ones(10), Region(y, Chunked1D(4)))
    assert (y == 3).all()


def test_the_same_types_are_compiled_once():
    again = (field_kernels.saxpy, (2.0, np.ones(5), Region(np.ones(5))))
    assert len(make_bundle([SAXPY, again, SAXPY], ["cpu", "cpu"]).kernels) == 1


def test_captured_numbers_are_frozen(file, monkeypatch):
    rows = np.ones(4, field_kernels.ROW)
    call = (field_kernels.Pair(1.0, rows), (0, None)), Region(np.zeros(4))
    compile_bundle([(field_kernels.weigh, call)], ["cpu"], file)
    monkeypatch.setattr(field_kernels, "FACTOR", 100)
    load_bundle(file).weigh(*call)
    assert (call[1].array == 4).all()


def test_versions_are_in_the_file(file):
    compile_bundle([SAXPY], ["cpu"], file)
    assert set(read_bundle(file.read_bytes()).versions) == {"numba_offload", "numba", "llvmlite", "python"}


# -------------------------------------------------------------------------------------------------------------- targets


def test_nvidias_machine_code_is_made_where_its_assembler_is():
    found = images([SAXPY], ["sm_80"])
    kind = "ptx" if ptxas.find_ptxas() is None else "cubin"
    assert found == [("sm_80", "sm_80", kind, False), ("sm_80", "sm_80", kind, True)]


def test_without_nvidias_assembler_ptx_is_made(monkeypatch):
    monkeypatch.setattr(cuda_ahead, "find_ptxas", lambda: None)
    assert images([SAXPY], ["sm_80"])[0] == ("sm_80", "sm_80", "ptx", False)


def test_compute_is_ptx():
    assert images([SAXPY], ["compute_90"])[0] == ("compute_90", "sm_90", "ptx", False)


def test_the_assembler_is_looked_for_in_the_toolkit_first(tmp_path, monkeypatch):
    named = tmp_path / "bin" / "ptxas"
    named.parent.mkdir()
    named.write_text("#!/bin/sh\necho not today >&2\nexit 1\n")
    named.chmod(0o755)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert ptxas.find_ptxas() == str(named)
    with pytest.raises(TargetError, match=r"compiling kernel 'saxpy' for sm_80: .*not today.*compute_80"):
        make_bundle([SAXPY], ["sm_80"])


def test_a_missing_linker_is_told_with_kernel_and_target(file, monkeypatch):
    monkeypatch.setattr(linker, "find_linker", lambda: None)
    with pytest.raises(TargetError, match="compiling kernel 'saxpy' for gfx90a: .*ld.lld"):
        compile_bundle([SAXPY], ["cpu", "gfx90a"], file)
    assert not list(file.parent.iterdir())


@pytest.mark.skipif(
    linker.find_linker() is None or devicelibs.find_device_libraries() is None, reason="AMD code cannot be linked here"
)
def test_amds_code_objects_are_made():
    assert [arch for _, arch, *_ in images([SAXPY], ["gfx90a", "gfx1100"])] == ["gfx90a"] * 2 + ["gfx1100"] * 2


@pytest.mark.parametrize("name", ["metal", "cpu:", "gpu", "sm90", "sm_", "", 7, None])
def test_an_unknown_target_is_told_with_all_that_are_known(name):
    with pytest.raises(TargetError, match=r"unknown target .* known: ") as told:
        make_bundle([SAXPY], [name])
    for known in ("cpu (", "cpu:PROCESSOR", "sm_80,", "compute_", "gfx90a"):
        assert known in str(told.value)


@pytest.mark.parametrize(
    "name, known", [("cpu:zen4", "known: .*skylake"), ("sm_99", "sm_80"), ("compute_81", "sm_80"), ("gfx9", "gfx90a")]
)
def test_an_unknown_architecture_is_told_with_those_that_are_known(name, known):
    with pytest.raises(TargetError, match=known):
        make_bundle([SAXPY], [name])


# -------------------------------------------------------------------------------------------------------------- refused


def test_captured_arrays_are_refused_with_the_way_out():
    with pytest.raises(BundleError, match="kernel 'captured': it captures the array 'TABLE'.*make it an argument"):
        make_bundle([(kept.captured, "Region(f8[::1])")], ["cpu"])


def test_arrays_that_a_callee_captures_are_refused():
    table = np.arange(3.0)

    @offload_function
    def looked_up(k):
        return table[k]

    @offload_kernel
    def callers(y):
        for i in y.indices():
            y[i] = looked_up(0)

    with pytest.raises(SafetyError, match="compiling kernel 'callers': .*table"):
        make_bundle([(callers, "Region(f8[::1])")], ["cpu"])


def test_two_kernels_of_one_name_are_refused():
    @offload_kernel
    def saxpy(alpha, x, y):
        pass

    with pytest.raises(BundleError, match=r"two kernels are called 'saxpy' \(field_kernels.saxpy and .*locals.*rename"):
        make_bundle([SAXPY, (saxpy, "f8, f8[:], Region(f8[:])")], ["cpu"])


@pytest.mark.parametrize(
    "item",
    [field_kernels.saxpy, (field_kernels.saxpy,), (field_kernels.saxpy.py_func, "f8"), (field_kernels.saxpy, 2.0), "f8"],
)
def test_what_is_no_kernel_with_arguments_is_refused(item):
    with pytest.raises(TypeError, match="pairs of a kernel|arguments are a tuple"):
        make_bundle([item], ["cpu"])


def test_nothing_to_compile_is_refused():
    for calls, targets in (([], ["cpu"]), ([SAXPY], [])):
        with pytest.raises(BundleError, match="at least one kernel and one target"):
            make_bundle(calls, targets)
    with pytest.raises(TypeError, match=r"\['cpu'\]"):
        make_bundle([SAXPY], "cpu")


@pytest.mark.parametrize(
    "kernel, given, error, told",
    [
        (field_kernels.saxpy, "f8, f8[:], f8[:]", SafetyError, "(?s)compiling kernel 'saxpy': .*only a Region has indices"),
        (field_kernels.saxpy, "f8, f8[:]", BundleError, "signature 'f8, f8.*missing a required argument: 'y'"),
        (field_kernels.saxpy, "f8, f8[:], f8[:], f8", BundleError, "signature .*too many positional arguments"),
        (field_kernels.saxpy, (2.0, np.ones(3)), TypeError, "missing a required argument: 'y'"),
        (field_kernels.saxpy, (2.0, [1.0], Region(np.ones(1))), UnsupportedArrayError, "kernel 'saxpy': argument 'x' is a list"),
        (field_kernels.saxpy, (2.0, "f8[:], f8[:]", "f8"), BundleError, "stands for 2 arguments"),
        (kept.fill, "f8, Region(f2[:])", UnsupportedArrayError, "kernel 'fill': argument 'y' has dtype float16"),
    ],
)
def test_what_cannot_be_compiled_is_told_with_the_kernel(kernel, given, error, told):
    with pytest.raises(error, match=told):
        make_bundle([(kernel, given)], ["cpu"])


# ----------------------------------------------------------------------------------------------------------------- file


def test_a_failure_leaves_the_old_file_as_it_was(file):
    compile_bundle([SAXPY], ["cpu"], file)
    before = file.read_bytes()
    with pytest.raises(OffloadError):
        compile_bundle([SAXPY, (kept.captured, "Region(f8[::1])")], ["cpu"], file)
    assert before == file.read_bytes()
    assert [file] == list(file.parent.iterdir())


def test_a_file_that_cannot_be_replaced_leaves_nothing_behind(file, monkeypatch):
    def fail(source, destination):
        raise PermissionError(13, "no", source)

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(PermissionError, match="some.bundle'$"):
        compile_bundle([SAXPY], ["cpu"], file)
    assert not list(file.parent.iterdir())


def test_a_folder_that_does_not_exist_is_told(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere/some.bundle"):
        compile_bundle([SAXPY], ["cpu"], tmp_path / "nowhere" / "some.bundle")


def test_a_bundle_can_be_read_by_others_as_files_are(file, tmp_path):
    compile_bundle([SAXPY], ["cpu"], str(file))
    other = tmp_path / "other"
    other.touch()
    assert Path(file).stat().st_mode == other.stat().st_mode
