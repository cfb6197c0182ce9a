"""What may be passed as an array, and what is refused with which words."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from numba_offload import errors
from numba_offload.mapping import DeviceArray, as_array, check_array, check_writable
from numba_offload.targets.registry import target_of_device


class CudaArray:
    """Exports the CUDA array interface over memory that is never touched."""

    def __init__(self, **entries):
        self.__cuda_array_interface__ = {
            "shape": (3, 4),
            "typestr": "<f4",
            "data": (0x1000, False),
            "version": 3,
            **entries,
        }


def test_an_ndarray_is_taken_as_it_is():
    x = np.ones(3)
    assert as_array(x, "x") is x


@pytest.mark.parametrize(
    "obj", [1, 2.0, 3j, True, None, "s", [1.0, 2.0], (1,), np.float64(1), np.ndarray, object()]
)
def test_what_is_no_array_gives_none(obj):
    assert as_array(obj, "x") is None


def test_memmap_and_recarray_share_their_memory(tmp_path):
    mapped = np.memmap(tmp_path / "m", dtype="f8", shape=4, mode="w+")
    plain = as_array(mapped, "m")
    assert type(plain) is np.ndarray
    assert np.shares_memory(plain, mapped)
    records = np.zeros(3, dtype=[("a", "i4"), ("b", "f8")]).view(np.recarray)
    plain = as_array(records, "r")
    assert type(plain) is np.ndarray
    assert plain.dtype.type is np.void
    assert np.shares_memory(plain, records)


def test_a_subclass_that_only_adds_attributes_is_taken():
    class Tagged(np.ndarray):
        tag = "t"

    assert type(as_array(np.ones(3).view(Tagged), "x")) is np.ndarray


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize("make", [lambda: np.ma.masked_array([1.0, 2.0], [0, 1]), lambda: np.matrix([[1.0]])])
def test_a_subclass_with_its_own_meaning_is_refused(make):
    with pytest.raises(errors.UnsupportedArrayError, match=r"argument 'p\.vel'.*float64"):
        as_array(make(), "p.vel")


class TestCudaInterface:
    def test_c_order_is_filled_in(self):
        array = as_array(CudaArray(), "x")
        assert (array.pointer, array.shape, array.strides) == (0x1000, (3, 4), (16, 4))
        assert (array.dtype, array.readonly, array.device_type, array.stream) == (np.float32, False, 2, None)
        assert (array.ndim, array.size, array.nbytes) == (2, 12, 48)

    def test_strides_stream_and_readonly_are_kept(self):
        array = as_array(CudaArray(strides=(4, 12), stream=2, data=(0x2000, True)), "x")
        assert (array.strides, array.stream, array.readonly) == ((4, 12), 2, True)
        with pytest.raises(errors.LaunchError, match=r"'x'.*read-only"):
            check_writable(array, "x")

    def test_structured_descr(self):
        array = as_array(CudaArray(typestr="|V12", descr=[("a", "<i4"), ("b", "<f8")]), "x")
        assert array.dtype == np.dtype([("a", "i4"), ("b", "f8")])

    @pytest.mark.parametrize(
        "entries", [{"mask": object()}, {"stream": 0}, {"strides": (4,)}, {"typestr": "nonsense"}]
    )
    def test_invalid_ones_are_refused(self, entries):
        with pytest.raises(errors.UnsupportedArrayError, match="'x'"):
            as_array(CudaArray(**entries), "x")

    def test_an_exporter_that_raises_is_named(self):
        class Tensor:
            @property
            def __cuda_array_interface__(self):
                raise RuntimeError("requires grad")

        with pytest.raises(errors.UnsupportedArrayError, match=r"'x'.*requires grad"):
            as_array(Tensor(), "x")

    def test_the_owner_stays_alive(self):
        source = CudaArray()
        assert as_array(source, "x").owner is source

    def test_rocm_libraries_export_the_cuda_interface_too(self):
        source = CudaArray()
        type_with_dlpack = type("Hip", (CudaArray,), {"__dlpack_device__": lambda self: (10, 1)})
        array = as_array(type_with_dlpack(), "x")
        assert (array.device_type, array.device_id) == (10, 1)
        assert as_array(source, "x").device_id is None

    def test_an_array_that_host_and_device_reach_is_the_interfaces(self):
        pinned = type("Pinned", (CudaArray,), {"__dlpack_device__": lambda self: (3, 0)})
        assert as_array(pinned(), "x").device_type == 2
        hip_pinned = type("HipPinned", (CudaArray,), {"__dlpack_device__": lambda self: (11, 0)})
        assert as_array(hip_pinned(), "x").device_type == 10


@pytest.mark.parametrize(("device_type", "name"), [(2, "cuda"), (13, "cuda"), (10, "amdgpu")])
def test_the_registry_knows_whose_a_device_is(device_type, name):
    assert target_of_device(device_type) == name


def test_a_device_of_no_target_is_refused():
    with pytest.raises(errors.TargetError, match=r"DLPack type 14; copy the array to the host"):
        target_of_device(14)


class OnDevice:
    """A host tensor that claims to live on another device: the capsule is real, its device is patched."""

    def __init__(self, array, device_type, versioned):
        self.array, self.device_type, self.versioned = array, device_type, versioned

    def __dlpack_device__(self):
        return self.device_type, 0

    def __dlpack__(self, **options):
        if not self.versioned:
            if options:
                raise TypeError("no options before 1.0")
            capsule, name, at = self.array.__dlpack__(), b"dltensor", 8
        else:
            capsule, name, at = self.array.__dlpack__(max_version=(1, 0)), b"dltensor_versioned", 40
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
        ctypes.c_int32.from_address(get(capsule, name) + at).value = self.device_type
        return capsule


class TestDlpack:
    def test_a_host_tensor_shares_memory(self):
        class Tensor:
            def __init__(self, array):
                self.array = array

            def __dlpack_device__(self):
                return self.array.__dlpack_device__()

            def __dlpack__(self, **options):
                return self.array.__dlpack__(**options)

        source = np.arange(6.0).reshape(2, 3).T
        array = as_array(Tensor(source), "t")
        assert type(array) is np.ndarray
        assert np.shares_memory(array, source)
        assert array.flags.writeable

    @pytest.mark.parametrize("versioned", [False, True])
    @pytest.mark.parametrize("device_type", [2, 10, 13])
    def test_a_device_tensor_is_read_from_its_capsule(self, versioned, device_type):
        source = np.arange(24, dtype=np.complex64).reshape(4, 6)[::2, 1:]
        array = as_array(OnDevice(source, device_type, versioned), "t")
        assert isinstance(array, DeviceArray)
        assert array.pointer == source.__array_interface__["data"][0]
        assert (array.shape, array.strides, array.dtype) == (source.shape, source.strides, source.dtype)
        assert (array.device_type, array.readonly, array.device_id) == (device_type, False, 0)

    def test_read_only_flag(self):
        source = np.ones(3)
        source.flags.writeable = False
        assert as_array(OnDevice(source, 2, True), "t").readonly

    def test_another_device_is_refused(self):
        with pytest.raises(errors.UnsupportedArrayError, match=r"'t'.*device of DLPack type 8"):
            as_array(OnDevice(np.ones(3), 8, False), "t")


@pytest.mark.parametrize("code", [*list("?bhilqBHILQfdFD"), "M8[ns]", "m8[s]"])
def test_supported_dtypes(code):
    check_array(np.zeros(3, dtype=code), "x")


@pytest.mark.parametrize(
    "dtype",
    [
        [("a", "i1"), ("b", "f8")],
        np.dtype([("a", "i1"), ("b", "f8")], align=True),
        [("a", [("x", "f4", (2, 2))], (3,)), ("b", "c16")],
        [("t", "M8[s]"), ("ok", "?")],
    ],
)
def test_structured_dtypes(dtype):
    check_array(np.zeros(3, dtype=dtype), "x")
    check_array(np.zeros((3, 4), dtype=dtype)[::-1, ::2], "x")


@pytest.mark.parametrize(
    "dtype",
    [
        ">i4",
        object,
        np.longdouble,
        np.clongdouble,
        np.float16,
        "S3",
        "U3",
        "V8",
        [],
        [("a", "i4"), ("b", ">f8")],
        [("a", [("x", "O")])],
        [("a", "f2", (3,))],
        [("name", "S4")],
    ],
)
def test_unsupported_dtypes_name_argument_and_dtype(dtype):
    array = np.zeros(2, dtype=dtype)
    with pytest.raises(errors.UnsupportedArrayError) as caught:
        check_array(array, "p.vel")
    assert isinstance(caught.value, TypeError)
    assert "'p.vel'" in str(caught.value)
    assert str(array.dtype) in str(caught.value)


def test_misaligned_arrays_are_refused_and_packed_records_are_not():
    raw = np.zeros(33, dtype=np.uint8)
    with pytest.raises(errors.UnsupportedArrayError, match=r"'x'.*not aligned"):
        check_array(raw[1:].view(np.float64), "x")
    packed = np.zeros(3, dtype=[("a", "i1"), ("b", "f8")])
    check_array(packed, "x")
    with pytest.raises(errors.UnsupportedArrayError, match="not aligned"):
        check_array(packed["b"], "x")
    with pytest.raises(errors.UnsupportedArrayError, match="not aligned"):
        check_array(as_array(CudaArray(data=(0x1001, False)), "x"), "x")


def test_read_only_arrays_may_be_read_and_not_written(tmp_path):
    locked = np.ones(3)
    locked.flags.writeable = False
    np.ones(4).tofile(tmp_path / "m")
    mapped = as_array(np.memmap(tmp_path / "m", dtype="f8", mode="r"), "m")
    for array, reason in [
        (locked, "read-only"),
        (np.broadcast_to(np.arange(3.0), (4, 3)), "broadcast"),
        (mapped, "mode='r'"),
    ]:
        check_array(array, "y")
        with pytest.raises(errors.LaunchError, match=rf"'y'.*{reason}"):
            check_writable(array, "y")
    check_writable(np.ones(3), "y")
