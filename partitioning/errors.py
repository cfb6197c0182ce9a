"""The two ways a partition is turned down. Both are ValueErrors: the caller's numbers do not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from partitioning.findings import Finding


class PartitionRefused(ValueError):
    """A strategy breaks its promise: two owners, an element out of range or missed, or int64 overflow.

    `counterexample` is the record that shows it (see `partitioning.findings`).
    """

    def __init__(self, message: str, counterexample: Finding) -> None:
        super().__init__(message)
        self.counterexample = counterexample

    def __reduce__(self) -> tuple[type[PartitionRefused], tuple[str, Finding]]:
        return type(self), (self.args[0], self.counterexample)


class LaunchRefused(ValueError):
    """A sound strategy does not fit this launch: the array's shape or the configuration is wrong for it."""
