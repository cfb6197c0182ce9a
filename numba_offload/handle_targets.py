"""Which target a launch on preloaded arrays runs on: the one that holds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from numba_offload.arguments import ArrayLeaf
from numba_offload.errors import TargetError
from numba_offload.targets.registry import TargetState, current_target, described, requested_target


def target_of_handles(kernel: str, preloaded: Sequence[ArrayLeaf], homes: Mapping[str, str]) -> TargetState:
    """The target of the leaves that are handles.

    ``homes``: the targets of device arrays among the arguments, and one argument for each. Raises TargetError where handles
    or arrays are on several targets, and where the program asks for another target than the handles'.
    """
    first = preloaded[0]
    assert first.handle is not None
    state: TargetState = first.handle.borrow.state
    for leaf in preloaded[1:]:
        assert leaf.handle is not None
        if leaf.handle.borrow.state is not state:
            raise TargetError(
                f"kernel {kernel!r}: {_preloaded(first)}, and {_preloaded(leaf)}, but a launch runs on one target; preload "
                "both on the same"
            )
    wrong = next((home for home in homes if home != state.target.name), None)
    if wrong is not None:
        raise TargetError(
            f"kernel {kernel!r}: {_preloaded(first)}, but argument {homes[wrong]!r} lives on a {wrong} device; preload on that "
            "target, or copy the array to the host"
        )
    if requested_target() is not None and current_target() is not state:
        raise TargetError(
            f"kernel {kernel!r}: {_preloaded(first)}, but the kernel is to run on {described(current_target())}; launch it under "
            f"use_target({state.target.name!r}), or preload the array on the target that is current"
        )
    return state


def _preloaded(leaf: ArrayLeaf) -> str:
    assert leaf.handle is not None
    borrow = leaf.handle.borrow
    return f"argument {leaf.name!r} was preloaded on target {described(borrow.state)} ({borrow.origin})"
