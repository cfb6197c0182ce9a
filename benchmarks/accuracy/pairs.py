"""Sample points of the functions of two numbers, each with the places that are difficult for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .formats import Format
from .points import Group, around, log_scale, subnormals, whole_range


def pairs(groups: Iterable[tuple[np.ndarray, np.ndarray]], keep: Callable[..., Any] | None = None) -> list[Group]:
    """Groups of pairs of finite numbers other than 0, and only those that ``keep`` has nothing against."""
    made: list[Group] = []
    for x, y in groups:
        fine = np.isfinite(x) & np.isfinite(y) & (x != 0) & (y != 0)
        if keep is not None:
            fine &= keep(x.astype("f8"), y.astype("f8"))
        made.append((x[fine], y[fine]))
    return made


def pairs_for_atan2(fmt: Format, rng: np.random.Generator) -> list[Group]:
    usual = log_scale(fmt, rng, -20, 20, 900), log_scale(fmt, rng, -20, 20, 900)
    wide = whole_range(fmt, rng, 300), whole_range(fmt, rng, 300)
    tiny = subnormals(fmt, rng, 40), subnormals(fmt, rng, 40)
    close = log_scale(fmt, rng, -100, 100, 300)
    return pairs([usual, wide, tiny, (close, close * np.resize(around(fmt, 1.0), 300))])


def pairs_for_hypot(fmt: Format, rng: np.random.Generator) -> list[Group]:
    top, bottom = fmt.largest_exponent, fmt.smallest_exponent
    overflowing = log_scale(fmt, rng, top - 1, top, 60), log_scale(fmt, rng, top - 30, top, 60)
    tiny = subnormals(fmt, rng, 60), log_scale(fmt, rng, bottom - 10, bottom + 30, 60)
    return [*pairs_for_atan2(fmt, rng), *pairs([overflowing, tiny])]


def pairs_for_power(fmt: Format, rng: np.random.Generator) -> list[Group]:
    def positive(count: int, low: float, high: float) -> np.ndarray:
        return np.abs(log_scale(fmt, rng, low, high, count))

    def small(count: int) -> np.ndarray:
        return rng.uniform(-1, 1, count).astype(fmt.dtype)

    # Results of every size, and beyond; the same of bases near 1, with long exponents.
    top = float(fmt.largest_exponent)
    base = positive(900, -12, 12)
    exponent = (rng.uniform(-top - 30, top, 900) / np.abs(np.log2(base.astype("f8")))).astype(fmt.dtype)
    near_one = np.tile(around(fmt, 1.0), 8)
    near_one = near_one[(near_one > 0) & (near_one != 1)]
    long = (rng.uniform(-top, top, len(near_one)) / np.log2(near_one.astype("f8"))).astype(fmt.dtype)
    return pairs([
        (base, log_scale(fmt, rng, -20, 5, 900)),
        (base, exponent),
        (near_one, long),
        (log_scale(fmt, rng, -5, 5, 300), rng.integers(-30, 30, 300).astype(fmt.dtype)),
        (np.abs(whole_range(fmt, rng, 300)), small(300)),
        (np.abs(subnormals(fmt, rng, 60)), small(60)),
    ])  # fmt: skip


def pairs_for_integer_power(fmt: Format, rng: np.random.Generator) -> list[Group]:
    """The second argument, an integer, is the exponent."""
    near_one = np.repeat(around(fmt, 1.0), 20)
    return [
        (log_scale(fmt, rng, -12, 12, 900), rng.integers(-60, 60, 900)),
        (near_one, rng.integers(-3000, 3000, len(near_one))),
        (whole_range(fmt, rng, 300), rng.integers(-5, 6, 300)),
    ]


def pairs_for_logaddexp(fmt: Format, rng: np.random.Generator) -> list[Group]:
    x = log_scale(fmt, rng, -20, 9, 900)
    further = np.abs(x) + log_scale(fmt, rng, -20, 9, 900)

    def keep(a: Any, b: Any) -> Any:
        # Where the sum of the powers is nearly 1, its logarithm is a difference of nearly equal numbers, in NumPy too.
        cancels = np.abs(np.logaddexp(a, b)) < 0.5 * np.maximum(np.abs(a), np.abs(b))
        return (np.maximum(a, b) >= 0) | ~cancels

    return pairs([(x, further), (np.abs(x), x), (whole_range(fmt, rng, 200), whole_range(fmt, rng, 200))], keep)
