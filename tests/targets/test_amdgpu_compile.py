"""What kernels become for AMD GPUs: linked code objects. Needs no GPU and no ROCm runtime."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from compile_helpers import source_of
from sample_kernels import blur, saxpy, saxpy_rounded_twice

from benchmarks.rajaperf.registry import benchmarks
from numba_offload import Accumulator, GridStride1D, Permuted, Region, TargetError, Tiles2D, offload_kernel
from numba_offload.analysis.llvm_attributes import access, entry_attributes
from numba_offload.targets.amdgpu import devicelibs, linker
from numba_offload.targets.amdgpu.arch import ARCHITECTURES, architecture
from numba_offload.targets.amdgpu.compiler import code_object_for
from numba_offload.targets.amdgpu.context import private_allocas

ARCHS = ["gfx90a", "gfx942", "gfx1100", "gfx1201"]
pytestmark = [
    pytest.mark.skipif(linker.find_linker() is None, reason="ld.lld is not installed (Debian's package lld-19)"),
    pytest.mark.skipif(
        devicelibs.find_device_libraries() is None,
        reason="ROCm's device libraries are not installed (Debian's package rocm-device-libs)",
    ),
]
N = 64
EM_AMDGPU = 224


@offload_kernel
def functions(x, y):
    for i in y.indices():
        a = x[i]
        y[i] = (
            math.exp(a) + math.log(a) + math.sin(a) + math.cos(a) + math.tan(a) + a**2.5 + math.sqrt(a) + math.floor(a)
            + math.erf(a) + math.gamma(a) + math.lgamma(a) + math.hypot(a, 2.0) + math.atan2(a, 3.0) + math.log1p(a)
            + math.expm1(a) + a % 0.7 + a // 0.7 + a**3
        )  # fmt: skip


@offload_kernel
def taken_apart(x, y):
    for i in y.indices():
        a = x[i]
        mantissa, exponent = math.frexp(a)
        fraction, whole = math.modf(a)
        y[i] = (
            mantissa + exponent + fraction + whole + math.ldexp(a, 3) + math.nextafter(a, 2.0) + math.fmod(a, 0.7)
            + math.remainder(a, 0.7) + math.cbrt(a) + abs((a + 1j) ** (0.5 + 2j)) + a**i + np.heaviside(a, 0.5)
        )  # fmt: skip


@offload_kernel
def power(x, y, out):
    for i in out.indices():
        out[i] = x[i] ** y[i]


@offload_kernel
def count(x, totals):
    for i in x.indices():
        totals.update(int(x[i]) % 4, x[i])


@offload_kernel
def checked(x, where, y):
    for i in y.indices():
        if x[i] < 0:
            raise ValueError("negative", i, x[i])
        y[i] = x[where[i]] // x[i]


def compiled(kernel, *args, arch="gfx90a"):
    return code_object_for(source_of(kernel, *args), arch)


def metadata(kernel, name):
    """A number of the kernel's metadata."""
    return int(re.search(rf"^ +\.{name}: +(\d+)$", kernel.assembly, re.MULTILINE)[1])


def vectors(count, dtype=np.float64):
    return [np.ones(N, dtype) for _ in range(count)]


@pytest.mark.parametrize("arch", ARCHS)
def test_a_code_object_is_an_elf_file_for_the_architecture(arch):
    x, y = vectors(2)
    made = compiled(saxpy, 2.0, x, Region(y), arch=arch)
    assert made.data[:4] == b"\x7fELF"
    assert int.from_bytes(made.data[18:20], "little") == EM_AMDGPU
    assert f'amdgcn-amd-amdhsa--{arch}"' in made.assembly
    assert metadata(made, "wavefront_size") == ARCHITECTURES[arch].wavefront
    assert made.entry.encode() + b".kd" in made.data


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("strategy", [None, GridStride1D(), Permuted(range(N))], ids=lambda s: type(s).__name__)
def test_simple_kernels_use_no_private_memory_and_spill_nothing(arch, strategy):
    x, y = vectors(2)
    made = compiled(saxpy, 2.0, x, Region(y, strategy), arch=arch)
    assert metadata(made, "private_segment_fixed_size") == 0
    assert metadata(made, "vgpr_spill_count") == metadata(made, "sgpr_spill_count") == 0
    assert metadata(made, "group_segment_fixed_size") == 0
    assert "flat_load" not in made.assembly, "pointers of arguments are known to be global"


@pytest.mark.parametrize("arch", ARCHS)
def test_two_axes_and_tiles(arch):
    image, out = np.ones((8, 8)), np.ones((8, 8))
    for strategy in (None, Tiles2D(2, 4)):
        made = compiled(blur, image, Region(out, strategy), arch=arch)
        assert made.positions
        assert metadata(made, "private_segment_fixed_size") == 0


def test_the_arguments_are_those_of_the_record_and_of_the_launch():
    x, y = vectors(2)
    made = compiled(saxpy, 2.0, x, Region(y))
    kinds = re.findall(r"^ +\.value_kind: +(\w+)$", made.assembly, re.MULTILINE)
    explicit = [kind for kind in kinds if not kind.startswith("hidden_")]
    # alpha; x and its extent; y and its extent; extents of the launch, the error record, the first thread and block
    assert len(explicit) == 1 + 2 + 2 + 13


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_mathematics(arch, dtype):
    x, y = vectors(2, dtype)
    made = compiled(functions, x, Region(y), arch=arch)
    assert not re.search(r"\bs_(swappc|setpc)_b64", made.assembly.split("s_endpgm")[0]), "everything is inlined"


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_taken_apart(arch, dtype):
    x, y = vectors(2, dtype)
    made = compiled(taken_apart, x, Region(y), arch=arch)
    assert metadata(made, "private_segment_fixed_size") == 0


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("dtype", ["i4", "i8", "u4", "f4", "f8"])
def test_atomic_updates(arch, dtype):
    x = np.ones(N, dtype)
    made = compiled(count, Region(x), Accumulator(np.zeros(4, dtype)), arch=arch)
    assert "atomic" in made.assembly


@pytest.mark.parametrize("arch", ARCHS)
def test_failures(arch):
    x, where, y = np.ones(N, "i8"), np.zeros(N, "i8"), np.zeros(N, "i8")
    made = compiled(checked, x, where, Region(y), arch=arch)
    assert made.may_fail
    assert "cmpswap" in made.assembly, "the first failing thread claims the record"



@pytest.mark.parametrize("arch", ARCHS)
def test_contraction(arch):
    x, y = vectors(2)
    assert "fma" in compiled(saxpy, 2.0, x, Region(y), arch=arch).assembly
    assert "fma" not in compiled(saxpy_rounded_twice, 2.0, x, Region(y), arch=arch).assembly


@pytest.mark.parametrize("dtype", ["c8", "c16"])
@pytest.mark.parametrize("arch", ARCHS)
def test_contraction_in_helpers_of_numba(arch, dtype):
    """Complex multiplication is a function that Numba's lowering compiles on its own: the kernel's options hold there."""
    x, y = (v.astype(dtype) for v in vectors(2))
    assert "fma" in compiled(saxpy, 2.0 + 1j, x, Region(y), arch=arch).assembly
    rounded = compiled(saxpy_rounded_twice, 2.0 + 1j, x, Region(y), arch=arch)
    assert "contract" not in rounded.llvm_ir
    assert not re.search(r"v_(pk_)?(dual_)?fma", rounded.assembly)


@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_complex_powers(dtype):
    """The helper for complex64 has stack slots of its own, written by hand."""
    x, y = (v.astype(dtype) for v in vectors(2))
    assert metadata(compiled(power, x, y, Region(x.copy())), "private_segment_fixed_size") == 0


RAJAPERF = [(benchmark, number) for benchmark in benchmarks() for number in range(len(benchmark.kernels))]


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(("benchmark", "number"), RAJAPERF, ids=lambda v: getattr(v, "name", v))
def test_the_thirteen_kernels(benchmark, number, arch):
    launch = benchmark.launches(benchmark.set_up(4000))[number]
    made = compiled(launch.kernel, *launch.arguments, arch=arch)
    assert metadata(made, "private_segment_fixed_size") == 0
    attributes = entry_attributes(made.llvm_ir, made.entry)
    for name, how in launch.kernel.mappings(*launch.arguments).items():
        if how == "to":
            assert access(attributes[f"{name}.data"]) in ("read", "none")


def test_stack_slots_move_to_private_memory():
    text = '  %"a" = alloca {i32, double}, align 8\n  %"b" = alloca i8\n  store i8 0, i8* %"b"\n'
    assert private_allocas(text) == (
        '  %"a.private" = alloca {i32, double}, align 8, addrspace(5)\n'
        '  %"a" = addrspacecast ptr addrspace(5) %"a.private" to ptr\n'
        '  %"b.private" = alloca i8, addrspace(5)\n'
        '  %"b" = addrspacecast ptr addrspace(5) %"b.private" to ptr\n'
        '  store i8 0, i8* %"b"\n'
    )
    assert private_allocas("  %c = alloca i8, i64 %n") == (
        "  %c.private = alloca i8, i64 %n, addrspace(5)\n"
        "  %c = addrspacecast ptr addrspace(5) %c.private to ptr"
    )


def test_tools_named_by_the_user_come_first(monkeypatch, tmp_path):
    found, program = devicelibs.find_device_libraries(), linker.find_linker()
    (tmp_path / "ocml.bc").write_bytes((found / "ocml.bc").read_bytes())
    (tmp_path / "linker").symlink_to(program)
    monkeypatch.setenv("NUMBA_OFFLOAD_ROCM_DEVICE_LIBS", str(tmp_path))
    monkeypatch.setenv("NUMBA_OFFLOAD_LLD", str(tmp_path / "linker"))
    assert devicelibs.find_device_libraries() == tmp_path
    assert linker.find_linker() == str(tmp_path / "linker")


def test_an_unknown_architecture():
    with pytest.raises(TargetError, match="'gfx1'.*gfx90a"):
        architecture("gfx1")


def test_libraries_of_another_llvm_are_told(monkeypatch):
    monkeypatch.setattr("numba_offload.targets.amdgpu.compiler.load_device_libraries", lambda arch: [b"BC\xc0\xdenewer"])
    x, y = vectors(2)
    with pytest.raises(TargetError, match="LLVM .* cannot read .*device libraries"):
        compiled(functions, x, Region(y))


def test_missing_tools_say_what_to_install(monkeypatch):
    x, y = vectors(2)
    monkeypatch.setattr(linker, "find_linker", lambda: None)
    with pytest.raises(TargetError, match=r"ld\.lld.*lld"):
        compiled(saxpy, 2.0, x, Region(y))
    monkeypatch.setattr(devicelibs, "find_device_libraries", lambda: None)
    with pytest.raises(TargetError, match="rocm-device-libs"):
        compiled(functions, x, Region(y))


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_every_known_architecture_compiles_and_links(arch):
    x, y = vectors(2)
    assert compiled(functions, x, Region(y), arch=arch).arch == arch
