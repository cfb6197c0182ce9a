"""Random sequences of preloads, launches, releases and host accesses, against a model in plain NumPy."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from staged_kernels import add, fill, fill_then_fail, sum_up

from numba_offload import BorrowError, LaunchError, Region, preload, preload_mut, profile
from numba_offload.mapping.borrow import BORROWS

_SIZE = 12
_PARTS = (
    slice(None), slice(0, 6), slice(6, 12), slice(3, 9), slice(0, 12, 2), slice(1, 12, 2), slice(None, None, -1),
)  # fmt: skip
_parts = st.sampled_from(_PARTS)
_arrays = st.integers(0, 1)


@dataclass
class Held:
    """A preload of the model: of which array, which elements, and what became of them."""

    array: int
    elements: np.ndarray
    mutable: bool
    handle: Any
    content: np.ndarray
    written: bool = False

    def spans(self, elements: np.ndarray) -> bool:
        """Whether its elements are a whole range, and others lie in it: these are on the device then."""
        whole = (np.diff(np.sort(self.elements)) == 1).all()
        return bool(whole) and self.elements.min() <= elements.min() and elements.max() <= self.elements.max()


class Staging(RuleBasedStateMachine):
    """The model keeps each array as the host is to see it, and each mutable preload's content apart."""

    separate = True

    def __init__(self) -> None:
        super().__init__()
        self.arrays = [np.arange(float(_SIZE)), np.zeros(_SIZE)]
        # Made before any preload, as their flags are their own.
        self.views = [[array[part] for part in _PARTS] for array in self.arrays]
        self.expected = [array.copy() for array in self.arrays]
        self.held: list[Held] = []
        self.value = 100.0

    def teardown(self) -> None:
        while self.held:
            self.release(-1)
        assert not BORROWS.live
        for array, views in zip(self.arrays, self.views, strict=True):
            assert all(one.flags.writeable for one in (array, *views))

    def clash(self, array: int, part: slice, written: bool) -> bool:
        elements = np.arange(_SIZE)[part]
        return any(
            one.array == array and (written or one.mutable) and np.isin(elements, one.elements).any() for one in self.held
        )

    def chosen(self, number: int, mutable: bool) -> Held | None:
        choice = [one for one in self.held if one.mutable == mutable]
        return choice[number % len(choice)] if choice else None

    def fresh(self) -> float:
        self.value += 1
        return self.value

    @rule(array=_arrays, part=_parts, mutable=st.booleans())
    def preload(self, array: int, part: slice, mutable: bool) -> None:
        view = self.views[array][_PARTS.index(part)]
        verb = preload_mut if mutable else preload
        if self.clash(array, part, mutable):
            with pytest.raises(BorrowError, match=r"since .*test_staging_stateful\.py:\d+"):
                verb(view)
            return
        elements = np.arange(_SIZE)[part]
        content = self.expected[array][part].copy()
        inside = any(one.array == array and not one.mutable and one.spans(elements) for one in self.held)
        with profile() as p:
            handle = verb(view)
        if self.separate and not mutable and inside:
            assert p.h2d_count == 0
        if self.separate and mutable:
            assert (p.h2d_count, p.h2d_bytes) == (1, view.nbytes)
        self.held.append(Held(array, elements, mutable, handle, content))

    @precondition(lambda self: self.held)
    @rule(number=st.integers(-1, 5))
    def release(self, number: int) -> None:
        one = self.held.pop(number % len(self.held))
        with profile() as p:
            one.handle.release()
        assert p.d2h_count == (1 if one.written and self.separate else 0)
        if one.mutable:
            self.expected[one.array][one.elements] = one.content

    @rule(number=st.integers(0, 5), reverse=st.booleans())
    def launch_fills_a_handle(self, number: int, reverse: bool) -> None:
        one = self.chosen(number, mutable=True)
        if one is not None:
            value, step = self.fresh(), -2 if reverse else 1
            with profile() as p:
                fill(value, Region(one.handle[::step] if reverse else one.handle))
            assert (p.h2d_count, p.d2h_count) == (0, 0)
            one.content[::step] = value
            one.written = True

    @rule(source=st.integers(0, 5), number=st.integers(0, 5))
    def launch_adds_a_handle_to_a_handle(self, source: int, number: int) -> None:
        x, y = self.chosen(source, mutable=False), self.chosen(number, mutable=True)
        if x is not None and y is not None:
            count = min(x.content.size, y.content.size)
            with profile() as p:
                add(x.handle, Region(y.handle[:count]))
            assert (p.h2d_count, p.d2h_count) == (0, 0)
            y.content[:count] += x.content[:count]
            y.written = True

    @rule(number=st.integers(0, 5))
    def launch_fails(self, number: int) -> None:
        one = self.chosen(number, mutable=True)
        if one is not None:
            # Writes what is there already, so that the model need not know which elements are new.
            fill(value := self.fresh(), Region(one.handle))
            with pytest.raises(ValueError, match="limit"):
                fill_then_fail(value, 2, Region(one.handle))
            one.content[:] = value
            one.written = True

    @rule(array=_arrays, part=_parts)
    def managed_launch_writes(self, array: int, part: slice) -> None:
        view, value = self.views[array][_PARTS.index(part)], self.fresh()
        if self.clash(array, part, True):
            with pytest.raises(BorrowError):
                fill(value, Region(view))
            return
        try:
            fill(value, Region(view))
        except LaunchError as error:
            # A view that was preloaded, whose array is still locked, is not writable: no element of it is borrowed.
            raise AssertionError(error) from error
        self.expected[array][part] = value

    @rule(array=_arrays, part=_parts)
    def managed_launch_reads(self, array: int, part: slice) -> None:
        view, out = self.views[array][_PARTS.index(part)], np.zeros(1)
        if self.clash(array, part, False):
            with pytest.raises(BorrowError):
                sum_up(view, Region(out))
            return
        sum_up(view, Region(out))
        assert out[0] == self.expected[array][part].sum()

    @rule(array=_arrays, index=st.integers(0, _SIZE - 1))
    def host_writes(self, array: int, index: int) -> None:
        value = self.fresh()
        if any(one.array == array for one in self.held):
            with pytest.raises(ValueError, match="read-only"):
                self.arrays[array][index] = value
            return
        self.arrays[array][index] = value
        self.expected[array][index] = value

    @invariant()
    def the_host_sees_what_is_not_borrowed_for_writing(self) -> None:
        for number, (array, expected) in enumerate(zip(self.arrays, self.expected, strict=True)):
            borrowed = [one.elements for one in self.held if one.mutable and one.array == number]
            free = np.setdiff1d(np.arange(_SIZE), np.concatenate([[], *borrowed]))
            np.testing.assert_array_equal(array[free], expected[free])
            assert array.flags.writeable == (not any(one.array == number for one in self.held))
        for one in self.held:
            if not one.mutable:
                np.testing.assert_array_equal(np.asarray(one.handle), one.content)


@pytest.mark.parametrize("debug", ["", "borrow"])
@pytest.mark.parametrize("memory", ["unified", "discrete"])
def test_any_sequence(memory: str, debug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_OFFLOAD_TARGET", "cpu")
    monkeypatch.setenv("NUMBA_OFFLOAD_CPU_MEMORY", memory)
    monkeypatch.setenv("NUMBA_OFFLOAD_DEBUG", debug)

    class Machine(Staging):
        separate = memory == "discrete"

    examples = int(os.environ.get("NUMBA_OFFLOAD_STAGING_EXAMPLES", "50"))
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=examples, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
