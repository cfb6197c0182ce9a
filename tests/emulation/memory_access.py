"""Global and flat memory instructions on the host's memory, byte by byte: loads, stores and atomics."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from emulation.wave import EXEC

_NO_BASE = {"cdna": 0x7F, "rdna3": 0x7C}
_RETURN_BIT = {"cdna": 16, "rdna3": 14}
_MASK = {32: 0xFFFFFFFF, 64: 0xFFFFFFFFFFFFFFFF}

_SIZES = {
    "UBYTE": 1, "SBYTE": 1, "BYTE": 1, "U8": 1, "I8": 1, "B8": 1,
    "USHORT": 2, "SSHORT": 2, "SHORT": 2, "U16": 2, "I16": 2, "B16": 2,
    "DWORD": 4, "B32": 4, "DWORDX2": 8, "B64": 8, "DWORDX3": 12, "B96": 12, "DWORDX4": 16, "B128": 16,
}  # fmt: skip
_SIGNED = {"SBYTE", "I8", "SSHORT", "I16"}


def memory_access(kind: str, name: str, word: int, arch: str) -> Callable[[Any, Any], bool] | None:
    """How to execute an instruction, given its 64 bits; None for one that is left to the emulator."""
    operation = name.split("_", 1)[1]
    address = _Addresses(kind, word, arch)
    data, destination, accumulators = word >> 40 & 0xFF, word >> 56 & 0xFF, arch == "cdna" and bool(word >> 55 & 1)
    if operation.startswith("ATOMIC_"):
        returns = bool(word >> _RETURN_BIT[arch] & 1)
        return _atomic(operation.removeprefix("ATOMIC_"), address, data, destination if returns else None)
    moved = re.fullmatch(r"(LOAD|STORE)_((?:[A-Z]+_)??(?:D16_)?(?:HI_)?)([A-Z]+\d*(?:X\d)?)(_D16)?(_HI)?", operation)
    if moved is None or moved[3] not in _SIZES or moved[2] not in ("", "D16_", "D16_HI_"):
        return None
    half = 1 if moved[5] or moved[2] == "D16_HI_" else 0
    narrow = bool(moved[2] or moved[4])
    size, signed = _SIZES[moved[3]], moved[3] in _SIGNED
    stores = moved[1] == "STORE"

    def execute(wave: Any, as_it_was: Any) -> bool:
        active = wave.mask(EXEC)
        addresses = address.of(wave)
        if kind == "GLOBAL" and not (addresses[active] % min(size, 4)).any():
            as_it_was()
            return False
        registers = wave.accumulators if accumulators else wave.vectors
        for lane in np.flatnonzero(active):
            at = int(addresses[lane])
            if stores:
                bits = b"".join(int(registers[data + k, lane]).to_bytes(4, "little") for k in range(-(-size // 4)))
                ctypes.memmove(at, bits[2 * half : 2 * half + size], size)
            else:
                _load(registers, destination, lane, ctypes.string_at(at, size), signed, narrow, half)
        return True

    return execute


def _load(
    registers: Any, destination: int, lane: int, read: bytes, signed: bool, narrow: bool, half: int
) -> None:
    if narrow:
        value = int.from_bytes(read, "little", signed=signed) & 0xFFFF
        kept = int(registers[destination, lane]) & (0x0000FFFF if half else 0xFFFF0000)
        registers[destination, lane] = kept | value << 16 * half
    elif len(read) < 4:
        registers[destination, lane] = int.from_bytes(read, "little", signed=signed) & 0xFFFFFFFF
    else:
        for k in range(len(read) // 4):
            registers[destination + k, lane] = int.from_bytes(read[4 * k : 4 * k + 4], "little")


class _Addresses:
    """Where each lane's access goes."""

    def __init__(self, kind: str, word: int, arch: str) -> None:
        self.register = word >> 32 & 0xFF
        base = word >> 48 & 0x7F
        self.base = None if kind == "FLAT" or base == _NO_BASE[arch] else base
        offset = word & 0x1FFF
        if kind == "FLAT" and arch == "cdna":
            offset &= 0xFFF
        elif offset & 0x1000:
            offset -= 0x2000
        self.offset = offset

    def of(self, wave: Any) -> Any:
        if self.base is None:
            return wave.double(self.register) + np.uint64(self.offset & _MASK[64])
        base = (wave.pair(self.base) + self.offset) & _MASK[64]
        return wave.vectors[self.register].astype(np.uint64) + np.uint64(base)


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> bits - 1 else value


def _floats(bits: int) -> tuple[Callable[[int], Any], Callable[[Any], int]]:
    float_, uint = (np.float64, np.uint64) if bits == 64 else (np.float32, np.uint32)
    return (lambda n: np.array(n, uint).view(float_)[()]), (lambda x: int(np.array(x, float_).view(uint)))


def _operation(name: str) -> tuple[Callable[[int, int], int], int] | None:
    """What an atomic makes of the old value and its operand, and of how many bits they are."""
    bits = 64 if re.search(r"(64|_X2)$", name) else 32
    base = re.sub(r"(_X2|_[BUIF](32|64))$", "", name)
    if name.endswith(("_F32", "_F64")):
        value, raw = _floats(bits)
        floats: dict[str, Callable[[Any, Any], Any]] = {"ADD": lambda a, b: a + b, "MIN": np.fmin, "MAX": np.fmax}
        chosen = floats.get(base)
        return None if chosen is None else ((lambda old, new: raw(chosen(value(old), value(new)))), bits)
    is_signed = base in ("SMIN", "SMAX") or bool(re.search(r"_I\d\d$", name))

    def order(pick: Callable[..., int]) -> Callable[[int, int], int]:
        return lambda a, b: pick(a, b, key=(lambda n: _signed(n, bits)) if is_signed else (lambda n: n))

    table: dict[str, Callable[[int, int], int]] = {
        "SWAP": lambda a, b: b, "ADD": lambda a, b: a + b, "SUB": lambda a, b: a - b, "AND": lambda a, b: a & b,
        "OR": lambda a, b: a | b, "XOR": lambda a, b: a ^ b, "MIN": order(min), "MAX": order(max),
        "INC": lambda a, b: 0 if a >= b else a + 1, "DEC": lambda a, b: b if a == 0 or a > b else a - 1,
    }  # fmt: skip
    found = table.get(base.removeprefix("S").removeprefix("U") if base in ("SMIN", "SMAX", "UMIN", "UMAX") else base)
    return None if found is None else (found, bits)


def _atomic(name: str, address: _Addresses, data: int, destination: int | None) -> Callable[[Any, Any], bool] | None:
    compares = name.startswith("CMPSWAP")
    bits = 64 if re.search(r"(64|_X2)$", name) else 32
    found = ((lambda old, new: new), bits) if compares else _operation(name)
    if found is None:
        return None
    operate, size = found[0], found[1] // 8
    words = size // 4

    def operand(wave: Any, register: int, lane: int) -> int:
        return sum(int(wave.vectors[register + k, lane]) << 32 * k for k in range(words))

    def execute(wave: Any, _: Any) -> bool:
        addresses = address.of(wave)
        for lane in np.flatnonzero(wave.mask(EXEC)):
            at = int(addresses[lane])
            assert at % size == 0, f"an atomic of {size} bytes at address {at:#x}, which the hardware refuses"
            old = int.from_bytes(ctypes.string_at(at, size), "little")
            new = operand(wave, data, lane)
            if not compares or old == operand(wave, data + words, lane):
                ctypes.memmove(at, (operate(old, new) & _MASK[bits]).to_bytes(size, "little"), size)
            if destination is not None:
                for k in range(words):
                    wave.vectors[destination + k, lane] = old >> 32 * k & 0xFFFFFFFF
        return True

    return execute
