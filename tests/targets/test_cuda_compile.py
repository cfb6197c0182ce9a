"""What the CUDA target compiles kernels to. Needs no GPU, no driver, no toolkit."""

from __future__ import annotations

import math

import numpy as np
import pytest
from compile_helpers import assembles, instructions, source_of
from sample_kernels import blur, saxpy, saxpy_rounded_twice

from benchmarks.rajaperf.registry import benchmarks
from numba_offload import Accumulator, GridStride1D, Permuted, Region, TargetError, offload_kernel
from numba_offload.analysis.llvm_attributes import access, entry_attributes
from numba_offload.targets.cuda.arch import arch_for, machine_for
from numba_offload.targets.cuda.compiler import ptx_for
from numba_offload.targets.cuda.libdevice import find_libdevice

needs_libdevice = pytest.mark.skipif(
    find_libdevice() is None, reason="libdevice is not installed (wheel nvidia-nvvm, or a CUDA toolkit)"
)

N = 64


@offload_kernel
def fill(value, y):
    for i in y.indices():
        y[i] = value


def saxpy_ptx(kernel=saxpy, dtype=np.float64, arch="sm_90"):
    x, y = np.ones(N, dtype), np.ones(N, dtype)
    return ptx_for(source_of(kernel, dtype(2.0), x, Region(y)), arch)


def unary(expression, dtype):
    """A kernel that applies an expression to every element."""
    namespace = {"np": np, "math": math}
    body = f"        a = x[i]\n        b = z[i]\n        y[i] = {expression}\n"
    exec(f"def kernel(x, z, y):\n    for i in y.indices():\n{body}", namespace)
    x, z, y = (np.ones(N, dtype) for _ in range(3))
    return ptx_for(source_of(offload_kernel(namespace["kernel"]), x, z, Region(y)))


# The code itself


def test_saxpy_is_a_kernel_with_flat_typed_parameters():
    made = saxpy_ptx()
    assert f".visible .entry {made.entry}(" in made.assembly
    parameters = made.assembly.split("(", 1)[1].split(")", 1)[0].split(",")
    # alpha; data and size of x and y; extents of the launch and of a block; the error record.
    assert len(parameters) == 1 + 2 * 2 + 13
    assert ".f64" in parameters[0]


def test_what_is_only_read_goes_through_the_read_only_cache():
    opcodes = instructions(saxpy_ptx().assembly)
    assert opcodes.count("ld.global.nc.b64") == 1
    assert opcodes.count("ld.global.b64") == 1
    assert opcodes.count("st.global.b64") >= 1


def test_simple_kernels_use_no_stack():
    image, out = np.ones((8, 8)), np.ones((8, 8))
    for made in (saxpy_ptx(), ptx_for(source_of(blur, image, Region(out)))):
        assert ".local" not in made.assembly
        assert "__local_depot" not in made.assembly


def test_multiplication_and_addition_fuse_by_default():
    assert "fma.rn.f64" in instructions(saxpy_ptx().assembly)
    assert "fma.rn.f32" in instructions(saxpy_ptx(dtype=np.float32).assembly)


def test_contract_false_rounds_twice():
    opcodes = instructions(saxpy_ptx(saxpy_rounded_twice).assembly)
    assert "fma.rn.f64" not in opcodes
    assert {"mul.rn.f64", "add.rn.f64"} <= set(opcodes)


def test_contract_false_holds_in_helpers_of_numba():
    x, y = np.ones(8, complex), np.ones(8, complex)
    rounded = ptx_for(source_of(saxpy_rounded_twice, 1j, x, Region(y)))
    assert "contract" not in rounded.llvm_ir
    assert "fma.rn.f64" not in instructions(rounded.assembly)


def test_a_linear_kernel_reads_one_axis_only():
    made = saxpy_ptx()
    assert not made.positions
    assert "%tid.x" in made.assembly
    assert "%tid.y" not in made.assembly


def test_a_kernel_over_a_plane_guards_two_axes():
    image, out = np.ones((8, 8)), np.ones((8, 8))
    made = ptx_for(source_of(blur, image, Region(out)))
    assert made.positions
    assert {"%tid.x", "%tid.y", "%tid.z"} <= set(made.assembly.replace(";", " ").split())


def test_a_grid_stride_loop_moves_by_all_threads():
    x, y = np.ones(N), np.ones(N)
    made = ptx_for(source_of(saxpy, 2.0, x, Region(y, GridStride1D())))
    assert "ld.global.nc.b64" in instructions(made.assembly)


def test_an_index_array_is_read_on_the_device():
    y = np.ones(N)
    made = ptx_for(source_of(fill, 1.0, Region(y, Permuted(np.arange(N)))))
    assert "ld.global.nc.b64" in instructions(made.assembly)


def test_updates_of_an_accumulator_are_atomic_for_the_device():
    @offload_kernel
    def count(x, sums):
        for i in x.indices():
            sums.update(0, x[i])

    x, sums = np.ones(N), np.zeros(1)
    opcodes = instructions(ptx_for(source_of(count, Region(x), Accumulator(sums))).assembly)
    # Without a scope PTX means the device's threads.
    assert any(o in ("atom.global.add.f64", "atom.relaxed.gpu.global.add.f64") for o in opcodes)


def test_code_is_generated_for_the_architecture_asked_for(tmp_path):
    for arch in ("sm_80", "sm_90"):
        made = saxpy_ptx(arch=arch)
        assert f".target {arch}" in made.assembly
        assert assembles(made.assembly, arch, tmp_path) is None


def test_compiling_twice_gives_the_same_code():
    assert saxpy_ptx().assembly == saxpy_ptx().assembly


# Failures


def test_a_checked_access_reports_to_the_error_record_once():
    made = saxpy_ptx()
    assert made.may_fail
    opcodes = instructions(made.assembly)
    assert opcodes.count("atom.relaxed.gpu.global.cas.b32") == 1
    assert "trap" not in made.assembly


def test_code_that_cannot_fail_needs_no_error_record():
    y = np.ones(N)
    made = ptx_for(source_of(fill, 1.0, Region(y)))
    assert not made.may_fail
    assert not any(o.startswith("atom") for o in instructions(made.assembly))


def test_what_llvm_proves_safe_cannot_fail():
    @offload_kernel
    def guarded(x, y):
        for i in y.indices():
            if i < x.size:
                y[i] = x[i]

    x, y = np.ones(N), np.ones(N)
    assert not ptx_for(source_of(guarded, x, Region(y))).may_fail


def test_an_integer_division_by_zero_is_reported():
    @offload_kernel
    def divide(x, y):
        for i in y.indices():
            y[i] = 10 // y[i]

    y = np.ones(N, np.int64)
    assert ptx_for(source_of(divide, y.copy(), Region(y))).may_fail


# Mathematics

FUNCTIONS = (
    "math.exp(a)", "math.log(a)", "math.sin(a)", "math.cos(a)", "math.tan(a)", "math.sqrt(a)", "math.erf(a)",
    "math.gamma(a)", "math.lgamma(a)", "math.log1p(a)", "math.expm1(a)", "math.atan2(a, b)", "math.hypot(a, b)",
    "math.copysign(a, b)", "math.pow(a, b)", "math.isnan(a)", "math.trunc(a)", "math.frexp(a)[0]", "math.ldexp(a, 3)",
    "np.exp2(a)", "np.log2(a)", "np.fmod(a, b)", "np.rint(a)", "np.cbrt(a)", "np.nextafter(a, b)",
    "np.logaddexp2(a, b)", "math.fmod(a, b)", "math.remainder(a, b)", "math.modf(a)[0]", "np.frexp(a)[1]", "math.cbrt(a)",
    "np.heaviside(a, b)", "np.exp2(a) + math.exp2(b)", "math.log2(a) + np.log2(b)",
    "np.floor(a) + np.ceil(b)", "np.maximum(a, b)", "round(a)", "a // b", "a % b", "a ** b", "a ** 3", "a ** i",
)  # fmt: skip


@needs_libdevice
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("expression", FUNCTIONS)
def test_mathematics_is_linked_in(expression, dtype, tmp_path):
    made = unary(expression, dtype)
    assert ".extern" not in made.assembly
    assert "__nvvm_reflect" not in made.llvm_ir
    assert assembles(made.assembly, made.arch, tmp_path) is None


@needs_libdevice
@pytest.mark.parametrize(
    "expression", ["a * b", "a / b", "abs(a)", "a ** b", "np.exp(a)", "np.sqrt(a)", "np.log(a)"]
)
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_arithmetic_is_linked_in(expression, dtype, tmp_path):
    made = unary(expression, dtype)
    assert ".extern" not in made.assembly
    assert assembles(made.assembly, made.arch, tmp_path) is None


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint32, np.int64])
@pytest.mark.parametrize("expression", ["a // b", "a % b", "a ** 3", "abs(a)", "a << 2", "a & b"])
def test_integer_arithmetic_stays_in_integers(expression, dtype):
    made = unary(expression, dtype)
    assert not any(".f64" in o or ".f32" in o for o in instructions(made.assembly))


def test_division_and_square_root_are_correctly_rounded_and_keep_denormals():
    for dtype, bits in ((np.float32, "f32"), (np.float64, "f64")):
        opcodes = instructions(unary("math.sqrt(a) / b", dtype).assembly)
        assert f"div.rn.{bits}" in opcodes
        assert f"sqrt.rn.{bits}" in opcodes


@pytest.mark.parametrize(("power", "multiplications"), [(2, 1), (3, 2), (4, 2)])
def test_small_powers_are_products(power, multiplications):
    opcodes = instructions(unary(f"a ** {power}", np.float64).assembly)
    assert opcodes.count("mul.rn.f64") + opcodes.count("mul.f64") == multiplications
    assert not any(o.startswith(("fma", "add.rn", "ex2")) for o in opcodes)


def test_float_remainder_is_not_a_division():
    if find_libdevice() is None:
        pytest.skip("libdevice is not installed")
    # The back end's own expansion divides once, which is wrong for large quotients.
    assert "frem" not in unary("a % b", np.float64).llvm_ir


def test_a_missing_libdevice_is_told_with_its_remedy(monkeypatch):
    from numba_offload.targets.cuda import libdevice

    monkeypatch.setattr(libdevice, "find_libdevice", lambda: None)
    with pytest.raises(TargetError, match=r"numba-offload\[cuda13\]"):
        unary("math.exp(a)", np.float64)


# Architectures


@pytest.mark.parametrize(
    ("capability", "arch"),
    [((8, 0), "sm_80"), ((9, 0), "sm_90"), ((8, 8), "sm_87"), ((15, 3), "sm_121"), ((7, 5), "sm_75")],
)
def test_an_unknown_device_gets_the_newest_older_architecture(capability, arch):
    assert arch_for(capability) == arch


def test_unknown_architectures_are_refused():
    with pytest.raises(TargetError, match="sm_90"):
        machine_for("sm_91")
    with pytest.raises(TargetError, match=r"5\.0 is the oldest"):
        arch_for((3, 5))


# The thirteen benchmark kernels

LAUNCHES = [
    pytest.param(launch, id=f"{benchmark.name}-{launch.kernel.__name__}")
    for benchmark in benchmarks()
    for launch in benchmark.launches(benchmark.set_up(3000))
]


@needs_libdevice
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize("launch", LAUNCHES)
def test_benchmark_kernels_compile(launch, arch, tmp_path):
    made = ptx_for(source_of(launch.kernel, *launch.arguments), arch)
    assert ".local" not in made.assembly
    assert ".extern" not in made.assembly
    assert assembles(made.assembly, arch, tmp_path) is None


# LLVM's opinion on parameters


@pytest.mark.parametrize("launch", LAUNCHES)
def test_llvm_is_at_least_as_strong_as_the_inferred_intents(launch):
    made = ptx_for(source_of(launch.kernel, *launch.arguments))
    attributes = entry_attributes(made.llvm_ir, made.entry)
    allowed = {"none": {"none"}, "to": {"none", "read"}, "from": {"write", "any"}, "tofrom": {"write", "any"}}
    for name, how in launch.kernel.mappings(*launch.arguments).items():
        if how == "literal":
            continue
        assert access(attributes[f"{name}.data"]) in allowed[how], name


def test_llvm_marks_what_is_read_and_what_is_written():
    made = saxpy_ptx()
    attributes = entry_attributes(made.llvm_ir, made.entry)
    assert access(attributes["x.data"]) == "read"
    assert access(attributes["y.data"]) == "any"
    assert "noalias" in attributes["x.data"]
    y = np.ones(N)
    made = ptx_for(source_of(fill, 1.0, Region(y)))
    assert access(entry_attributes(made.llvm_ir, made.entry)["y.data"]) == "write"


def test_attributes_are_read_from_text():
    text = (
        "define ptx_kernel void @k(ptr noalias readonly captures(none) align 8 %x.data, "
        'i64 %"n.shape[0]", ptr %e) #0 {\n'
    )
    assert entry_attributes(text, "k") == {
        "x.data": frozenset({"noalias", "readonly", "captures(none)", "align 8"}),
        "n.shape[0]": frozenset(),
        "e": frozenset(),
    }
    with pytest.raises(KeyError, match="other"):
        entry_attributes(text, "other")
