"""The functions of real numbers whose results are rounded: what kernels write, the exact values, sample points and bars."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from mpmath import mp

from . import reference
from .formats import Format
from .pairs import (
    pairs_for_atan2,
    pairs_for_hypot,
    pairs_for_integer_power,
    pairs_for_logaddexp,
    pairs_for_power,
)
from .points import Domain, Group, Sampler, hard_angles


@dataclass(frozen=True)
class Miss:
    """A bar that a target cannot be held to. ``most`` is what its maker states, or what was measured."""

    measured: float
    most: float
    reason: str


@dataclass(frozen=True, eq=False)
class Function:
    """A function whose results are rounded.

    ``spellings`` are what kernels write, with ``a`` and ``b`` for the arguments. ``at_special`` holds the results for 0,
    -0, inf, -inf, nan, 1 and -1 as the C standard (Annex F) has them, with None where it says nothing; a function of two
    arguments has instead the NumPy function that it must agree with. ``bars`` replaces the format's, and ``misses`` says
    where it is not met; their keys are a target and a format: ``cuda/f8``.
    """

    name: str
    spellings: tuple[str, ...]
    exact: Callable[..., Any]
    points: Sampler
    at_special: tuple[Any, ...] | Callable[..., Any]
    bars: Mapping[str, float] = field(default_factory=dict)
    misses: Mapping[str, Miss] = field(default_factory=dict)
    arity: int = 1
    integers: bool = False
    """Whether the second argument is an integer."""

    def bar(self, fmt: Format, target: str) -> float:
        """The largest error allowed, in units of the last place."""
        return self.bars.get(f"{target}/{fmt.dtype}", self.bars.get(fmt.dtype, fmt.bar))

    def sample(self, fmt: Format) -> list[Group]:
        return self.points(fmt, np.random.default_rng(0))


SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0)
PI_2, MINUS_PI_2 = "pi/2", "-pi/2"
"""Among special results: within the function's bar of that number."""
_nan, _inf = np.nan, np.inf
_NO_SPECIAL = (None,) * len(SPECIAL)

# Where exp, exp2, sinh, cosh and gamma begin to overflow or to be subnormal.
_EXP_ENDS = {
    "f4": (88.72283905206835, -87.33654475, -103.2789, -103.972077),
    "f8": (709.782712893384, -708.3964185322641, -745.1332191019411, -744.4400719213812),
}
_EXP2_ENDS = {"f4": (128.0, -126.0, -149.0, -150.0), "f8": (1024.0, -1022.0, -1074.0, -1075.0)}
_SINH_ENDS = {"f4": (89.41598629223294, 88.72283905206835), "f8": (710.4758600739439, 709.782712893384)}
_GAMMA_ENDS = {"f4": (35.04010009765625, 34.0), "f8": (171.6243769563027, 170.0)}
_LGAMMA_ZEROS = (
    -2.4570247382208006, -2.747682646727413, -3.143580888349980, -3.9552942848585979, -4.039361839740537,
    -4.991544640560047, -5.008218168322593,
)  # fmt: skip

# Rounded once, or twice where NumPy computes in double precision and the result is stored as a float.
_ONCE = {"f4": 0.5 + 1e-6, "f8": 0.5}

# What makers state where no more can be had. glibc: its manual's "Known Maximum Errors in Math Functions", x86_64.
# NVIDIA: the CUDA C++ Programming Guide's "Mathematical Functions"; lgamma's bound is that outside -23.0001 to -2.2637.
# AMD's library follows the OpenCL C specification's "Relative Error as ULPs", which has no bound for lgamma.
_GAMMA = {"cpu/f8": 10.0, "cuda/f8": 10.0, "amdgpu/f8": 16.0}
_LGAMMA = {"cpu/f8": 4.0, "cuda/f8": 4.0, "amdgpu/f8": 4.0}
_ERFC_MISSES = {
    "cpu/f8": Miss(2.39, 5.0, "glibc's erfc, which states 5 ulp"),
    "cuda/f8": Miss(2.95, 5.0, "libdevice's erfc, which states 5 ulp"),
    "amdgpu/f8": Miss(2.42, 16.0, "ocml's erfc; OpenCL asks for 16 ulp"),
}
_NEAR_ZEROS = "the library subtracts two numbers that are nearly equal; no digit is left next to a zero"
_LGAMMA_MISSES = {"cuda/f8": Miss(5e15, _inf, _NEAR_ZEROS), "amdgpu/f8": Miss(5e15, _inf, _NEAR_ZEROS)}


def _one(
    name: str, exact: Callable[..., Any], domain: Sampler, special: tuple[Any, ...], *spellings: str, **options: Any
) -> Function:
    return Function(name, spellings or (f"math.{name}(a)", f"np.{name}(a)"), exact, domain, special, **options)


def _two(name: str, exact: Callable[..., Any], points: Sampler, numpy: Any, *spellings: str, **options: Any) -> Function:
    return Function(name, spellings, exact, points, numpy, arity=2, **options)


def _hardest(name: str, exact: Callable[..., Any]) -> Function:
    spellings = f"math.{name}(a)", f"np.{name}(a)"
    return Function(f"{name} of the hardest angles", spellings, exact, hard_angles, _NO_SPECIAL)


def _outside_the_zeros(fmt: Format, rng: np.random.Generator) -> list[Group]:
    domain = Domain(dense=(-20, 20), near=(1.0, 2.0, 0.5, 3.0))
    return [(x[(x > -2.2) | (x < -24)],) for (x,) in domain(fmt, rng)]


def _float_power(x: Any, n: Any) -> Any:
    return np.power(x.astype("f8"), n.astype("f8")).astype(x.dtype)


_LOG = (-_inf, -_inf, _inf, _nan, _nan, 0.0, _nan)
_ODD = (0.0, -0.0, _inf, -_inf, _nan, None, None)
_ODD_TO_1 = (0.0, -0.0, _inf, -_inf, _nan, 1, -1)
_ARC = Domain(-1, 1, (-1, 1), (-1.0, -0.5, 0.5, 1.0))

_EXPONENTIALS = (
    _one("exp", reference.exp, Domain(dense=(-100, 100), near_by_format=_EXP_ENDS), (1, 1, _inf, 0, _nan, None, None)),
    _one("exp2", reference.exp2, Domain(dense=(-150, 130), near_by_format=_EXP2_ENDS), (1, 1, _inf, 0, _nan, 2, 0.5)),
    _one("expm1", reference.expm1, Domain(near=(-0.5, 0.5), near_by_format=_EXP_ENDS), (0.0, -0.0, _inf, -1, _nan, None, None)),
    _one("log", reference.log, Domain(0, near=(1.0, 0.5, 2.0)), _LOG),
    _one("log2", reference.log2, Domain(0, near=(1.0, 0.5, 2.0)), _LOG),
    _one("log10", reference.log10, Domain(0, near=(1.0, 10.0)), _LOG),
    _one("log1p", reference.log1p, Domain(-1, near=(-1.0, -0.5, 0.5)), (0.0, -0.0, _inf, _nan, _nan, None, -_inf)),
    _two("logaddexp", reference.logaddexp, pairs_for_logaddexp, np.logaddexp, "np.logaddexp(a, b)"),
    _two("logaddexp2", reference.logaddexp2, pairs_for_logaddexp, np.logaddexp2, "np.logaddexp2(a, b)"),
)
_TRIGONOMETRIC = (
    _one("sin", mp.sin, Domain(half_pi=True), (0.0, -0.0, _nan, _nan, _nan, None, None)),
    _one("cos", mp.cos, Domain(half_pi=True), (1, 1, _nan, _nan, _nan, None, None)),
    _one("tan", mp.tan, Domain(half_pi=True), (0.0, -0.0, _nan, _nan, _nan, None, None)),
    _hardest("sin", mp.sin),
    _hardest("cos", mp.cos),
    _hardest("tan", mp.tan),
    _one("asin", mp.asin, _ARC, (0.0, -0.0, _nan, _nan, _nan, PI_2, MINUS_PI_2), "math.asin(a)", "np.arcsin(a)"),
    _one("acos", mp.acos, _ARC, (PI_2, PI_2, _nan, _nan, _nan, 0.0, None), "math.acos(a)", "np.arccos(a)"),
    _one("atan", mp.atan, Domain(near=(1.0, -1.0)), (0.0, -0.0, PI_2, MINUS_PI_2, _nan, None, None),
         "math.atan(a)", "np.arctan(a)"),
    _two("atan2", mp.atan2, pairs_for_atan2, np.arctan2, "math.atan2(a, b)", "np.arctan2(a, b)"),
    _one("degrees", reference.degrees, Domain(), _ODD, "math.degrees(a)", "np.degrees(a)", "np.rad2deg(a)"),
    _one("radians", reference.radians, Domain(), _ODD, "math.radians(a)", "np.radians(a)", "np.deg2rad(a)"),
)  # fmt: skip
_HYPERBOLIC = (
    _one("sinh", reference.sinh, Domain(near_by_format=_SINH_ENDS), _ODD),
    _one("cosh", reference.cosh, Domain(near_by_format=_SINH_ENDS), (1, 1, _inf, _inf, _nan, None, None)),
    _one("tanh", reference.tanh, Domain(near=(0.5, 1.0)), (0.0, -0.0, 1, -1, _nan, None, None)),
    _one("asinh", mp.asinh, Domain(near=(1.0,)), _ODD, "math.asinh(a)", "np.arcsinh(a)"),
    _one("acosh", mp.acosh, Domain(1, dense=(1, 10), near=(1.0, 2.0)), (_nan, _nan, _inf, _nan, _nan, 0.0, _nan),
         "math.acosh(a)", "np.arccosh(a)"),
    _one("atanh", mp.atanh, _ARC, (0.0, -0.0, _nan, _nan, _nan, _inf, -_inf), "math.atanh(a)", "np.arctanh(a)"),
)  # fmt: skip
_SPECIAL_FUNCTIONS = (
    _one("erf", reference.erf, Domain(near=(0.84375, 1.25)), (0.0, -0.0, 1, -1, _nan, None, None), "math.erf(a)"),
    _one("erfc", reference.erfc,
         Domain(dense=(-6, 28), near=(0.84375, 1.25), at=(1.2463140836315745, 4.027730752493824, 2.8637564880338708e-8)),
         (1, 1, 0.0, 2, _nan, None, None), "math.erfc(a)", misses=_ERFC_MISSES),
    _one("gamma", reference.gamma, Domain(-190, 180, (-190, 172), (1.0, 2.0), _GAMMA_ENDS),
         (_inf, -_inf, _inf, _nan, _nan, None, _nan), "math.gamma(a)", bars=_GAMMA),
    _one("lgamma", reference.lgamma, _outside_the_zeros, (_inf, _inf, _inf, _inf, _nan, 0.0, _inf), "math.lgamma(a)",
         bars=_LGAMMA),
    _one("lgamma of -24 to -2.2", reference.lgamma, Domain(-24, -2.2, (-24, -2.2), _LGAMMA_ZEROS, at=_LGAMMA_ZEROS),
         _NO_SPECIAL, "math.lgamma(a)", bars=_LGAMMA, misses=_LGAMMA_MISSES),
)  # fmt: skip
_POWERS = (
    _one("sqrt", mp.sqrt, Domain(0), (0.0, -0.0, _inf, _nan, _nan, 1, _nan), bars=_ONCE),
    _one("cbrt", reference.cbrt, Domain(near=(1.0,)), _ODD_TO_1),
    _two("hypot", reference.hypot, pairs_for_hypot, np.hypot, "math.hypot(a, b)", "np.hypot(a, b)"),
    _two("pow", reference.power, pairs_for_power, np.power,
         "math.pow(a, b)", "np.power(a, b)", "np.float_power(a, b)", "a ** b"),
    _two("pow, integer exponent", reference.power, pairs_for_integer_power, _float_power, "a ** b", "math.pow(a, b)",
         integers=True),
    _one("reciprocal", lambda x: 1 / x, Domain(), (_inf, -_inf, 0.0, -0.0, _nan, 1, -1), "np.reciprocal(a)", "1 / a", "a ** -1",
         bars=_ONCE),
    _one("square", lambda x: x**2, Domain(), (0.0, 0.0, _inf, _inf, _nan, 1, 1), "np.square(a)", "a * a", "a ** 2", bars=_ONCE),
    _one("cube", lambda x: x**3, Domain(), _ODD_TO_1, "a ** 3"),
    _one("seventh power", lambda x: x**7, Domain(), _ODD_TO_1, "a ** 7"),
    _one("inverse square", lambda x: x**-2, Domain(), (_inf, _inf, 0.0, 0.0, _nan, 1, 1), "a ** -2"),
)  # fmt: skip

FUNCTIONS = (*_EXPONENTIALS, *_TRIGONOMETRIC, *_HYPERBOLIC, *_SPECIAL_FUNCTIONS, *_POWERS)
