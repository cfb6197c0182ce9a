"""The suite's checksum: weighted absolute values, summed in extended precision."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

TOLERANCE = 1e-10
"""The suite's "normal" bound on the relative difference of two checksums."""

_INVERSE_PI = 1.0 / np.pi


def checksum(arrays: Iterable[np.ndarray]) -> np.longdouble:
    """Sum ``weight(j, v) * abs(v)`` over the elements of all arrays, j being the flat index in each.

    The weight is ``frac((j + o) / pi) + 0.5`` with ``o`` 1 for ``v >= 0`` and 0.5 otherwise, so that a value
    in the wrong place or of the wrong sign shows.
    """
    total = np.longdouble(0)
    for array in arrays:
        values = array.ravel()
        position = (np.arange(values.size) + np.where(values >= 0, 1.0, 0.5)) * _INVERSE_PI
        weights = position - np.floor(position) + 0.5
        # Pairwise summation in extended precision is as exact here as the suite's compensated sum.
        total += (weights.astype(np.longdouble) * np.abs(values)).sum()
    return total


def relative_difference(value: np.longdouble, reference: np.longdouble) -> float:
    """``abs(value - reference) / abs(reference)``; infinite if the value is not a number."""
    difference = float(abs(value - reference) / abs(reference))
    return difference if np.isfinite(difference) else float("inf")
