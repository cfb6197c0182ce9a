"""One kernel for one tuple of argument types: its record, and the code that launches have asked for, by target and variant."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from numba.core import errors

from numba_offload.analysis.affine import Key
from numba_offload.arguments import TypeBuilder
from numba_offload.device.types import StrategyType
from numba_offload.diagnostics.explain_errors import explain_other
from numba_offload.errors import BundleError, SafetyError, TargetError, UnsupportedArrayError
from numba_offload.launch_facts import LaunchFacts
from numba_offload.record import KernelRecord
from numba_offload.targets.base import CompiledKernel, Target
from numba_offload.targets.entry import flat_slots
from numba_offload.targets.image import KernelImage
from numba_offload.targets.source import KernelSource


class Images(Protocol):
    """Machine code that was made before, of one specialisation."""

    def find(self, target: Target, settled: frozenset[Key]) -> KernelImage | None:
        """Code for the target that assumes no more than what a launch has settled."""

    def keep(self, target: Target, image: KernelImage) -> None:
        """Take note of code that was made because none was found."""


class Builder(Protocol):
    """A target, or what else makes code."""

    def build(self, source: KernelSource) -> KernelImage:
        """The device pass."""


Checks = Callable[[StrategyType, Callable[..., Any]], Images | None]
"""Machine code that was made before of what checks a strategy of a user's; called with the check's source."""


@dataclass
class Specialisation:
    """What is known about a kernel for these argument types.

    Without ``source`` there is no code but that of ``images``.
    """

    record: KernelRecord
    source: KernelSource | None = None
    images: Images | None = None
    checks: Checks | None = None
    code: dict[tuple[str, str, frozenset[Key]], CompiledKernel] = field(default_factory=dict)
    plans: dict[Any, Any] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.facts = LaunchFacts(self.record.accesses, self.record.leaves, self.record.layout)

    def compiled(self, target: Target, settled: frozenset[Key]) -> CompiledKernel:
        """Code for a target, in the variant for launches that have settled these facts.

        Raises TargetError where there is none and no source to compile.
        """
        key = (target.name, target.arch, settled)
        known = self.code.get(key)
        if known is None:
            with self.lock:
                known = self.code.get(key)
                if known is None:
                    known = self.code[key] = self._make(target, settled)
        return known

    def _make(self, target: Target, settled: frozenset[Key]) -> CompiledKernel:
        record = self.record
        image = None if self.images is None else self.images.find(target, settled)
        if image is not None:
            try:
                return self._load(target, image, settled)
            except TargetError:
                if self.source is None:
                    raise
                # What is compiled here and now may work, and take its place.
        if self.source is None:
            raise TargetError(
                f"kernel {record.name!r}: there is no code for {target.name} ({target.arch}), and no source to compile"
            )
        image = build(target, self.source, settled)
        made = self._load(target, image, settled)
        if self.images is not None:
            self.images.keep(target, image)
        return made

    def _load(self, target: Target, image: KernelImage, settled: frozenset[Key]) -> CompiledKernel:
        record = self.record
        if not image.assumed <= settled:
            raise TargetError(f"kernel {record.name!r}: its code assumes what this launch has not settled")
        known = self.code.get((target.name, target.arch, image.assumed))
        if known is not None:
            return known
        image.check_layout(record.name, record.layout)
        return target.load(image, record.name)


def build(target: Builder, source: KernelSource, settled: frozenset[Key]) -> KernelImage:
    """The device pass, for launches that have settled these facts.

    Raises SafetyError where the kernel cannot be compiled for the target.
    """
    try:
        return target.build(replace(source, options=replace(source.options, assumed=settled)))
    except SafetyError as told:
        raise SafetyError(told.plain) from told.__cause__
    except errors.NumbaError as error:
        raise explain_other(error, source.py_func) from error


def loaded(record: KernelRecord, key: Sequence[Any], images: Images, py_func: Any = None) -> Specialisation:
    """A specialisation from a record that was kept, for a call with this key: nothing is typed or compiled.

    With ``py_func``, the kernel's function, code that ``images`` does not have is compiled.

    Raises BundleError where the record is not of such a call.
    """
    builder = TypeBuilder(record.options.unsafe, record.united)
    names = record.argument_names
    try:
        argtypes = builder.types(names, key)
        layout = tuple(flat_slots(names, argtypes))
    except (ValueError, UnsupportedArrayError) as error:
        raise _of_another_call(record) from error
    if layout != record.layout or set(builder.leaves) != set(record.leaves):
        raise _of_another_call(record)
    source = None
    if py_func is not None:
        source = KernelSource(record.name, py_func, argtypes, record.options, layout)
    return Specialisation(record, source, images)


def _of_another_call(record: KernelRecord) -> BundleError:
    return BundleError(f"kernel {record.name!r}: its record is of a call with other arguments")
