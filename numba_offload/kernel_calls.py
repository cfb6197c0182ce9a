"""How a kernel is called, whether it is compiled from its function or was read from a file."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from time import perf_counter
from typing import Any

from numba_offload.arguments import Arguments
from numba_offload.diagnostics import events, launch_log
from numba_offload.errors import LaunchError
from numba_offload.execution import Residencies, execute, execute_again, move_again
from numba_offload.explanation import explanation, mappings
from numba_offload.launching import as_extent
from numba_offload.mapping.borrow import BORROWS
from numba_offload.relaunch import Relaunch, repeatable
from numba_offload.specialisation import Specialisation
from numba_offload.targets.registry import current_target

_REMEMBERED = 4
"""Launches of a kernel that may come again: two arrays that change places make two kinds, three make three."""


class CallableKernel(ABC):
    """What runs as a kernel on the current target.

    ``kernel(...)`` sizes the launch from its Regions; ``kernel[blocks, threads](...)`` and
    ``kernel[blocks, threads, stream](...)`` say it. Host arrays are moved as the kernel's accesses need; the call returns
    when the results are back.
    """

    __name__: str

    def __init__(self, signature: inspect.Signature) -> None:
        self._signature = signature
        self._names = tuple(signature.parameters)
        self._recent: tuple[Relaunch, ...] = ()

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        launch = self._told_launch if events.listeners else self._launch
        launch(None, args, kwargs)

    def __getitem__(self, configuration: Any) -> ConfiguredKernel:
        if not isinstance(configuration, tuple) or not 2 <= len(configuration) <= 3:
            raise LaunchError(
                f"kernel {self.__name__}[...] takes [blocks, threads] or [blocks, threads, stream], got {configuration!r}"
                + ("; leave the size of shared memory out, kernels have none" if _has_shared_size(configuration) else "")
            )
        blocks = as_extent(configuration[0], "blocks")
        block = as_extent(configuration[1], "threads per block")
        return ConfiguredKernel(self, blocks, block, configuration[2] if len(configuration) > 2 else None)

    def mappings(self, *args: Any, **kwargs: Any) -> dict[str, str]:
        """How each argument would be mapped: ``none``, ``to``, ``from``, ``tofrom``, or ``literal`` for scalars.

        Leaves of tuples are named as one would write them (``p.vel``, ``t[1][0]``).
        """
        return mappings(*self._prepare(args, kwargs))

    def explain(self, *args: Any, **kwargs: Any) -> str:
        """Why each argument is mapped as it is, with the lines that decide it."""
        return explanation(*self._prepare(args, kwargs))

    @abstractmethod
    def _prepare(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Arguments, Specialisation]:
        """The call's leaves, and what is known about the kernel for their types."""

    def _frozen(self) -> tuple[Any, ...] | None:
        """The values from around the kernel that its code holds; None where it takes arrays, which launches read anew."""
        return ()

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        if not kwargs and len(args) == len(self._names):
            return args
        unknown = [name for name in kwargs if name not in self._signature.parameters]
        if unknown:
            raise TypeError(
                f"kernel {self.__name__}(): it has no parameter {unknown[0]!r}; it is defined as {self.__name__}{self._signature}"
            )
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(
                f"kernel {self.__name__}(): {error}; it is defined as {self.__name__}{self._signature}"
            ) from None
        bound.apply_defaults()
        return bound.args

    def _launch(
        self,
        asked: tuple[Any, Any, Any] | None,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        residencies: Residencies | None = None,
    ) -> None:
        if not kwargs:
            for earlier in self._recent:
                if earlier.asked == asked and self._repeat(earlier, args, residencies):
                    return
        arguments, specialisation = self._prepare(args, kwargs)
        borrows = BORROWS.version
        launched = execute(asked, arguments, specialisation, residencies)
        if launched is None or kwargs:
            return
        in_place = launched.state.device.memory.unified
        resident = residencies is not None and not in_place and not launched.held
        if not (resident or in_place or launched.held or launched.moved):
            return
        frozen = self._frozen()
        if frozen is None:
            return
        moved = launched.moved is not None
        items = repeatable(args, self._names, arguments, specialisation.record.layout, in_place or resident or moved)
        if items is None:
            return
        relaunch = Relaunch(asked, frozen, items, launched, borrows)
        if residencies is not None and resident:
            residencies.remember(self, args, relaunch)
        else:
            self._recent = (relaunch, *self._recent[: _REMEMBERED - 1])

    def _told_launch(self, *launch: Any) -> None:
        started = perf_counter()
        try:
            self._launch(*launch)
        finally:
            events.record_call(self.__name__, started)

    def _repeat(self, earlier: Relaunch, args: tuple[Any, ...], residencies: Residencies | None) -> bool:
        """Launch as an earlier time, if nothing but scalars has changed; returns whether it has."""
        launched = earlier.launched
        if launched.moved is not None and residencies is not None:
            return False  # here they may stay
        if launch_log.mask & (launch_log.ARGUMENTS | launch_log.TABLE):
            return False  # the short way has nothing to tell of them
        flat = earlier.arguments(args)
        if flat is None or current_target() is not launched.state:
            return False
        if earlier.captured and self._frozen() != earlier.captured:
            return False
        if launched.moved is not None:
            move_again(launched, launched.moved, earlier.arrays(args), flat)
        else:
            execute_again(launched, flat)
        return True


class ConfiguredKernel:
    """A kernel with an explicit launch configuration."""

    __slots__ = ("_asked", "_kernel")

    def __init__(self, kernel: CallableKernel, blocks: Any, block: Any, stream: Any) -> None:
        self._kernel = kernel
        self._asked = (blocks, block, stream)

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        kernel = self._kernel
        launch = kernel._told_launch if events.listeners else kernel._launch
        launch(self._asked, args, kwargs)

    def __repr__(self) -> str:
        return f"<offload kernel {self._kernel.__name__} [{self._asked[0]}, {self._asked[1]}]>"


def _has_shared_size(configuration: Any) -> bool:
    """As numba.cuda has it: blocks, threads, stream, bytes of shared memory."""
    return isinstance(configuration, tuple) and len(configuration) == 4
