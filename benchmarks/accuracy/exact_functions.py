"""Functions whose results are exact: NumPy's results are what every target must give, to the sign of a zero."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .formats import Format
from .pairs import pairs
from .points import Domain, Group, Sampler, around, log_scale, subnormals, whole_range


@dataclass(frozen=True, eq=False)
class ExactFunction:
    """``result`` is the dtype of the results where it is not that of the arguments.

    ``signed_zeros`` is false where NumPy leaves open which of two zeros the result is.
    """

    name: str
    spellings: tuple[str, ...]
    expected: Callable[..., np.ndarray]
    points: Sampler
    result: str = ""
    arity: int = 1
    signed_zeros: bool = True

    def sample(self, fmt: Format) -> list[Group]:
        return self.points(fmt, np.random.default_rng(0))


def _numbers(fmt: Format, rng: np.random.Generator) -> list[Group]:
    halves = (np.arange(-40, 41) / 2).astype(fmt.dtype)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan], fmt.dtype)
    largest = np.array([fmt.largest, -fmt.largest], fmt.dtype)
    near = around(fmt, 2.0 ** (fmt.precision - 1)), around(fmt, 0.5)
    return [(special,), (largest,), (halves,), *Domain()(fmt, rng), *((x,) for x in near)]


def _pairs_of_numbers(fmt: Format, rng: np.random.Generator) -> list[Group]:
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 2.5, -fmt.largest], fmt.dtype)
    x, y = (grid.ravel() for grid in np.meshgrid(special, special))
    usual = log_scale(fmt, rng, -8, 8, 400)
    return [(x, y), *pairs([
        (usual, log_scale(fmt, rng, -8, 8, 400)), (whole_range(fmt, rng, 200), whole_range(fmt, rng, 200)),
        (usual, usual), (usual, usual * 3), (log_scale(fmt, rng, 0, 30, 200), log_scale(fmt, rng, -30, 2, 200)),
        (subnormals(fmt, rng, 40), subnormals(fmt, rng, 40)),
    ])]  # fmt: skip


def _as_int64(x: np.ndarray) -> np.ndarray:
    """What the package promises of a float as an integer: nan gives 0, what is out of range the nearest end."""
    whole = [0 if math.isnan(v) else max(-(2**63), min(2**63 - 1, int(v) if math.isfinite(v) else _sign(v) * 2**64))
             for v in x.tolist()]  # fmt: skip
    return np.array(whole, np.int64)


def _sign(value: float) -> int:
    return 1 if value > 0 else -1


def _pairs_for_ldexp(fmt: Format, rng: np.random.Generator) -> list[Group]:
    """The second argument, rounded to an integer, is the exponent."""
    x, _ = _pairs_of_numbers(fmt, rng)[1]
    powers = rng.integers(-2 * fmt.largest_exponent, 2 * fmt.largest_exponent, len(x))
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0], fmt.dtype)
    wide = whole_range(fmt, rng, 300)
    return [
        (special, np.array([3, -3, 3, -3, 1, 4], "i4")), (x, powers.astype("i4")),
        (wide, rng.integers(-4 * fmt.largest_exponent, 4 * fmt.largest_exponent, len(wide)).astype("i4")),
        (wide[:4], np.array([2**31 - 1, -(2**31), 100000, -100000], "i4")),
    ]  # fmt: skip


def _one(name: str, expected: Callable[..., Any] | None = None, *spellings: str, result: str = "") -> ExactFunction:
    return ExactFunction(name, spellings or (f"np.{name}(a)",), expected or getattr(np, name), _numbers, result)


def _two(name: str, expected: Callable[..., Any] | None = None, *spellings: str, **options: Any) -> ExactFunction:
    written = spellings or (f"np.{name}(a, b)",)
    return ExactFunction(name, written, expected or getattr(np, name), _pairs_of_numbers, arity=2, **options)


def _ieee_remainder(x: Any, y: Any) -> Any:
    def one(a: float, b: float) -> float:
        if math.isnan(a) or math.isnan(b) or math.isinf(a) or b == 0:
            return math.nan
        return math.remainder(a, b)

    return np.array([one(float(a), float(b)) for a, b in zip(x, y, strict=True)]).astype(x.dtype)


EXACT_FUNCTIONS = (
    _one("ceil"),
    _one("floor"),
    _one("trunc"),
    _one("rint", np.rint, "np.rint(a)", "np.round(a)"),
    _one("ceil to an integer", lambda x: _as_int64(np.ceil(x)), "math.ceil(a)", result="i8"),
    _one("floor to an integer", lambda x: _as_int64(np.floor(x)), "math.floor(a)", result="i8"),
    _one("trunc to an integer", lambda x: _as_int64(np.trunc(x)), "math.trunc(a)", "int(a)", result="i8"),
    _one("round to an integer", lambda x: _as_int64(np.rint(x)), "round(a)", result="i8"),
    _one("fabs", np.fabs, "math.fabs(a)", "np.fabs(a)", "np.absolute(a)", "abs(a)"),
    _one("negative", np.negative, "np.negative(a)", "-a"),
    _one("sign"),
    _one("spacing"),
    _one("signbit", result="?"),
    _one("isnan", np.isnan, "math.isnan(a)", "np.isnan(a)", result="?"),
    _one("isinf", np.isinf, "math.isinf(a)", "np.isinf(a)", result="?"),
    _one("isfinite", np.isfinite, "math.isfinite(a)", "np.isfinite(a)", result="?"),
    _one("frexp, mantissa", lambda x: np.frexp(x)[0], "math.frexp(a)[0]", "np.frexp(a)[0]"),
    _one("frexp, exponent", lambda x: np.frexp(x)[1], "math.frexp(a)[1]", "np.frexp(a)[1]", result="i4"),
    _one("modf, fraction", lambda x: np.modf(x)[0], "math.modf(a)[0]", "np.modf(a)[0]"),
    _one("modf, whole", lambda x: np.modf(x)[1], "math.modf(a)[1]", "np.modf(a)[1]"),
    _two("copysign", np.copysign, "math.copysign(a, b)", "np.copysign(a, b)"),
    _two("fmod", np.fmod, "math.fmod(a, b)", "np.fmod(a, b)"),
    _two("remainder", np.remainder, "np.remainder(a, b)", "np.mod(a, b)", "a % b", "divmod(a, b)[1]", "np.divmod(a, b)[1]"),
    _two("floor_divide", np.floor_divide, "np.floor_divide(a, b)", "a // b", "divmod(a, b)[0]", "np.divmod(a, b)[0]"),
    _two("ieee remainder", _ieee_remainder, "math.remainder(a, b)"),
    _two("nextafter", np.nextafter, "math.nextafter(a, b)", "np.nextafter(a, b)"),
    _two("maximum", signed_zeros=False),
    _two("minimum", signed_zeros=False),
    _two("fmax", signed_zeros=False),
    _two("fmin", signed_zeros=False),
    _two("heaviside"),
    ExactFunction("ldexp", ("math.ldexp(a, b)", "np.ldexp(a, b)"), np.ldexp, _pairs_for_ldexp, arity=2),
)  # fmt: skip
