"""Dtypes and values of them that tell mistakes apart: extremes, signs, not-a-number."""

from __future__ import annotations

import numpy as np

RECORD = np.dtype([("n", "i2"), ("v", "f8"), ("flag", "?")], align=True)

BOOLS = ("?",)
SIGNED = ("i1", "i2", "i4", "i8")
UNSIGNED = ("u1", "u2", "u4", "u8")
INTEGERS = (*SIGNED, *UNSIGNED)
FLOATS = ("f4", "f8")
COMPLEX = ("c8", "c16")
NUMBERS = (*INTEGERS, *FLOATS, *COMPLEX)
TIMES = ("M8[ns]", "M8[D]", "m8[us]", "m8[h]")
SCALARS = (*BOOLS, *NUMBERS, *TIMES)
EVERY_DTYPE = (*SCALARS, RECORD)


def name_of(dtype: object) -> str:
    """For test ids."""
    return "record" if dtype is RECORD else str(dtype)


def sample(dtype: object, shape: int | tuple[int, ...], seed: int = 0) -> np.ndarray:
    """An array of random bits with the type's extremes in it; nothing in it is a signalling NaN."""
    dtype = np.dtype(dtype)
    rng = np.random.default_rng(seed)
    n = int(np.prod(shape))
    if dtype.fields:
        out = np.zeros(n, dtype)
        for position, field in enumerate(dtype.names):
            out[field] = sample(dtype[field], n, seed + position)
        return out.reshape(shape)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        out = rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
        extremes = [info.min, info.max, 0, 1]
    elif dtype.kind in "Mm":
        out = rng.integers(-(10**15), 10**15, shape).astype(dtype)
        extremes = [np.array("NaT", dtype)]
    elif dtype.kind == "f":
        out = rng.normal(size=shape).astype(dtype) * dtype.type(1e3)
        info = np.finfo(dtype)
        extremes = [info.max, -info.max, info.tiny, info.smallest_subnormal, 0.0, -0.0, np.inf, -np.inf, np.nan]
    else:
        part = np.dtype(f"f{dtype.itemsize // 2}")
        out = np.empty(shape, dtype)
        out.real, out.imag = sample(part, shape, seed), sample(part, shape, seed + 1)
        return out
    flat = out.reshape(-1)
    flat[: min(n, len(extremes))] = extremes[:n]
    return out


def small(dtype: object, shape: int | tuple[int, ...], seed: int = 0, low: int = -9, high: int = 9) -> np.ndarray:
    """Small whole numbers, on which arithmetic is exact in every type."""
    dtype = np.dtype(dtype)
    rng = np.random.default_rng(seed)
    if dtype.kind in "ub":
        low = 0
    numbers = rng.integers(low, high, shape)
    if dtype.kind == "c":
        return (numbers + 1j * rng.integers(low, high, shape)).astype(dtype)
    return numbers.astype(dtype)


def same_bytes(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays are equal bit by bit: NaNs and signs of zero too, but not what lies between fields."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.fields:
        return all(same_bytes(a[field], b[field]) for field in a.dtype.names)
    return np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()
