"""Where functions are sampled: the whole domain on a logarithmic scale, and densely where mathematics libraries go wrong.

Points come in groups, so that a slow target, which takes only some of them, takes some of each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .formats import Format

Group = tuple[np.ndarray, ...]
"""One array for each argument."""

Sampler = Callable[[Format, np.random.Generator], list[Group]]


def log_scale(fmt: Format, rng: np.random.Generator, low: float, high: float, count: int) -> np.ndarray:
    """Numbers of both signs whose logarithms (base 2) are even between two exponents."""
    size = np.exp2(rng.uniform(low, high, count))
    return (size * rng.choice([-1.0, 1.0], count)).astype(fmt.dtype)


def whole_range(fmt: Format, rng: np.random.Generator, count: int) -> np.ndarray:
    """Numbers of every size that the format has, both signs."""
    low = fmt.smallest_subnormal_exponent
    return log_scale(fmt, rng, low, fmt.largest_exponent + 0.999, count)


def around(fmt: Format, centre: float) -> np.ndarray:
    """A number, its neighbours, and numbers ever farther from it."""
    c = np.dtype(fmt.dtype).type(centre)
    found = [c]
    for towards in (-np.inf, np.inf):
        near = c
        for _ in range(6):
            near = np.nextafter(near, c.dtype.type(towards))
            found.append(near)
    scale = abs(centre) or 1.0
    steps = scale * np.exp2(-np.arange(1.0, fmt.precision, 1.0 if fmt.precision < 30 else 2.0))
    return np.concatenate([np.array(found), (centre + steps).astype(c.dtype), (centre - steps).astype(c.dtype)])


def near_multiples_of_half_pi(fmt: Format, rng: np.random.Generator, count: int) -> np.ndarray:
    """The numbers nearest to multiples of pi/2, from the first to those that are as large as the format goes."""
    from mpmath import mp

    most = fmt.largest_exponent - 1
    factors = [1, 2, 3, 4, 5, 6, 7, 8, *(int(f) for f in np.exp2(rng.uniform(3, 50, count // 2)))]
    with mp.workprec(1200):
        multiples = [mp.pi / 2 * f for f in factors]
        multiples += [mp.floor(mp.mpf(2) ** e / mp.pi) * mp.pi / 2 for e in rng.uniform(50, most, count // 2)]
        nearest = np.array([float(m) for m in multiples]).astype(fmt.dtype)
    return np.concatenate([nearest, -nearest, np.nextafter(nearest, nearest.dtype.type(0))])


HARDEST_ANGLES = {"f8": 6381956970095103.0 * 2.0**797, "f4": 16367173.0 * 2.0**72}
"""Of all numbers of a format that which is nearest to a multiple of pi/2 (J.-M. Muller, Elementary Functions)."""

HARD_ANGLES_BELOW_2_25 = (
    45.553093477052, 91.106186954104, 14461176.67027838, 182.212373908208, 28922353.34055676, 364.424747816416,
    728.849495632832, 1457.698991265664, 2915.397982531328, 321307.9594422229, 1698673.2849629424, 1.5707963267948966,
    5830.795965062656, 642615.9188844458, 3397346.5699258847, 3.141592653589793,
)  # fmt: skip
"""Of the doubles nearest to the multiples of pi/2 below 2**25 the sixteen that are nearest: up to there the libraries'
own reduction of angles is used."""


def hard_angles(fmt: Format, rng: np.random.Generator) -> list[Group]:
    """Next to odd and to even multiples of pi/2."""
    hardest = HARDEST_ANGLES[fmt.dtype]
    angles = np.array([hardest, 2 * hardest, 4 * hardest, hardest / 2, *HARD_ANGLES_BELOW_2_25], fmt.dtype)
    return [(np.concatenate([angles, -angles]),)]


@dataclass(frozen=True)
class Domain:
    """Where a function of one argument is defined, and where it is difficult."""

    low: float = -math.inf
    high: float = math.inf
    dense: tuple[float, float] = (-10.0, 10.0)
    near: Sequence[float] = ()
    near_by_format: Mapping[str, Sequence[float]] = field(default_factory=dict)
    half_pi: bool = False
    at: Sequence[float] = ()
    """Single points, of which none is left out: those with the largest errors known."""

    def __call__(self, fmt: Format, rng: np.random.Generator) -> list[Group]:
        groups = [
            whole_range(fmt, rng, 300),
            log_scale(fmt, rng, -fmt.precision - 4, 9, 700),
            rng.uniform(*self.dense, 500).astype(fmt.dtype),
            subnormals(fmt, rng, 40),
        ]
        centres = [*self.near, *self.near_by_format.get(fmt.dtype, ())]
        groups += [around(fmt, centre) for centre in centres]
        if self.half_pi:
            groups.append(near_multiples_of_half_pi(fmt, rng, 200))
        groups += [np.array([x], fmt.dtype) for x in self.at]
        if self.low >= 0:
            groups = [np.abs(x) for x in groups]
        return [(x[self._inside(x)],) for x in groups]

    def _inside(self, x: np.ndarray) -> Any:
        wide = x.astype("f8")
        return np.isfinite(wide) & (wide != 0) & (wide >= self.low) & (wide <= self.high)


def subnormals(fmt: Format, rng: np.random.Generator, count: int) -> np.ndarray:
    """Numbers below the smallest normal one, the least and the largest of them among them."""
    bits = rng.integers(1, 2 ** (fmt.precision - 1), count)
    bits[:2] = 1, 2 ** (fmt.precision - 1) - 1
    found = np.ldexp(bits.astype("f8"), fmt.smallest_subnormal_exponent).astype(fmt.dtype)
    return found * rng.choice([-1, 1], count).astype(fmt.dtype)


def some_of(groups: list[Group], most: int) -> Group:
    """At most so many points, and of each group in proportion to its size."""
    total = sum(len(group[0]) for group in groups)
    share = min(1.0, most / max(total, 1))
    rng = np.random.default_rng(1)
    chosen = []
    for group in groups:
        order = np.sort(rng.permutation(len(group[0]))[: math.ceil(share * len(group[0]))])
        chosen.append(tuple(argument[order] for argument in group))
    return tuple(np.concatenate([group[k] for group in chosen]) for k in range(len(groups[0])))
