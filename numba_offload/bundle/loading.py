"""load_bundle: kernels from a file, which launch without being compiled and without their source."""

from __future__ import annotations

import inspect
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from numba_offload.analysis.affine import Key
from numba_offload.arguments import Arguments, add_argument
from numba_offload.bundle.content import (
    BundledKernel,
    Candidate,
    as_one,
    call_types,
    candidates_of,
    kernels_of,
    layouts_of,
    serves,
    with_layouts,
    without_layouts,
)
from numba_offload.bundle.manifest import read_bundle
from numba_offload.bundle.signatures import shown_signature
from numba_offload.errors import BundleError, SignatureError, TargetError
from numba_offload.kernel_calls import CallableKernel
from numba_offload.record import Parameter
from numba_offload.specialisation import Specialisation, loaded
from numba_offload.targets.base import Target
from numba_offload.targets.image import KernelImage
from numba_offload.version import VERSION


def load_bundle(path: str | os.PathLike[str]) -> LoadedBundle:
    """Read what ``compile_bundle`` wrote: a mapping from the kernels' names to kernels, which are attributes too.

    Each is called and configured as the kernel that was compiled. A launch chooses the code for the current target: that of
    its architecture, or else the best that runs there. Nothing is compiled - but for the check of a Region whose strategy
    is one of your own - and code is made ready when a launch first needs it.

    **A bundle is machine code, which can do whatever this process may. Load only those that you trust.**

    Raises BundleError where the file is no bundle, is damaged, or was made by another version of this package; OSError where
    it cannot be read.
    """
    where = os.fspath(path)
    try:
        bundle = read_bundle(Path(path).read_bytes())
        made_by = bundle.versions.get("numba_offload")
        if made_by != VERSION:
            raise BundleError(f"it was compiled by version {made_by} of numba_offload, and this is {VERSION}")
        return LoadedBundle(where, bundle.versions, kernels_of(bundle), candidates_of(bundle))
    except BundleError as error:
        mend = "" if "; compile" in str(error) else "; compile the bundle again"
        raise BundleError(f"{where}: {error}{mend}") from error


class LoadedBundle(Mapping[str, "LoadedKernel"]):
    """The kernels of a bundle by name. ``versions``: of what compiled them; ``kernels``, ``images``: what the file holds."""

    def __init__(
        self, path: str, versions: Mapping[str, str], kernels: Sequence[BundledKernel], images: Sequence[Candidate]
    ) -> None:
        self.path = path
        self.versions = dict(versions)
        self.kernels = tuple(kernels)
        self.images = tuple(images)
        by_name: dict[str, list[BundledKernel]] = {}
        for kernel in kernels:
            by_name.setdefault(kernel.record.name, []).append(kernel)
        self._kernels = {name: LoadedKernel(name, path, found, images) for name, found in by_name.items()}

    def __getitem__(self, name: str) -> LoadedKernel:
        found = self._kernels.get(name)
        if found is None:
            raise KeyError(f"{self.path} has no kernel {name!r}; it has {', '.join(self._kernels)}")
        return found

    def __getattr__(self, name: str) -> LoadedKernel:
        if name.startswith("__") or name not in self.__dict__.get("_kernels", ()):
            kernels = ", ".join(self.__dict__.get("_kernels", ()))
            raise AttributeError(f"bundle {self.__dict__.get('path', '')} has no kernel {name!r}; it has {kernels}")
        return self._kernels[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._kernels]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kernels)

    def __len__(self) -> int:
        return len(self._kernels)

    def __repr__(self) -> str:
        return f"<bundle {self.path}: {', '.join(self._kernels)}>"


_UNSHOWN = (
    "These look alike, but are not: the offsets, alignment or titles of a record's fields, the module of a named tuple or of a "
    "strategy, or a strategy's source have changed.\n"
)


class _NotKept:
    def __repr__(self) -> str:
        return "..."


_NOT_KEPT: Any = _NotKept()
"""In place of a default that a record does not keep."""


class LoadedKernel(CallableKernel):
    """A kernel of a bundle. It takes arguments of the types that it was compiled for, and arrays of a stricter layout."""

    def __init__(self, name: str, path: str, kernels: Sequence[BundledKernel], images: Sequence[Candidate]) -> None:
        first = kernels[0].record
        if any(k.record.parameters != first.parameters or k.record.captured for k in kernels):
            raise BundleError(f"the records of kernel {name!r} do not agree on its parameters")
        super().__init__(_signature(first.parameters))
        self.__name__ = name
        self.path = path
        self._kernels = tuple(kernels)
        self._images = {k.number: [image for image in images if image.kernel == k.number] for k in kernels}
        self._by_types = {as_one(kernel.types): kernel for kernel in kernels}
        if len(self._by_types) < len(kernels):
            raise BundleError(f"kernel {name!r} is there twice for the same types")
        self._known: dict[tuple[Any, ...], tuple[Specialisation, list[str]]] = {}
        self._loaded: dict[int, Specialisation] = {}
        self._lock = threading.Lock()

    @property
    def signatures(self) -> tuple[str, ...]:
        """The types of arguments that it was compiled for."""
        return tuple(kernel.signature for kernel in self._kernels)

    def __repr__(self) -> str:
        return f"<offload kernel {self.__name__} of {self.path}>"

    def _prepare(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Arguments, Specialisation]:
        arguments = Arguments()
        for name, value in zip(self._names, self._bind(args, kwargs), strict=True):
            if value is _NOT_KEPT:
                raise TypeError(f"kernel {self.__name__}(): the bundle does not keep the default of {name!r}; pass it")
            add_argument(arguments, name, value)
        key = tuple(arguments.key)
        known = self._known.get(key)
        if known is None:
            with self._lock:
                known = self._known[key] = self._find(key)
        specialisation, layouts = known
        for leaf, layout in zip(arguments.arrays, layouts, strict=True):
            leaf.layout = layout
        return arguments, specialisation

    def _find(self, key: tuple[Any, ...]) -> tuple[Specialisation, list[str]]:
        """The specialisation for a call with this key, and the layouts that its code expects arrays to have."""
        types = call_types(key)
        kernel = self._by_types.get(as_one(types)) or self._more_general(types)
        if kernel is None:
            given = shown_signature(types)
            raise SignatureError(
                f"kernel {self.__name__!r}: {self.path} was compiled for other types of arguments.\n"
                f"  given: {given}\n"
                + "".join(f"  compiled for: {signature}\n" for signature in self.signatures)
                + (_UNSHOWN if given in self.signatures else "")
                + "Convert the arguments, or add these types to the call of compile_bundle"
            )
        layouts = layouts_of(kernel.types)
        found = self._loaded.get(kernel.number)
        if found is None:
            images = BundledImages(self.__name__, self.path, self._images[kernel.number])
            found = self._loaded[kernel.number] = loaded(kernel.record, with_layouts(key, layouts), images)
        return found, layouts

    def _more_general(self, types: list[Any]) -> BundledKernel | None:
        """The kernel for these types but for layouts, which its code takes more of; of several, the strictest."""
        wanted, given = as_one(without_layouts(types)), layouts_of(types)
        fitting = [
            kernel
            for kernel in self._kernels
            if as_one(without_layouts(kernel.types)) == wanted and serves(layouts_of(kernel.types), given)
        ]
        return max(fitting, key=lambda kernel: _strictness(layouts_of(kernel.types)), default=None)


def _strictness(layouts: list[str]) -> tuple[int, int]:
    return -layouts.count("A"), layouts.count("C")


def _signature(parameters: Sequence[Parameter]) -> inspect.Signature:
    made = []
    optional = False
    for parameter in parameters:
        kind = inspect.Parameter.POSITIONAL_ONLY if parameter.positional_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
        default = parameter.default if parameter.has_default else _NOT_KEPT if optional else inspect.Parameter.empty
        optional = optional or parameter.has_default
        try:
            made.append(inspect.Parameter(parameter.name, kind, default=default))
        except ValueError as error:
            raise BundleError(f"a record has a parameter that is none: {error}") from None
    try:
        return inspect.Signature(made)
    except ValueError as error:
        raise BundleError(f"a record's parameters are no function's: {error}") from None


class BundledImages:
    """The code of a bundle for one kernel and one call's types: what a specialisation chooses from."""

    def __init__(self, kernel: str, path: str, candidates: Sequence[Candidate]) -> None:
        self._kernel = kernel
        self._path = path
        self._candidates = candidates

    def find(self, target: Target, settled: frozenset[Key]) -> KernelImage:
        """The best code that runs on a target. Raises TargetError where none does."""
        best = self.best(target, settled)
        if best is None:
            raise TargetError(
                f"kernel {self._kernel!r}: {self._path} has no code that runs on {target.described()}; it has code for "
                f"{', '.join(self._shown()) or 'nothing'}. Choose another target with use_target(...), or compile for this one"
            )
        return best.image()

    def best(self, target: Target, settled: frozenset[Key]) -> Candidate | None:
        """The best code for a target, in the variant that assumes the most of what a launch has settled."""
        fitting = [
            (suits, len(candidate.assumed), candidate)
            for candidate in self._candidates
            if candidate.assumed <= settled and (suits := target.suits(candidate.built_for)) is not None
        ]
        return max(fitting, key=lambda found: found[:2])[2] if fitting else None

    def keep(self, target: Target, image: KernelImage) -> None:
        """Without a source, nothing is ever made that could be kept."""
        raise NotImplementedError

    def _shown(self) -> list[str]:
        """Each architecture once."""
        return list(dict.fromkeys(_described(candidate) for candidate in self._candidates))


def _described(candidate: Candidate) -> str:
    code = candidate.built_for
    return f"{code.arch} ({code.kind}, {code.triple})"
