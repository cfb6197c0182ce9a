"""The facts that a variant of a kernel's code assumes (see ``options.py``) as plain data, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from numba_offload.plain_data import Plain, listed, refuse


def facts_to_data(facts: Iterable[tuple[Any, ...]]) -> Plain:
    """Facts in an order of their own: equal sets are equal data."""
    return sorted((list(fact) for fact in facts), key=repr)


def read_fact(value: Plain, what: str) -> tuple[Any, ...]:
    """One fact: strings and integers. Raises BundleError for anything else."""
    if type(value) is not list or not value or not all(item is None or type(item) in (str, int) for item in value):
        refuse(what, value, "a list of strings and integers")
    return tuple(value)


def facts_from_data(data: Plain) -> frozenset[tuple[Any, ...]]:
    """The facts. Raises BundleError for data that is none."""
    return frozenset(listed(data, "facts", read_fact))
