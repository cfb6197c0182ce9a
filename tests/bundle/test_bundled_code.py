"""The code in bundles: taken out by LLVM's tools, launched on stand-ins for drivers, on emulated devices and on a GPU."""

from __future__ import annotations

import ctypes
import re
import shutil
import struct
import subprocess
from itertools import pairwise
from types import SimpleNamespace

import field_kernels
import numpy as np
import pytest
from fake_cuda import FakeDriver

from numba_offload import GridStride1D, Region, compile_bundle, load_bundle, use_target
from numba_offload.bundle.offload_binary import read_images
from numba_offload.mapping.state import DeviceState
from numba_offload.targets import registry
from numba_offload.targets.amdgpu import devicelibs, linker
from numba_offload.targets.amdgpu.driver import HIPDriver
from numba_offload.targets.amdgpu.target import AMDGPUTarget
from numba_offload.targets.cuda.driver import CUDADriver
from numba_offload.targets.cuda.libdevice import find_libdevice
from numba_offload.targets.cuda.ptxas import find_ptxas
from numba_offload.targets.cuda.target import CUDATarget
from numba_offload.targets.gpu.entry import GPU_LAUNCH_FORMAT, GPU_LAUNCH_PARAMETERS
from numba_offload.targets.toolchain import Toolchain

OBJDUMP, PACKAGER = "llvm-objdump-19", "clang-offload-packager-19"
AMD = linker.find_linker() is not None and devicelibs.find_device_libraries() is not None
CUDA = find_libdevice() is not None
SAXPY = [(field_kernels.saxpy, "f8, f8[::1], Region(f8[::1])")]
N = 1000

needs_amd = pytest.mark.skipif(not AMD, reason="AMD code cannot be linked here (Debian's packages lld-19, rocm-device-libs)")
needs_tools = pytest.mark.skipif(
    not (shutil.which(OBJDUMP) and shutil.which(PACKAGER)), reason=f"{OBJDUMP} and {PACKAGER} are not installed"
)


def compiled(folder, calls, targets):
    path = folder / "code.bundle"
    compile_bundle(calls, targets, path)
    return path


def extract(path, number, out):
    """An image as a user would take it out."""
    subprocess.run([PACKAGER, str(path), f"--image=file={out},image={number}"], check=True, capture_output=True)
    return out.read_bytes()


@pytest.fixture
def nothing_compiles(monkeypatch):
    def switch():
        def refuse(*args, **kwargs):
            raise AssertionError("something is compiled")

        monkeypatch.setattr(Toolchain, "compile_function", refuse)

    return switch


# ---------------------------------------------------------------------------------------------------------------- tools


@needs_amd
@needs_tools
def test_an_extracted_code_object_disassembles(tmp_path):
    path = compiled(tmp_path, SAXPY, ["cpu", "gfx90a"])
    images = load_bundle(path).images
    for number in (2, 3):
        code = extract(path, number, tmp_path / "code.co")
        assert code == images[number].image().data
        shown = subprocess.run(
            [OBJDUMP, "-d", "--mcpu=gfx90a", str(tmp_path / "code.co")], capture_output=True, text=True, check=True
        ).stdout
        assert f"<{images[number].image().entry}>:" in shown
        assert "s_endpgm" in shown and re.search(r"global_(load|store)_dwordx2", shown)


@needs_tools
def test_every_image_is_listed_and_extracted(tmp_path):
    path = compiled(tmp_path, SAXPY, ["cpu", "compute_80"])
    listed = subprocess.run([OBJDUMP, "--offloading", str(path)], capture_output=True, text=True, check=True).stdout
    assert re.findall(r"^kind +(\S+)", listed, re.MULTILINE)[1:] == ["elf", "elf", "ptx", "ptx"]
    for number, image in enumerate(load_bundle(path).images):
        assert extract(path, number, tmp_path / "out") == image.image().data


@pytest.mark.skipif(find_ptxas() is None, reason="ptxas is not installed")
def test_machine_code_for_nvidia_is_an_elf_file_for_the_architecture(tmp_path):
    path = compiled(tmp_path, SAXPY, ["sm_80", "sm_90"])
    for image in load_bundle(path).images:
        data = image.image().data
        assert data[:4] == b"\x7fELF" and struct.unpack_from("<H", data, 18) == (190,)  # EM_CUDA
        assert image.image().entry.encode() in data


# ------------------------------------------------------------------------------------------------------------ stand-ins


def current(monkeypatch, target):
    """Make a target over a stand-in the one that launches take."""
    monkeypatch.setitem(registry._states, target.name, registry.TargetState(target, DeviceState(target.memory, name=target.name)))
    monkeypatch.setenv("NUMBA_OFFLOAD_TARGET", target.name)


def doubles(address, n=N):
    return np.ctypeslib.as_array((ctypes.c_double * n).from_address(address))


@pytest.mark.parametrize("targets, kind", [(["sm_80", "sm_90", "compute_80"], "cubin"), (["sm_80", "compute_80"], "ptx")])
def test_a_launch_on_a_stand_in_for_nvidias_driver(targets, kind, tmp_path, monkeypatch, nothing_compiles):
    if kind == "cubin" and find_ptxas() is None:
        pytest.skip("ptxas is not installed")
    path = compiled(tmp_path, [*SAXPY, (field_kernels.shifted, "f8[::1], i8, Region(f8[::1])")], targets)
    loaded = []

    class Driver(FakeDriver):
        def _cuModuleLoadDataEx(self, image, *args):
            loaded.append(image)
            return super()._cuModuleLoadDataEx(image, *args)

    api = Driver(lambda: 5 + len(GPU_LAUNCH_PARAMETERS))

    def saxpy(launch):
        y = doubles(launch.value(3))
        y += launch.value(0, ctypes.c_double) * doubles(launch.value(1))

    api.on_launch = saxpy
    current(monkeypatch, CUDATarget(CUDADriver(api)))
    nothing_compiles()
    bundle = load_bundle(path)
    assert not loaded
    x, y = np.arange(N, dtype=float), np.ones(N)
    bundle.saxpy(2.0, x, Region(y))
    bundle.saxpy[8, 125](0.5, x, Region(y))
    np.testing.assert_array_equal(y, 2.5 * x + 1)
    (code,) = loaded
    assert code.startswith(b"\x7fELF" if kind == "cubin" else b"//")
    arch = {"cubin": "sm_90", "ptx": "sm_80"}[kind]
    images = [i for i in bundle.images if (i.built_for.kind, i.built_for.arch) == (kind, arch) and i.kernel == 0]
    assert code == images[1].image().data + b"\0"
    assert [launch.block for launch in api.launches] == [(256, 1, 1), (125, 1, 1)]


@needs_amd
def test_a_launch_on_a_stand_in_for_hip(tmp_path, monkeypatch, nothing_compiles):
    pytest.importorskip("msgpack")
    from emulation.hip import EmulatedHIP

    path = compiled(tmp_path, SAXPY, ["gfx90a", "gfx942"])
    api = EmulatedHIP("gfx942")

    def saxpy(launch):
        slots = [ctypes.c_void_p.from_address(launch.parameters + 8 * k).value for k in range(5)]
        y = doubles(ctypes.c_int64.from_address(slots[3]).value)
        y += ctypes.c_double.from_address(slots[0]).value * doubles(ctypes.c_int64.from_address(slots[1]).value)

    loaded = []
    load = api._hipModuleLoadData
    api._hipModuleLoadData = lambda image: loaded.append(image) or load(image)
    api.on_launch = saxpy
    current(monkeypatch, AMDGPUTarget(HIPDriver(api)))
    nothing_compiles()
    bundle = load_bundle(path)
    x, y = np.arange(N, dtype=float), np.ones(N)
    bundle.saxpy(2.0, x, Region(y))
    np.testing.assert_array_equal(y, 2 * x + 1)
    assert [image.image().data for image in bundle.images if image.built_for.arch == "gfx942"][1:] == loaded


# ---------------------------------------------------------------------------------------------------------- every target


@pytest.fixture(scope="module")
def everywhere(tmp_path_factory):
    """A user's kernels for all that can be compiled for here."""
    targets = ["cpu"] + ["sm_80", "compute_80"] * CUDA + ["gfx90a", "gfx942", "gfx1100"] * AMD
    return compiled(tmp_path_factory.mktemp("everywhere"), field_kernels.SIGNATURES, targets)


def test_a_bundle_computes_the_same_on_every_target(target, everywhere):
    bundle = load_bundle(everywhere)
    n = 100
    x, y = np.arange(n, dtype=float), np.ones(n)
    bundle.saxpy(2.0, x, Region(y))
    np.testing.assert_array_equal(y, 2 * x + 1)
    small = np.ones(3 * n, "f4")
    bundle.saxpy[2, 32](np.float32(2), small[::3], Region(small[1::3], GridStride1D()))
    np.testing.assert_array_equal(small, np.tile(np.float32([1, 3, 1]), n))
    rows = np.zeros(n, field_kernels.ROW)
    rows["mass"], rows["ok"] = x, np.arange(n) % 2
    y = np.zeros(n)
    bundle.weigh((field_kernels.Pair(0.5, rows), (10, None)), Region(y))
    np.testing.assert_array_equal(y, np.where(rows["ok"], 1.5 * x + 11, 0))
    y, inside = np.zeros(n), np.linspace(0.1, 2, n)
    bundle.curved(inside, Region(y))
    expected = np.zeros(n)
    with use_target("cpu"):
        field_kernels.curved(inside, Region(expected))
    np.testing.assert_allclose(y, expected, rtol=1e-13)
    y = np.zeros(n)
    bundle.shifted(np.arange(n + 5.0), 5, Region(y))
    np.testing.assert_array_equal(y, x + 5)


def test_a_bundle_fails_with_the_same_words_on_every_target(target, everywhere, nothing_compiles):
    nothing_compiles()
    bundle = load_bundle(everywhere)
    with pytest.raises(IndexError, match="index 8 is out of bounds for axis 0 with size 8 of x .kernel shifted, .*line"):
        bundle.shifted(np.arange(8.0), 1, Region(np.zeros(8)))
    with pytest.raises(field_kernels.Complaint, match=r"too large \[kernel picky, .*thread \(1, 0, 0\)") as told:
        bundle.picky(1.0, Region(np.array([0.0, 7.5])))
    assert told.value.args[1:] == (7.5,)


# --------------------------------------------------------------------------------------------------------------- a GPU


class Alone:
    """NVIDIA's driver through cuda.bindings, and nothing of this package."""

    def __init__(self):
        from cuda.bindings import driver

        self.driver = driver
        self("cuInit", 0)
        device = self("cuDeviceGet", 0)
        self("cuCtxSetCurrent", self("cuDevicePrimaryCtxRetain", device))
        about = driver.CUdevice_attribute
        self.capability = tuple(
            self("cuDeviceGetAttribute", getattr(about, f"CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_{part}"), device)
            for part in ("MAJOR", "MINOR")
        )

    def __call__(self, name, *args):
        code, *result = getattr(self.driver, name)(*args)
        assert int(code) == 0, f"{name}: {code}"
        return result[0] if result else None

    def upload(self, array):
        address = int(self("cuMemAlloc", array.nbytes))
        self("cuMemcpyHtoD", address, array.ctypes.data, array.nbytes)
        return address

    def launch(self, code, entry, blocks, block, packer, *values):
        module = self("cuModuleLoadData", code + b"\0")
        function = self("cuModuleGetFunction", module, entry.encode())
        buffer = ctypes.create_string_buffer(packer.pack(*values))
        start = ctypes.addressof(buffer)
        pointers = (ctypes.c_void_p * len(values))(*range(start, start + 8 * len(values), 8))
        self("cuLaunchKernel", function, blocks, 1, 1, block, 1, 1, 0, 0, ctypes.addressof(pointers), 0)
        self("cuCtxSynchronize")
        self("cuModuleUnload", module)


def launched(failure):
    """What an entry is given of a launch: logical threads, block, error record; the first thread and block are zeros."""
    given = (N, 1, 1, 256, 1, 1, failure)
    assert GPU_LAUNCH_PARAMETERS[:7] == (*(f"{of}.{axis}" for of in ("threads", "block") for axis in "xyz"), "error")
    return (*given, *[0] * (len(GPU_LAUNCH_PARAMETERS) - 7))


@pytest.mark.cuda
@pytest.mark.parametrize("form", ["machine code", "ptx"])
def test_an_extracted_image_computes_the_same_by_the_driver_alone(form, tmp_path, monkeypatch, nothing_compiles):
    monkeypatch.setenv("NUMBA_OFFLOAD_TARGET", "cuda")
    alone = Alone()
    major, minor = alone.capability
    if form == "machine code" and find_ptxas() is None:
        pytest.skip("ptxas is not installed")
    name = f"sm_{major}{minor}" if form == "machine code" else "compute_80"
    path = compiled(tmp_path, SAXPY, ["cpu", name])
    nothing_compiles()
    x, y = np.random.default_rng(1).random((2, N))
    expected = y.copy()
    load_bundle(path).saxpy(2.5, x, Region(expected))
    np.testing.assert_allclose(expected, 2.5 * x + y, rtol=1e-15)
    for number in (2, 3):
        about = load_bundle(path).images[number].image()
        packager = shutil.which(PACKAGER) or shutil.which("clang-offload-packager")
        if packager is not None:
            out = tmp_path / "image"
            subprocess.run([packager, str(path), f"--image=file={out},image={number}"], check=True, capture_output=True)
            code = out.read_bytes()
        else:
            code = next(i.data for i in read_images(path.read_bytes()) if i.strings.get("image") == str(number))
        assert (code[:4] == b"\x7fELF") == (form == "machine code")
        failure = alone.upload(np.zeros(13, np.int64))
        on_device = alone.upload(x), alone.upload(y)
        packer = struct.Struct("<" + about.parameters + GPU_LAUNCH_FORMAT)
        own = 2.5, on_device[0], N, on_device[1], N
        alone.launch(code, about.entry, -(-N // 256), 256, packer, *own, *launched(failure))
        found = np.empty(N)
        alone("cuMemcpyDtoH", found.ctypes.data, on_device[1], found.nbytes)
        np.testing.assert_array_equal(found, expected)
        for address in (failure, *on_device):
            alone("cuMemFree", address)


def test_the_driver_alone_is_given_what_a_launch_gives(tmp_path):
    """What the test on a GPU relies on, where there is none."""
    (safe, _) = load_bundle(compiled(tmp_path, SAXPY, ["compute_80"])).images
    image = safe.image()
    packer = struct.Struct("<" + image.parameters + GPU_LAUNCH_FORMAT)
    slots = []
    alone = Alone.__new__(Alone)
    alone.driver = SimpleNamespace(
        cuModuleLoadData=lambda code: (0, "module"),
        cuModuleGetFunction=lambda module, name: (0, name),
        cuLaunchKernel=lambda *args: slots.extend((ctypes.c_void_p * count).from_address(args[9])) or (0,),
        cuCtxSynchronize=lambda: (0,),
        cuModuleUnload=lambda module: (0,),
    )
    values = 2.5, 1, N, 2, N, *launched(3)
    count = len(values)
    alone.launch(image.data, image.entry, 4, 256, packer, *values)
    assert packer.size == 8 * count
    assert [after - before for before, after in pairwise(slots)] == [8] * (count - 1)
