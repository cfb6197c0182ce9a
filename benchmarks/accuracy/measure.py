"""One function on the current target: a kernel that calls it, its results at sample points, and the worst of them."""

from __future__ import annotations

import cmath
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from mpmath import mp, mpc, mpf, mpmathify

from numba_offload import Region, offload_kernel

from .complex_functions import ComplexFunction
from .exact_functions import ExactFunction
from .formats import BITS, Format, modulus_error, ulp_error
from .functions import SPECIAL, Function
from .points import Group, some_of

POINTS = {"amdgpu": 300}
"""At how many points a function is sampled, at most, on targets that are slow: AMD's instructions are emulated."""
_ALL = 100_000


@dataclass(frozen=True)
class Result:
    """What a target gave for one spelling of a function at one point. ``error`` is in units of the last place."""

    function: str
    spelling: str
    dtype: str
    arguments: tuple[Any, ...]
    got: Any
    expected: str
    error: float

    def __str__(self) -> str:
        at = ", ".join(f"{name} = {_shown(value)}" for name, value in zip("ab", self.arguments, strict=False))
        values = f"got {_shown(self.got)}, expected {self.expected}"
        return f"{self.spelling} in {self.dtype}, {at}: {values}, {self.error:.3g} ulp off"


def _shown(value: Any) -> str:
    plain = value.item() if isinstance(value, np.generic) else value
    return f"{plain!r} ({plain.hex()})" if isinstance(plain, float) and math.isfinite(plain) else repr(plain)


@cache
def kernel(spellings: tuple[str, ...], arity: int) -> Any:
    """A kernel that stores the value of each expression for every element."""
    names = "ab"[:arity]
    outs = [f"out{k}" for k in range(len(spellings))]
    lines = [f"def kernel({', '.join([f'{n}_' for n in names] + outs)}):", "    for i in out0.indices():"]
    lines += [f"        {name} = {name}_[i]" for name in names]
    lines += [f"        {out}[i] = {spelling}" for out, spelling in zip(outs, spellings, strict=True)]
    namespace: dict[str, Any] = {"np": np, "math": math, "cmath": cmath}
    exec("\n".join(lines), namespace)
    return offload_kernel(namespace["kernel"])


def evaluate(spellings: tuple[str, ...], arguments: Group, result: str) -> list[np.ndarray]:
    """The results on the current target, in one launch."""
    outputs = [np.zeros(len(arguments[0]), result) for _ in spellings]
    kernel(spellings, len(arguments))(*arguments, *(Region(out) for out in outputs))
    return outputs


@cache
def _sample(function: Any, fmt: Format, most: int) -> Group:
    return some_of(function.sample(fmt), most)


@cache
def _exact_values(function: Function, fmt: Format, most: int) -> list[Any]:
    with mp.workprec(BITS):
        columns = [[mpf(float(v)) for v in argument] for argument in _sample(function, fmt, most)]
        return [function.exact(*point) for point in zip(*columns, strict=True)]


@cache
def _exact_complex_values(function: ComplexFunction, fmt: Format, most: int) -> list[tuple[Any, float]]:
    """The exact values at the sample points, and by how much their errors are divided."""
    with mp.workprec(BITS):
        columns = [[mpc(complex(v)) for v in argument] for argument in _sample(function, fmt, most)]
        points = list(zip(*columns, strict=True))
        condition = function.condition or (lambda *_: 1)
        return [(mpmathify(function.exact(*p)), max(1.0, float(condition(*p)))) for p in points]


def worst_results(function: Function, fmt: Format, target: str) -> list[Result]:
    """The worst result of each spelling."""
    most = POINTS.get(target, _ALL)
    arguments, exact = _sample(function, fmt, most), _exact_values(function, fmt, most)
    found = []
    with mp.workprec(BITS):
        for spelling, got in zip(function.spellings, evaluate(function.spellings, arguments, fmt.dtype), strict=True):
            errors = [ulp_error(float(g), e, fmt) for g, e in zip(got, exact, strict=True)]
            found.append(_worst(function.name, spelling, fmt.dtype, arguments, got, exact, errors))
    return found


def worst_complex_results(function: ComplexFunction, fmt: Format, target: str) -> list[Result]:
    """The worst result of each spelling, in units of the last place of its modulus."""
    most = POINTS.get(target, _ALL)
    arguments, exact = _sample(function, fmt, most), _exact_complex_values(function, fmt, most)
    dtype = fmt.dtype if function.real else fmt.complex_dtype
    found = []
    with mp.workprec(BITS):
        for spelling, got in zip(function.spellings, evaluate(function.spellings, arguments, dtype), strict=True):
            errors = []
            for g, (e, condition) in zip(got, exact, strict=True):
                error = ulp_error(float(g), e, fmt) if function.real else modulus_error(complex(g), e, fmt)
                errors.append(error / condition)
            values = [e for e, _ in exact]
            found.append(_worst(function.name, spelling, fmt.complex_dtype, arguments, got, values, errors))
    return found


def _worst(
    name: str, spelling: str, dtype: str, arguments: Group, got: np.ndarray, exact: Sequence[Any], errors: list[float]
) -> Result:
    at = int(np.argmax(errors))
    point = tuple(argument[at] for argument in arguments)
    return Result(name, spelling, dtype, point, got[at], mp.nstr(exact[at], 20), errors[at])


# Special values


def wrong_specials(function: Function, fmt: Format, bar: float) -> list[Result]:
    """Results for zeros, infinities, nan and 1 that are not the C standard's."""
    points, wanted = _special_points(function, fmt)
    found = []
    for spelling, got in zip(function.spellings, evaluate(function.spellings, points, fmt.dtype), strict=True):
        for k, (g, w) in enumerate(zip(got, wanted, strict=True)):
            if w is not None and not _agrees(float(g), w, fmt, bar):
                point = tuple(argument[k] for argument in points)
                found.append(Result(function.name, spelling, fmt.dtype, point, g, repr(w), math.inf))
    return found


def _special_points(function: Function, fmt: Format) -> tuple[Group, Sequence[Any]]:
    special = np.array(SPECIAL, fmt.dtype)
    if not callable(function.at_special):
        return (special,), function.at_special
    more = np.array([*SPECIAL, 2.0, -2.0, 0.5, -0.5, 3.0, -3.0, fmt.largest, fmt.eps], fmt.dtype)
    second = np.array([0, 1, -1, 2, -2, 3, -3, 4, 6, -7]) if function.integers else more
    x, y = (grid.ravel() for grid in np.meshgrid(more, second))
    with np.errstate(all="ignore"):
        wanted = [float(v) for v in function.at_special(x, y)]
    # Rounded results of usual numbers are among the sample points.
    usual = np.isfinite(x) & np.isfinite(y) & (x != 0) & (y != 0)
    left = [u and math.isfinite(w) and abs(w) not in (0, 1) for u, w in zip(usual, wanted, strict=True)]
    return (x, y), [None if out else w for out, w in zip(left, wanted, strict=True)]


def _agrees(got: float, wanted: Any, fmt: Format, bar: float) -> bool:
    """Zeros, infinities, nan and 1 to the bit; other numbers, which are rounded, as near as the function has to be."""
    if isinstance(wanted, str):
        with mp.workprec(BITS):
            exact = -mp.pi / 2 if wanted[0] == "-" else mp.pi / 2
            return ulp_error(got, exact, fmt) <= bar
    wanted = float(wanted)
    if math.isnan(wanted):
        return math.isnan(got)
    if wanted == 0 or math.isinf(wanted) or abs(wanted) == 1:
        return got == wanted and math.copysign(1.0, got) == math.copysign(1.0, wanted)
    with mp.workprec(BITS):
        # NumPy's own result is rounded too.
        return ulp_error(got, mpf(wanted), fmt) <= bar + 1


_COMPLEX_PARTS = np.array([0.0, -0.0, 1.0, -1.0, 2.5, -2.5, np.inf, -np.inf])


def wrong_complex_specials(function: ComplexFunction, fmt: Format, bar: float) -> list[Result]:
    """Results for numbers with zeros and infinities as parts that are not NumPy's. Both of them nan gives nan."""
    z = np.empty(len(_COMPLEX_PARTS) ** 2 + 1, fmt.complex_dtype)
    z.real[:-1], z.imag[:-1] = (grid.ravel() for grid in np.meshgrid(_COMPLEX_PARTS, _COMPLEX_PARTS))
    z[-1] = complex(math.nan, math.nan)
    numpy = next(s for s in function.spellings if s.startswith("np."))
    with np.errstate(all="ignore"):
        wanted = eval(numpy, {"np": np, "a": z.astype("c16")})
    dtype = fmt.dtype if function.real else fmt.complex_dtype
    found = []
    for spelling, got in zip(function.spellings, evaluate(function.spellings, (z,), dtype), strict=True):
        for at, g, w in zip(z, got, wanted, strict=True):
            # The standard leaves signs open where both parts are infinite.
            signs = not (math.isinf(at.real) and math.isinf(at.imag))
            tolerance = bar * fmt.eps * max(1.0, abs(w))
            if not all(_part_agrees(float(a), float(b), signs, tolerance) for a, b in ((g.real, w.real), (g.imag, w.imag))):
                found.append(Result(function.name, spelling, fmt.complex_dtype, (at,), g, repr(w), math.inf))
    return found


def _part_agrees(got: float, wanted: float, signs: bool, tolerance: float) -> bool:
    if math.isnan(wanted):
        return math.isnan(got)
    if not signs:
        got, wanted = abs(got), abs(wanted)
    if wanted == 0:
        return got == 0 and math.copysign(1.0, got) == math.copysign(1.0, wanted)
    return got == wanted if math.isinf(wanted) else abs(got - wanted) <= tolerance


# Exact results


def mismatches(function: ExactFunction, fmt: Format, target: str) -> Iterator[Result]:
    """The first point of each spelling at which a target's result is not NumPy's."""
    arguments = _sample(function, fmt, POINTS.get(target, _ALL))
    result = function.result or fmt.dtype
    with np.errstate(all="ignore"):
        expected = function.expected(*arguments).astype(result)
    for spelling, got in zip(function.spellings, evaluate(function.spellings, arguments, result), strict=True):
        wrong = np.flatnonzero(~_same(got, expected, function.signed_zeros))
        if len(wrong):
            at = int(wrong[0])
            point = tuple(argument[at] for argument in arguments)
            yield Result(function.name, spelling, fmt.dtype, point, got[at], repr(expected[at]), math.inf)


def _same(got: np.ndarray, expected: np.ndarray, signed_zeros: bool) -> Any:
    same = got == expected
    if got.dtype.kind != "f":
        return same
    if signed_zeros:
        same &= np.signbit(got) == np.signbit(expected)
    return same | (np.isnan(got) & np.isnan(expected))
