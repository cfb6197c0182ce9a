"""What a user may pass as an array, and which of those arrays a kernel can take.

Array libraries are recognised by protocol (``__cuda_array_interface__``, DLPack), never imported.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from numba_offload.errors import LaunchError, UnsupportedArrayError

_ROCM_DEVICE, _ROCM_HOST = 10, 11
HOST_DEVICES = frozenset({1, 3, _ROCM_HOST})
"""DLPack's numbers of memory that the host reads: plain and pinned."""

CUDA_INTERFACE_DEVICE = 2
"""DLPack's number of the device that ``__cuda_array_interface__`` was made for."""


@dataclass(frozen=True, eq=False)
class DeviceArray:
    """An array in device memory that another library owns.

    ``strides`` are in bytes and always filled in. ``stream`` is what the exporter's interface says: work must
    be ordered behind it (``None``: nothing to wait for). ``owner`` keeps the memory alive. ``device_type`` is
    DLPack's number for the kind of device; ``targets/registry.py`` knows whose it is.
    """

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype
    readonly: bool
    owner: Any = field(repr=False)
    device_type: int = CUDA_INTERFACE_DEVICE
    stream: int | None = None
    device_id: int | None = None

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize


Array = np.ndarray | DeviceArray

_NOT_ARRAYS = (bool, int, float, complex, str, bytes, np.generic, list, tuple, dict, type)

# A subclass that defines one of these means something else than its elements (units, masks, matrix algebra).
_MEANING = ("__getitem__", "__setitem__", "__array_ufunc__", "__array_function__", "__mul__")
_PLAIN = (np.ndarray, np.memmap, np.recarray)


def c_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Strides in bytes of a C-ordered array."""
    strides = []
    step = itemsize
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def as_array(obj: Any, name: str) -> Array | None:
    """``obj`` as an array that shares its memory, or None where it is no array.

    ``name`` is the argument's leaf name, for messages. Raises ``UnsupportedArrayError`` for what looks like
    an array but cannot be taken without changing its meaning or copying it.
    """
    if type(obj) is np.ndarray:
        return obj
    if isinstance(obj, DeviceArray):
        return obj
    if isinstance(obj, _NOT_ARRAYS):
        return None
    if isinstance(obj, np.ndarray):
        return _from_subclass(obj, name)
    interface = _attribute(obj, "__cuda_array_interface__", name)
    if interface is not None:
        return _from_cuda_interface(obj, interface, name)
    if hasattr(type(obj), "__dlpack__") and hasattr(type(obj), "__dlpack_device__"):
        from numba_offload.mapping import dlpack

        return dlpack.from_dlpack(obj, name)
    return None


def check_array(array: Array, name: str) -> None:
    """Raise ``UnsupportedArrayError``, with dtype and remedy, where a kernel cannot take this array."""
    fault = _dtype_fault(array.dtype)
    if fault is not None:
        raise UnsupportedArrayError(f"argument '{name}' has dtype {array.dtype}: {fault}")
    aligned = _device_aligned(array) if isinstance(array, DeviceArray) else array.flags.aligned
    if not aligned:
        raise UnsupportedArrayError(
            f"argument '{name}' ({array.dtype}, shape {array.shape}) is not aligned: its elements must lie "
            f"at multiples of {array.dtype.alignment} bytes. Pass a copy of it: {name}.copy()"
        )


def check_writable(array: Array, name: str, writer: str = "the kernel") -> None:
    """Raise ``LaunchError`` where an array that the kernel writes may not be written."""
    if isinstance(array, DeviceArray):
        if not array.readonly:
            return
        what, remedy = "its owner exports it as read-only", "Pass a writable copy"
    elif array.flags.writeable:
        return
    elif any(stride == 0 and size > 1 for stride, size in zip(array.strides, array.shape, strict=True)):
        what, remedy = "it is a read-only broadcast view", f"Write to a copy: {name}.copy()"
    elif isinstance(array.base, np.memmap) and array.base.mode == "r":
        what, remedy = "it is a memory map opened with mode='r'", "Open it with mode='r+' or mode='c'"
    else:
        what, remedy = "it is read-only (flags.writeable is False)", "Pass a writable array or a copy"
    raise LaunchError(f"{writer} writes argument '{name}', but {what}. {remedy}")


def _attribute(obj: Any, attribute: str, name: str) -> Any:
    try:
        return getattr(obj, attribute, None)
    except Exception as error:
        # Libraries use properties here that refuse by raising, as for a tensor that records gradients.
        raise UnsupportedArrayError(
            f"argument '{name}' ({type(obj).__name__}) does not give its memory out: {error}"
        ) from error


def _from_subclass(obj: np.ndarray, name: str) -> np.ndarray:
    for cls in type(obj).__mro__:
        if cls is np.ndarray:
            break
        if cls in _PLAIN:
            continue
        if any(meaning in vars(cls) for meaning in _MEANING):
            raise UnsupportedArrayError(
                f"argument '{name}' is a {type(obj).__name__}, which means more than its elements: "
                f"{_subclass_remedy(obj, name)}"
            )
    plain = obj.view(np.ndarray)
    if plain.dtype.type is np.record:
        plain = plain.view(np.dtype((np.void, plain.dtype)))
    return plain


def _subclass_remedy(obj: np.ndarray, name: str) -> str:
    if isinstance(obj, np.ma.MaskedArray):
        return (
            f"a kernel (here: dtype {obj.dtype}) would ignore its mask. Pass {name}.filled(...), or "
            f"{name}.data and np.ma.getmaskarray({name}) as two arguments"
        )
    return f"pass its elements (dtype {obj.dtype}) as np.asarray({name})"


def _from_cuda_interface(obj: Any, interface: dict[str, Any], name: str) -> DeviceArray:
    if interface.get("mask") is not None:
        raise UnsupportedArrayError(
            f"argument '{name}' ({type(obj).__name__}) is a masked device array; a kernel would ignore its "
            "mask. Pass data and mask as two arguments"
        )
    try:
        dtype = np.dtype(interface["typestr"])
        if dtype.kind == "V" and interface.get("descr"):
            dtype = np.dtype([tuple(entry) for entry in interface["descr"]])
        pointer, readonly = interface["data"]
        shape = tuple(int(size) for size in interface["shape"])
        strides = interface.get("strides")
        strides = (
            c_strides(shape, dtype.itemsize) if strides is None else tuple(int(stride) for stride in strides)
        )
        stream = interface.get("stream")
        if stream == 0 or len(strides) != len(shape):
            raise ValueError(f"stream {stream}, shape {shape}, strides {strides}")
    except (KeyError, TypeError, ValueError) as error:
        raise UnsupportedArrayError(
            f"argument '{name}' ({type(obj).__name__}) has a __cuda_array_interface__ that is not valid: "
            f"{error!r}"
        ) from error
    device_type, device_id = _device_of(obj)
    return DeviceArray(
        int(pointer or 0), shape, strides, dtype, bool(readonly), obj, device_type, stream, device_id
    )


def _device_of(obj: Any) -> tuple[int, int | None]:
    """Type and number of the device. Other vendors' libraries export this interface too; DLPack tells whose it is."""
    try:
        device_type, device_id = obj.__dlpack_device__()
    except Exception:  # not offered, or not for this array: the interface's own word stands
        return CUDA_INTERFACE_DEVICE, None
    if int(device_type) in HOST_DEVICES:  # memory that both sides reach
        return (_ROCM_DEVICE if int(device_type) == _ROCM_HOST else CUDA_INTERFACE_DEVICE), int(device_id)
    return int(device_type), int(device_id)


def _device_aligned(array: DeviceArray) -> bool:
    alignment = array.dtype.alignment
    if array.size == 0:
        return True
    return array.pointer % alignment == 0 and all(
        stride % alignment == 0 for size, stride in zip(array.shape, array.strides, strict=True) if size > 1
    )


@lru_cache(maxsize=1024)
def _dtype_fault(dtype: np.dtype) -> str | None:
    """What makes a dtype unusable, with the remedy; None where it can be used."""
    if dtype.subdtype is not None:
        return _dtype_fault(dtype.base)
    if dtype.fields:
        for field_name, entry in dtype.fields.items():
            fault = _dtype_fault(entry[0])
            if fault is not None:
                return f"field '{field_name}' ({entry[0]}): {fault}"
        return None
    char = dtype.char
    if char in "?bhilqBHILQfdFDmM":
        if not dtype.isnative:
            return "its byte order is not this machine's. Convert it: array.astype(dtype.newbyteorder('='))"
        return None
    if char == "O":
        return "Python objects cannot be used in a kernel. Convert to a numeric dtype"
    if char in "gG":
        return "extended precision does not exist on GPUs. Convert to float64 or complex128"
    if char == "e":
        return "half precision is not supported in kernels. Convert to float32"
    if char in "SUaT":
        return "strings are not supported in kernels. Pass a view as integers, such as array.view(np.uint8)"
    if char == "V":
        return "raw bytes without fields are not supported. Pass a view as uint8 or as a structured dtype"
    return "this dtype is not supported in kernels. Convert to a bool, integer, float or complex dtype"
