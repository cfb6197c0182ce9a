"""DLPack tensors: host ones through NumPy, device ones by reading the capsule.

The structures are those of dlpack.h, unversioned (before 1.0) and versioned.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from numba_offload.errors import UnsupportedArrayError
from numba_offload.mapping.arrays import HOST_DEVICES, DeviceArray, c_strides

# kDLCUDA, kDLROCM, kDLCUDAManaged: their pointers are addresses that a kernel can use.
_DEVICES = frozenset({2, 10, 13})

_READ_ONLY = 1
_BOOL, _COMPLEX = 6, 5
_TYPES = {0: "i", 1: "u", 2: "f", _COMPLEX: "c", _BOOL: "b"}


class _DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _DLManagedTensor(ctypes.Structure):
    _fields_ = (("tensor", _DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class _DLManagedTensorVersioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _DLTensor),
    )


_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.argtypes = (ctypes.py_object, ctypes.c_char_p)
_is_valid.restype = ctypes.c_int
_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
_get_pointer.restype = ctypes.c_void_p


def from_dlpack(obj: Any, name: str) -> np.ndarray | DeviceArray:
    """The array behind an object with ``__dlpack__``, without a copy."""
    try:
        device_type = int(obj.__dlpack_device__()[0])
        if device_type in HOST_DEVICES:
            return np.from_dlpack(obj)
        capsule = _export(obj) if device_type in _DEVICES else None
    except Exception as error:
        raise UnsupportedArrayError(
            f"argument '{name}' ({type(obj).__name__}) cannot be shared through DLPack: {error}"
        ) from error
    if capsule is None:
        raise UnsupportedArrayError(
            f"argument '{name}' ({type(obj).__name__}) lives on a device of DLPack type {device_type}; "
            "expected the host, a CUDA or a ROCm device. Copy it to the host first"
        )
    return _from_capsule(obj, capsule, name)


def _export(obj: Any) -> Any:
    try:
        return obj.__dlpack__(max_version=(1, 0))
    except TypeError:  # an exporter from before DLPack 1.0
        return obj.__dlpack__()


def _from_capsule(obj: Any, capsule: Any, name: str) -> DeviceArray:
    readonly = False
    if _is_valid(capsule, b"dltensor_versioned"):
        versioned = _DLManagedTensorVersioned.from_address(_get_pointer(capsule, b"dltensor_versioned"))
        if versioned.major != 1:
            raise UnsupportedArrayError(
                f"argument '{name}' exports DLPack {versioned.major}; expected version 1"
            )
        tensor, readonly = versioned.tensor, bool(versioned.flags & _READ_ONLY)
    elif _is_valid(capsule, b"dltensor"):
        tensor = _DLManagedTensor.from_address(_get_pointer(capsule, b"dltensor")).tensor
    else:
        raise UnsupportedArrayError(f"argument '{name}' ({type(obj).__name__}) exports no DLPack tensor")
    dtype = _dtype(tensor, name)
    shape = tuple(tensor.shape[axis] for axis in range(tensor.ndim))
    if tensor.strides:
        strides = tuple(tensor.strides[axis] * dtype.itemsize for axis in range(tensor.ndim))
    else:
        strides = c_strides(shape, dtype.itemsize)
    pointer = (tensor.data or 0) + tensor.byte_offset
    # The capsule stays unconsumed: when the last reference goes, its own destructor tells the exporter.
    owner = (obj, capsule)
    return DeviceArray(
        pointer, shape, strides, dtype, readonly, owner, tensor.device_type, None, tensor.device_id
    )


def _dtype(tensor: _DLTensor, name: str) -> np.dtype:
    kind = _TYPES.get(tensor.code)
    if kind is None or tensor.lanes != 1 or tensor.bits % 8:
        raise UnsupportedArrayError(
            f"argument '{name}' has DLPack type code {tensor.code}, {tensor.bits} bits, {tensor.lanes} "
            "lanes, which NumPy cannot express. Convert it to a bool, integer, float or complex dtype"
        )
    try:
        return np.dtype(f"{kind}{tensor.bits // 8}")
    except TypeError as error:
        raise UnsupportedArrayError(
            f"argument '{name}' has {tensor.bits}-bit elements, which NumPy cannot express: {error}"
        ) from error
