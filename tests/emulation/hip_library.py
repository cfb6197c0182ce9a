"""A ``libamdhip64.so`` for tests: HIP's C functions, answered by an emulated device, so that hip-python itself is run.

The library is a few lines of C that hand each call to a function of Python's. It must be loaded before hip-python looks
for HIP: the loader then finds it by its name.
"""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path
from typing import Any

from emulation.hip import EmulatedHIP

_P, _N, _I = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint32

_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "hipInit": (_I,),
    "hipGetDeviceCount": (_P,),
    "hipGetDevicePropertiesR0600": (_P, _I),
    "hipDeviceGetAttribute": (_P, _I, _I),
    "hipGetDevice": (_P,),
    "hipSetDevice": (_I,),
    "hipMalloc": (_P, _N),
    "hipFree": (_P,),
    "hipHostMalloc": (_P, _N, _I),
    "hipHostFree": (_P,),
    "hipHostGetDevicePointer": (_P, _P, _I),
    "hipMemGetInfo": (_P, _P),
    "hipMemcpyHtoDAsync": (_P, _P, _N, _P),
    "hipMemcpyDtoHAsync": (_P, _P, _N, _P),
    "hipMemcpyDtoDAsync": (_P, _P, _N, _P),
    "hipPointerGetAttributes": (_P, _P),
    "hipModuleLoadData": (_P, _P),
    "hipModuleGetFunction": (_P, _P, ctypes.c_char_p),
    "hipFuncGetAttribute": (_P, _I, _P),
    "hipModuleLaunchKernel": (_P, _I, _I, _I, _I, _I, _I, _I, _P, _P, _P),
    "hipStreamSynchronize": (_P,),
    "hipDeviceSynchronize": (),
    "hipGetLastError": (),
    "hipStreamCreateWithFlags": (_P, _I),
    "hipEventCreateWithFlags": (_P, _I),
    "hipEventSynchronize": (_P,),
    "hipEventQuery": (_P,),
    "hipEventRecord": (_P, _P),
    "hipStreamWaitEvent": (_P, _P, _I),
}
_TEXTS = {"hipGetErrorName": b"hipErrorOfTheTest", "hipGetErrorString": b"said the runtime"}


def source() -> str:
    """The library in C. Every argument goes through a register or slot of eight bytes, whatever its type."""
    lines = [f"void *answer[{len(_FUNCTIONS)}];"]
    for number, (name, arguments) in enumerate(_FUNCTIONS.items()):
        given = [f"unsigned long a{k}" for k in range(len(arguments))]
        passed = ", ".join(f"a{k}" for k in range(len(arguments)))
        types = ", ".join(["unsigned long"] * len(arguments)) or "void"
        lines.append(
            f"int {name}({', '.join(given) or 'void'}) {{ return ((int (*)({types}))answer[{number}])({passed}); }}"
        )
    for name, text in _TEXTS.items():
        lines.append(f'const char *{name}(int code) {{ return "{text.decode()}"; }}')
    return "\n".join(lines) + "\n"


def load(folder: Path, arch: str) -> EmulatedHIP:
    """Compile the library, load it under HIP's name, and connect it to a device."""
    code, library = folder / "hip.c", folder / "libamdhip64.so"
    code.write_text(source())
    subprocess.run(
        ["clang", "-shared", "-fPIC", "-O1", "-Wl,-soname,libamdhip64.so", str(code), "-o", str(library)], check=True
    )
    handle = ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    device = EmulatedHIP(arch)
    answers = _Answers(device)
    table = (ctypes.c_void_p * len(_FUNCTIONS)).in_dll(handle, "answer")
    for number, (name, arguments) in enumerate(_FUNCTIONS.items()):
        called = ctypes.CFUNCTYPE(ctypes.c_int, *arguments)(getattr(answers, name))
        answers.kept.append(called)
        table[number] = ctypes.cast(called, ctypes.c_void_p).value
    device.library = (handle, answers)
    return device


def _name_offset() -> int:
    """Where in HIP's structure of properties the architecture's name is, by the bindings' reading of it."""
    from hip import hip

    storage = ctypes.create_string_buffer(8192)
    read = hip.hipDeviceProp_t.fromObj(ctypes.addressof(storage))
    for offset in range(4096):
        storage[offset] = b"Z"
        if read.gcnArchName in ("Z", b"Z"):
            return offset
        storage[offset] = b"\0"
    raise AssertionError("the bindings' structure has no gcnArchName")


def _put(where: int, value: int, kind: Any = ctypes.c_void_p) -> None:
    kind.from_address(where).value = value


class _Answers:
    """HIP's functions in C's terms: results are written where a pointer says."""

    def __init__(self, device: EmulatedHIP) -> None:
        self.device = device
        self.kept: list[Any] = []
        self.objects: dict[int, Any] = {}

    def __getattr__(self, name: str) -> Any:
        """Functions that take values only."""
        function = getattr(self.device, name)

        def call(*args: Any) -> int:
            return int(function(*[0 if a is None else a for a in args])[0])

        return call

    def _handle(self, value: Any) -> int:
        number = 0x1000 + len(self.objects)
        self.objects[number] = value
        return number

    def _result(self, where: int, answer: Any, kind: Any = ctypes.c_void_p) -> int:
        if not answer[0]:
            _put(where, answer[1], kind)
        return int(answer[0])

    def hipGetDeviceCount(self, where: int) -> int:
        return self._result(where, self.device.hipGetDeviceCount(), ctypes.c_int)

    def hipGetDevice(self, where: int) -> int:
        return self._result(where, self.device.hipGetDevice(), ctypes.c_int)

    def hipGetDevicePropertiesR0600(self, where: int, ordinal: int) -> int:
        code, known = self.device.hipGetDeviceProperties(ordinal)
        name = known.gcnArchName.encode() + b"\0"
        ctypes.memmove(where + _name_offset(), name, len(name))
        return int(code)

    def hipDeviceGetAttribute(self, where: int, which: int, ordinal: int) -> int:
        from hip import hip

        name = hip.hipDeviceAttribute_t(which).name.removeprefix("hipDeviceAttribute")
        return self._result(where, self.device.hipDeviceGetAttribute(name, ordinal), ctypes.c_int)

    def hipMalloc(self, where: int, nbytes: int) -> int:
        return self._result(where, self.device.hipMalloc(nbytes))

    def hipHostMalloc(self, where: int, nbytes: int, flags: int) -> int:
        return self._result(where, self.device.hipHostMalloc(nbytes, flags))

    def hipMemGetInfo(self, free: int, total: int) -> int:
        code, *found = self.device.hipMemGetInfo()
        for where, value in zip((free, total), found, strict=True):
            _put(where, value, _N)
        return int(code)

    def hipStreamCreateWithFlags(self, where: int, flags: int) -> int:
        return self._result(where, self.device.hipStreamCreateWithFlags(flags))

    def hipHostGetDevicePointer(self, where: int, address: int, flags: int) -> int:
        return self._result(where, self.device.hipHostGetDevicePointer(address, flags))

    def hipPointerGetAttributes(self, where: int, address: int) -> int:
        code, known = self.device.hipPointerGetAttributes(address)
        _put(where, known.type, ctypes.c_int)  # the structure begins with type and device
        _put(where + 4, known.device, ctypes.c_int)
        return int(code)

    def hipModuleLoadData(self, where: int, image: int) -> int:
        # An ELF file ends with its section headers.
        header = ctypes.string_at(image, 64)
        end = int.from_bytes(header[40:48], "little")
        size, count = int.from_bytes(header[58:60], "little"), int.from_bytes(header[60:62], "little")
        code, module = self.device.hipModuleLoadData(ctypes.string_at(image, end + size * count))
        return self._result(where, (code, self._handle(module)))

    def hipModuleGetFunction(self, where: int, module: int, name: bytes) -> int:
        code, function = self.device.hipModuleGetFunction(self.objects[module], name)
        return self._result(where, (code, self._handle(function)))

    def hipFuncGetAttribute(self, where: int, which: int, function: int) -> int:
        from hip import hip

        name = hip.hipFunction_attribute(which).name
        known = getattr(self.device.hipFunction_attribute, name)
        return self._result(where, self.device.hipFuncGetAttribute(known, self.objects[function]), ctypes.c_int)

    def hipModuleLaunchKernel(self, function: int, *rest: Any) -> int:
        *shape, stream, parameters, _ = rest
        return int(self.device.hipModuleLaunchKernel(self.objects[function], *shape, stream or 0, parameters, None)[0])

    def hipEventCreateWithFlags(self, where: int, flags: int) -> int:
        code, event = self.device.hipEventCreateWithFlags(flags)
        return self._result(where, (code, self._handle(event)))

    def hipEventRecord(self, event: int, stream: int | None) -> int:
        return int(self.device.hipEventRecord(self.objects[event], stream or 0)[0])

    def hipStreamWaitEvent(self, stream: int | None, event: int, flags: int) -> int:
        return int(self.device.hipStreamWaitEvent(stream or 0, self.objects[event], flags)[0])
