"""Which of a bundle's images a launch takes, and that code which a machine cannot run is never taken."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from fake_cuda import FakeDriver

from numba_offload import Region, TargetError, load_bundle, use_target
from numba_offload.bundle.content import Candidate
from numba_offload.bundle.loading import BundledImages
from numba_offload.bundle.manifest import read_bundle, write_bundle
from numba_offload.targets.amdgpu.driver import HIPDriver
from numba_offload.targets.amdgpu.target import AMDGPUTarget
from numba_offload.targets.base import BuiltFor
from numba_offload.targets.cpu import features
from numba_offload.targets.cpu import target as cpu_target
from numba_offload.targets.cpu.compiler import baseline, host_machine
from numba_offload.targets.cpu.target import CPUTarget
from numba_offload.targets.cuda.driver import CUDADriver
from numba_offload.targets.cuda.target import CUDATarget


def facts(count):
    return frozenset((k, "x") for k in range(count))


def candidate(arch, kind="object", triple=None, needs=(), assumes=0):
    triple = triple or host_machine().triple
    return Candidate(0, arch, BuiltFor(kind, triple, arch, tuple(needs)), facts(assumes), None)


def chosen(target, candidates, settled=10):
    """The architectures and numbers of facts, as they would be chosen with the ones before missing."""
    left, out = list(candidates), []
    while (best := BundledImages("k", "some.bundle", left).best(target, facts(settled))) is not None:
        left.remove(best)
        out.append((best.built_for.arch, len(best.assumed)))
    return out


def test_the_cpu_takes_the_code_that_uses_most_of_its_features(monkeypatch):
    monkeypatch.setattr(cpu_target, "missing_here", lambda names: [name for name in names if name == "sse9"])
    found = chosen(
        CPUTarget(),
        [
            candidate("base"),
            candidate("newer", needs=["avx2"]),
            candidate("newest", needs=["avx2", "avx512f"], assumes=0),
            candidate("newest", needs=["avx2", "avx512f"], assumes=3),
            candidate("future", needs=["avx2", "avx512f", "sse9"]),
            candidate("base", assumes=11),
            candidate("other", triple="armv7-none-eabi"),
            candidate("sm_90", kind="ptx", triple="nvptx64-nvidia-cuda"),
            candidate(host_machine().cpu),
        ],
    )
    assert found == [("newest", 3), ("newest", 0), ("newer", 0), (host_machine().cpu, 0), ("base", 0)]


NVIDIA, AMD = "nvptx64-nvidia-cuda", "amdgcn-amd-amdhsa"


def cuda(major, minor):
    target = CUDATarget(CUDADriver(FakeDriver(lambda: 0)))
    target._cuda.capability = (major, minor)
    return target


def nvidia(*codes):
    return [candidate(arch, kind, NVIDIA) for arch, kind in codes]


@pytest.mark.parametrize(
    "device, found",
    [
        ((8, 0), ["cubin sm_80", "ptx sm_80", "ptx sm_75"]),
        ((8, 6), ["cubin sm_86", "cubin sm_80", "ptx sm_86", "ptx sm_80", "ptx sm_75"]),
        ((8, 7), ["ptx sm_86", "ptx sm_80", "ptx sm_75"]),
        ((8, 9), ["cubin sm_86", "cubin sm_80", "ptx sm_86", "ptx sm_80", "ptx sm_75"]),
        ((9, 0), ["cubin sm_90", "ptx sm_86", "ptx sm_80", "ptx sm_75"]),
        ((12, 1), ["ptx sm_100", "ptx sm_86", "ptx sm_80", "ptx sm_75"]),
        ((7, 5), ["ptx sm_75"]),
        ((7, 0), []),
    ],
)
def test_nvidia_takes_machine_code_of_its_major_version_and_else_the_newest_ptx(device, found):
    codes = [found.split() for found in (
        "ptx sm_75", "cubin sm_80", "ptx sm_80", "cubin sm_90", "ptx sm_100", "cubin sm_86", "ptx sm_86", "object sm_80",
    )]  # fmt: skip
    others = [candidate("gfx90a", "object", AMD), candidate("sm_80", "ptx", AMD), candidate("sm_x", "ptx", NVIDIA)]
    images = [*nvidia(*((arch, kind) for kind, arch in codes)), *others]
    target = cuda(*device)
    left = images.copy()
    for expected in found:
        best = BundledImages("k", "some.bundle", left).best(target, frozenset())
        assert f"{best.built_for.kind} {best.built_for.arch}" == expected
        left.remove(best)
    assert BundledImages("k", "some.bundle", left).best(target, frozenset()) is None


def test_machine_code_for_tegra_runs_there_only():
    codes = nvidia(("sm_87", "cubin"))
    assert chosen(cuda(8, 7), codes) == [("sm_87", 0)]
    assert chosen(cuda(8, 9), codes) == []


def amd(arch):
    pytest.importorskip("msgpack")
    from emulation.hip import EmulatedHIP

    return AMDGPUTarget(HIPDriver(EmulatedHIP(arch)))


def test_amd_takes_its_own_architecture_only():
    target = amd("gfx90a")
    codes = [candidate(arch, "object", AMD) for arch in ("gfx908", "gfx90a", "gfx942")]
    assert chosen(target, [*codes, candidate("gfx90a"), candidate("gfx90a", "ptx", AMD)]) == [("gfx90a", 0)]


@pytest.mark.parametrize(
    "target, told",
    [
        (lambda: SimpleNamespace(suits=lambda code: None, described=lambda: "toaster (T1000)"), r"toaster \(T1000\)"),
        (lambda: cuda(7, 5), r"cuda \(compute capability 7.5\)"),
        (lambda: amd("gfx1100"), r"amdgpu \(gfx1100\)"),
    ],
    ids=["toaster", "cuda", "amdgpu"],
)
def test_what_the_machine_is_and_what_the_bundle_has_is_told(target, told):
    images = BundledImages("k", "some.bundle", nvidia(("sm_80", "cubin"), ("sm_80", "cubin"), ("sm_90", "ptx")))
    with pytest.raises(TargetError, match=rf"kernel 'k': some.bundle has no code that runs on {told}; it has code for "
                       r"sm_80 \(cubin, nvptx64-nvidia-cuda\), sm_90 \(ptx, nvptx64-nvidia-cuda\)\. Choose"):  # fmt: skip
        images.find(target(), frozenset())


def test_code_that_needs_what_the_processor_lacks_is_not_run(small, tmp_path):
    bundle = read_bundle(small.read_bytes())
    images = [
        replace(image, description={**image.description, "features": [*image.description["features"], "no-such-feature"]})
        for image in bundle.images
    ]
    (tmp_path / "file").write_bytes(write_bundle(replace(bundle, images=images)))
    saxpy = load_bundle(tmp_path / "file").saxpy
    with use_target("cpu"), pytest.raises(TargetError) as told:
        saxpy(2.0, np.ones(3), Region(np.ones(3)))
    machine = host_machine()
    assert (
        f"kernel 'saxpy': {tmp_path / 'file'} has no code that runs on cpu ({machine.cpu} on {machine.triple}); it has code "
        f"for {baseline()} (object, {machine.triple})"
    ) in str(told.value)


def test_code_for_another_family_is_not_run(small, tmp_path):
    bundle = read_bundle(small.read_bytes())
    images = []
    for image in bundle.images:
        described = {**image.description, "image": {**image.description["image"], "triple": "riscv64-unknown-linux-gnu"}}
        images.append(replace(image, description=described, triple="riscv64-unknown-linux-gnu"))
    (tmp_path / "file").write_bytes(write_bundle(replace(bundle, images=images)))
    with use_target("cpu"), pytest.raises(TargetError, match="has no code that runs on cpu .*riscv64"):
        load_bundle(tmp_path / "file").saxpy(2.0, np.ones(3), Region(np.ones(3)))


def test_features_of_processors_are_those_that_llvm_knows():
    if not host_machine().triple.startswith("x86_64"):
        pytest.skip("processors of the x86 family")
    machine = features.named_machine
    triple = host_machine().triple
    assert features.features_of(machine(triple, "x86-64")) == ()
    third = set(features.features_of(machine(triple, "x86-64-v3")))
    assert {"avx2", "fma", "bmi2", "popcnt"} <= third
    fourth = set(features.features_of(machine(triple, "x86-64-v4")))
    assert third < fourth and "avx512f" in fourth - third
    assert not {"pku", "rdrnd", "wbnoinvd"} & set(features.features_of(machine(triple, "znver4")))
    assert not features.missing_here(features.features_of(host_machine()))
    assert features.missing_here(("sse2", "sse9", "fast-movbe")) == ("sse9", "fast-movbe")
    with pytest.raises(TargetError, match="no x86_64 code for the processor 'pentium4'"):
        machine(triple, "pentium4")


def test_features_are_known_for_other_families_too():
    triple = "aarch64-unknown-linux-gnu"
    assert features.features_of(features.named_machine(triple, "generic")) == ()
    assert {"lse", "crc", "dotprod"} <= set(features.features_of(features.named_machine(triple, "neoverse-n1")))


def test_systems_are_compared_without_vendor_and_version():
    assert features.same_system("x86_64-unknown-linux-gnu", "x86_64-conda-linux-gnu")
    assert features.same_system("arm64-apple-darwin23.1.0", "arm64-apple-darwin24.0.0")
    for other in ("aarch64-unknown-linux-gnu", "x86_64-unknown-linux-musl", "x86_64-apple-darwin24", "x86_64", ""):
        assert not features.same_system("x86_64-unknown-linux-gnu", other)
