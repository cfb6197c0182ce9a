"""What a kernel with ``cache=True`` keeps on disk: a record for each specialisation, and each variant of its code.

The key of a record says everything that the host pass depends on: the call's key, the options, the code of the kernel and
of what it calls, what they take from around them, and the versions of what compiles. The key of code adds the target.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from numba_offload.analysis.affine import Key
from numba_offload.cache.entries import image_from_file, image_to_file, record_from_file, record_to_file
from numba_offload.cache.folder import file_names, read_file, write_file
from numba_offload.cache.told import tell_once
from numba_offload.cache.versions import versions
from numba_offload.code_digest import CodeDigest
from numba_offload.device.types import StrategyType
from numba_offload.errors import BundleError, NotPlainError, OffloadError
from numba_offload.key_data import key_to_data, strategy_to_data
from numba_offload.launch_facts import MAX_VARIANTS
from numba_offload.record import KernelRecord
from numba_offload.specialisation import Images, Specialisation, loaded
from numba_offload.targets.base import Target
from numba_offload.targets.facts_data import facts_to_data
from numba_offload.targets.image import KernelImage
from numba_offload.targets.options import CompileOptions


@dataclass
class CacheStats:
    """What a kernel took from the cache, in this process. Code is that of kernels, and of checks of users' strategies."""

    record_hits: int = 0
    """Specialisations for which no host pass was needed."""
    record_misses: int = 0
    code_hits: int = 0
    """Variants of code that were not compiled."""
    code_misses: int = 0
    written: int = 0
    """Files."""
    ignored: int = 0
    """Files that were damaged, or of something else."""
    uncached: int = 0
    """Specialisations, or variants of code, that depend on something that is not the same in another process."""


class KernelCache:
    """The cache of one kernel."""

    def __init__(self, kernel: str, options: CompileOptions) -> None:
        self._kernel = kernel
        self._options = options
        self._stats = CacheStats()

    @property
    def stats(self) -> CacheStats:
        """The counts so far."""
        return replace(self._stats)

    def specialisation(
        self, function: Callable[..., Any], names: Sequence[str], key: Sequence[Any], make: Callable[[], Specialisation]
    ) -> Specialisation:
        """The specialisation for a call's key: from disk, or made. Code for it is looked for on disk first."""

        def digest() -> str:
            return self._digest(function, names, key)

        try:
            known = digest()
        except NotPlainError as error:
            made = make()
            _tell(self._kernel, error, self._stats)  # not of a kernel that is refused anyway
            return made
        images = _DiskImages(self._kernel, known, digest, self._stats)
        found = self._load(known, key, images, function)
        if found is None:
            self._stats.record_misses += 1
            found = make()
            found.images = images
            images.record = found.record
        else:
            self._stats.record_hits += 1
        found.checks = self._check
        return found

    def _load(self, known: str, key: Sequence[Any], images: Images, function: Any) -> Specialisation | None:
        data = read_file(_file_name(self._kernel, known, ".record"))
        if data is None:
            return None
        try:
            return loaded(record_from_file(data, known), key, images, function)
        except BundleError:
            self._stats.ignored += 1
            return None

    def _check(self, strategy: StrategyType, check: Callable[..., Any]) -> Images | None:
        """The code that checks a user's strategy, kept like a kernel's. ``check`` is its source."""

        def digest() -> str:
            made = _new_digest("a check")
            made.value(json.dumps(strategy_to_data(strategy, lines=True)), "a strategy")
            made.function(check)
            return made.hexdigest()

        try:
            return _DiskImages(strategy.cls.__name__, digest(), digest, self._stats)
        except NotPlainError as error:
            _tell(self._kernel, error, self._stats)
            return None

    def _digest(self, function: Any, names: Sequence[str], key: Sequence[Any]) -> str:
        options = self._options
        made = _new_digest("a kernel")
        made.value((self._kernel, tuple(names)), "names")
        made.value((options.boundscheck, options.fastmath, options.contract, options.unsafe), "options")
        made.value(json.dumps(key_to_data(key, lines=True)), "a key")
        made.function(function)
        return made.hexdigest()


class _DiskImages:
    """Code of one specialisation, a file for each target and variant. The record goes to disk with the first of them."""

    def __init__(self, name: str, key: str, again: Callable[[], str], stats: CacheStats) -> None:
        self.record: KernelRecord | None = None
        """The record, as long as it is not on disk."""
        self._name = name
        self._key = key
        self._again = again
        self._stats = stats

    def find(self, target: Target, settled: frozenset[Key]) -> KernelImage | None:
        """The code for what a launch has settled.

        Code that assumes less would do, but is slower, and would be found in place of the best one from now on. It is taken
        only once so many variants are there that no more are made.
        """
        key = self._code_key(target)
        image = self._read(self._variant_name(key, settled), key)
        if image is None or image.assumed != settled:
            image = None
            variants = self._variants(key)
            if len(variants) >= MAX_VARIANTS:
                found = [self._read(name, key) for name in variants]
                fitting = [one for one in found if one is not None and one.assumed <= settled]
                image = max(fitting, key=lambda one: len(one.assumed), default=None)
        if image is not None and not self._unchanged():
            image = None
        if image is None:
            self._stats.code_misses += 1
        else:
            self._stats.code_hits += 1
            if self.record is not None:  # it was damaged, or another process removed it
                self._write({})
        return image

    def keep(self, target: Target, image: KernelImage) -> None:
        """Write code that was compiled, and the record if it is new."""
        key = self._code_key(target)
        if image.assumed and len(self._variants(key)) >= MAX_VARIANTS:
            return
        try:
            self._write({self._variant_name(key, image.assumed): image_to_file(image, self._name, key)})
        except BundleError as error:
            _tell(self._name, error, self._stats)

    def _write(self, files: dict[str, bytes]) -> None:
        """Write files, and the record if it is new. Raises BundleError for a record that could not be read again."""
        if not self._unchanged():
            return
        if self.record is not None:
            name = _file_name(self._name, self._key, ".record")
            files = {**files, name: record_to_file(self.record, self._key)}
        written = [write_file(name, data) for name, data in files.items()]
        self._stats.written += sum(written)
        if all(written):
            self.record = None

    def _unchanged(self) -> bool:
        """Whether the key is still that of what would be compiled now: it was made at the host pass, perhaps long ago."""
        try:
            return self._again() == self._key
        except NotPlainError:
            return False

    def _read(self, name: str, key: str) -> KernelImage | None:
        data = read_file(name)
        if data is None:
            return None
        try:
            return image_from_file(data, key)
        except BundleError:
            self._stats.ignored += 1
            return None

    def _code_key(self, target: Target) -> str:
        parts = [self._key, target.name, target.arch, *target.inputs()]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def _variant_name(self, key: str, facts: frozenset[Key]) -> str:
        variant = hashlib.sha256(json.dumps(facts_to_data(facts)).encode()).hexdigest()
        return _file_name(self._name, key, f"-{variant[:16]}.code")

    def _variants(self, key: str) -> list[str]:
        return file_names(_file_name(self._name, key, "-"))


def _tell(kernel: str, error: OffloadError, stats: CacheStats) -> None:
    stats.uncached += 1
    tell_once(f"kernel {kernel!r} is compiled in each process, in spite of cache=True: {error}")


def _new_digest(what: str) -> CodeDigest:
    made = CodeDigest(lines=True)
    made.value((what, tuple(sorted(versions().items()))), "versions")
    return made


def _file_name(name: str, key: str, ending: str) -> str:
    """The name is for people, a part of the key tells files apart, and the whole key is in the file."""
    return f"{re.sub('[^A-Za-z0-9_]', '_', name)[:40]}-{key[:32]}{ending}"
