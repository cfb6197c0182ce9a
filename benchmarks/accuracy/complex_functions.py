"""The functions of complex numbers that kernels can call. Their errors are relative to the modulus of the exact value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from mpmath import mp

from . import reference
from .formats import Format
from .points import Group, log_scale, whole_range

Keep = Callable[[np.ndarray], Any]


@dataclass(frozen=True, eq=False)
class ComplexFunction:
    """``real`` says that the result is a real number. ``keep`` leaves out arguments with results out of range.

    An error is divided by ``condition``, if it is more than 1: by so much the rounding of an intermediate value shows.
    """

    name: str
    spellings: tuple[str, ...]
    exact: Callable[..., Any]
    keep: Keep = lambda z: np.ones(z.shape, bool)
    real: bool = False
    near: tuple[complex, ...] = ()
    condition: Callable[..., Any] | None = None
    bars: Mapping[str, float] = field(default_factory=dict)
    arity: int = 1

    def bar(self, fmt: Format, target: str) -> float:
        for key in (f"{target}/{fmt.complex_dtype}", fmt.complex_dtype):
            if key in self.bars:
                return self.bars[key]
        return BAR

    def sample(self, fmt: Format) -> list[Group]:
        rng = np.random.default_rng(0)
        z = self._sample(fmt, rng)
        if self.arity == 1:
            return z
        w = self._sample(fmt, np.random.default_rng(3))
        both = [(x[: min(len(x), len(y))], rng.permutation(y)[: min(len(x), len(y))]) for (x,), (y,) in zip(z, w, strict=True)]
        return [tuple(a[self._fits(x, y, fmt)] for a in (x, y)) for x, y in both]

    def _fits(self, x: Any, y: Any, fmt: Format) -> Any:
        with np.errstate(all="ignore"):
            size = np.log2(np.abs(x).astype("f8")) * y.real - np.angle(x) * y.imag * 1.4427
            turns = np.abs(np.log2(np.abs(x).astype("f8")) * y.imag) + np.abs(y.real) * 7
        # A power of many turns keeps no digit of its angle, in any of the usual implementations.
        return np.isfinite(size) & (np.abs(size) < 0.9 * fmt.largest_exponent) & (turns < 1e4)

    def _sample(self, fmt: Format, rng: np.random.Generator) -> list[Group]:
        groups = [_complex(fmt, log_scale(fmt, rng, low, high, n), log_scale(fmt, rng, low2, high2, n))
                  for low, high, low2, high2, n in _BOXES]  # fmt: skip
        angle = rng.uniform(-np.pi, np.pi, 300)
        circle = (1 + log_scale(fmt, rng, -fmt.precision, -3, 300).astype("f8")) * np.exp(1j * angle)
        groups += [circle.astype(fmt.complex_dtype), _complex(fmt, whole_range(fmt, rng, 300), whole_range(fmt, rng, 300))]
        for centre in self.near:
            away = log_scale(fmt, rng, -fmt.precision - 3, 0, 200) + 1j * log_scale(fmt, rng, -fmt.precision - 3, 0, 200)
            groups.append((centre + away).astype(fmt.complex_dtype))
        with np.errstate(all="ignore"):
            return [(z[self.keep(z.astype("c16")) & _in_range(z, fmt)],) for z in groups]


BAR = 4.0
"""Units in the last place of the modulus: a few rounded operations, each of which may be as far off as a real function."""

_BOXES = ((-4, 4, -4, 4, 500), (-30, 3, -30, 3, 300), (-4, 4, -50, -4, 200), (-50, -4, -4, 4, 200), (3, 30, 3, 30, 200))


def _complex(fmt: Format, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    z = np.empty(len(x), fmt.complex_dtype)
    z.real, z.imag = x, y
    return z


def _in_range(z: np.ndarray, fmt: Format) -> Any:
    wide = z.astype("c16")
    return np.isfinite(wide.real) & np.isfinite(wide.imag) & (np.abs(wide) < fmt.largest / 4)


def _result_within(function: Callable[..., Any]) -> Callable[[np.ndarray], Any]:
    """Arguments whose result is a normal number of every format, by a rough value in double precision."""

    def keep(z: np.ndarray) -> Any:
        size = np.abs(function(z))
        return np.isfinite(size) & (size < 1e37) & (size > 1e-37)

    return keep


def _small(most: float) -> Keep:
    return lambda z: (np.abs(z.real) < most) & (np.abs(z.imag) < most)


_ONES = (1, -1, 1j, -1j)
_TANGENTS = {"c8": 6.0, "c16": 6.0}
"""Quotients of sums of products of real functions."""


def _one(name: str, exact: Callable[..., Any], numpy: str | None = None, **options: Any) -> ComplexFunction:
    spellings = (f"cmath.{name}(a)", f"np.{numpy or name}(a)")
    return ComplexFunction(name, options.pop("spellings", spellings), exact, **options)


COMPLEX_FUNCTIONS = (
    _one("exp", mp.exp, keep=_small(80)),
    _one("log", mp.log, near=_ONES),
    _one("log10", reference.complex_log10, near=_ONES),
    _one("log2", reference.complex_log2, near=_ONES, spellings=("np.log2(a)",)),
    _one("exp2", reference.complex_exp2, keep=_small(80), spellings=("np.exp2(a)",)),
    _one("expm1", reference.complex_expm1, keep=_small(80), spellings=("np.expm1(a)",)),
    _one("log1p", reference.complex_log1p, near=(-1,), spellings=("np.log1p(a)",)),
    _one("sqrt", mp.sqrt, near=_ONES),
    _one("sin", mp.sin, keep=_small(80)),
    _one("cos", mp.cos, keep=_small(80)),
    _one("tan", mp.tan, keep=_small(80), bars=_TANGENTS),
    _one("sinh", mp.sinh, keep=_small(80)),
    _one("cosh", mp.cosh, keep=_small(80)),
    _one("tanh", mp.tanh, keep=_small(80), bars=_TANGENTS),
    _one("asin", mp.asin, "arcsin", near=_ONES),
    _one("acos", mp.acos, "arccos", near=_ONES),
    _one("atan", reference.complex_atan, "arctan", near=_ONES),
    _one("asinh", mp.asinh, "arcsinh", near=_ONES),
    _one("acosh", mp.acosh, "arccosh", near=_ONES),
    _one("atanh", reference.complex_atanh, "arctanh", near=_ONES),
    _one("abs", abs, spellings=("abs(a)", "np.absolute(a)", "cmath.polar(a)[0]"), real=True),
    _one("phase", mp.arg, spellings=("cmath.phase(a)", "np.angle(a)", "cmath.polar(a)[1]"), real=True),
    _one("reciprocal", lambda z: 1 / z, spellings=("np.reciprocal(a)",), keep=_result_within(lambda z: 1 / z)),
    _one("square", lambda z: z * z, spellings=("np.square(a)", "a * a", "a ** 2"), keep=_result_within(lambda z: z * z)),
    ComplexFunction("multiply", ("a * b",), lambda x, y: x * y, arity=2),
    ComplexFunction("divide", ("a / b", "np.divide(a, b)"), lambda x, y: x / y, arity=2),
    ComplexFunction(
        "pow", ("a ** b", "np.power(a, b)"), reference.complex_power, arity=2, condition=lambda x, y: abs(y * mp.log(x))
    ),
)  # fmt: skip
