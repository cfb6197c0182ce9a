"""What compile_bundle puts into a bundle's manifest about each kernel and image, and how load_bundle finds it there."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import llvmlite
import numba
import numpy as np

from numba_offload.analysis.affine import Key
from numba_offload.bundle.manifest import Bundle, BundledImage
from numba_offload.bundle.offload_binary import ImageKind
from numba_offload.errors import BundleError
from numba_offload.key_data import key_to_data
from numba_offload.plain_data import Plain, fields, listed, refuse, text
from numba_offload.record import KernelRecord
from numba_offload.record_data import record_from_data, record_to_data
from numba_offload.targets.ahead import CodeTarget
from numba_offload.targets.base import BuiltFor
from numba_offload.targets.cpu.features import FEATURE
from numba_offload.targets.facts_data import facts_from_data
from numba_offload.targets.image import KernelImage
from numba_offload.targets.image_data import image_from_data, image_to_data
from numba_offload.version import VERSION

_KINDS = {"object": ImageKind.OBJECT, "ptx": ImageKind.PTX, "cubin": ImageKind.CUBIN}
_NAMES = {kind: name for name, kind in _KINDS.items()}
_LAYOUT = 4
"""Where the description of an array has its layout."""
_MORE_GENERAL = {"C": "CIA", "I": "IA", "A": "A"}


def versions() -> dict[str, str]:
    """Of what compiles kernels here. A bundle is only loaded by the version of this package that made it."""
    return {
        "numba_offload": VERSION,
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
        "python": platform.python_version(),
    }


# ---------------------------------------------------------------------------------------------------------- calls' types

_SAME = {np.dtype(name).str: name for name in ("f8", "?", "i8", "u8", "c16")}


def call_types(key: Sequence[Any]) -> list[Plain]:
    """A call's key as plain data; Python's numbers and NumPy's of the same type are the same.

    Raises NotPlainError where a user's strategy takes something from around it that has no form as plain data.
    """
    return key_to_data([_SAME.get(entry, entry) if isinstance(entry, str) else entry for entry in key])


def as_one(types: Sequence[Plain]) -> str:
    """Types as a hashable whole."""
    return json.dumps(types, separators=(",", ":"))


def layouts_of(types: Sequence[Plain]) -> list[str]:
    """The layouts of the arrays among a call's types."""
    return [entry[_LAYOUT] for entry in types if _is_array(entry)]


def without_layouts(types: Sequence[Plain]) -> list[Plain]:
    """A call's types, of whatever layouts its arrays are."""
    return [[*entry[:_LAYOUT], "", *entry[_LAYOUT + 1 :]] if _is_array(entry) else entry for entry in types]


def serves(made_for: Sequence[str], given: Sequence[str]) -> bool:
    """Whether code for arrays of these layouts runs on arrays of those."""
    return all(one in _MORE_GENERAL[other] for one, other in zip(made_for, given, strict=True))


def with_layouts(key: Sequence[Any], layouts: Sequence[str]) -> list[Any]:
    """A call's key, as if its arrays had these layouts."""
    left = iter(layouts)
    return [(*e[:3], next(left), *e[4:]) if type(e) is tuple and isinstance(e[0], np.dtype) else e for e in key]


def _is_array(entry: Plain) -> bool:
    return type(entry) is list and entry[0] in ("array", "region", "accumulator")


# --------------------------------------------------------------------------------------------------------------- kernels


@dataclass(frozen=True)
class BundledKernel:
    """A kernel for one call's types, as the manifest has it."""

    number: int
    record: KernelRecord
    types: list[Plain]
    signature: str
    """The types as a reader would write them."""


def kernel_to_data(record: KernelRecord, types: list[Plain], signature: str) -> dict[str, Plain]:
    """What ``kernels_of`` reads."""
    return {"name": record.name, "signature": signature, "types": types, "record": record_to_data(record)}


def kernels_of(bundle: Bundle) -> list[BundledKernel]:
    """The kernels of a bundle. Raises BundleError for records that are none."""
    found = []
    for number, data in enumerate(bundle.kernels):
        what = f"kernel {number}"
        kernel = fields(dict(data), what, ("name", "signature", "types", "record"))
        record = record_from_data(kernel["record"])
        if record.name != text(kernel["name"], what):
            refuse(what, kernel["name"], f"the name of its record, {record.name!r}")
        types = list(listed(kernel["types"], f"the types of {what}", _entry))
        found.append(BundledKernel(number, record, types, text(kernel["signature"], what)))
    return found


def _entry(value: Plain, what: str) -> Plain:
    """One type, as far as it is looked at before it is compared."""
    if value is None or type(value) is str:
        return value
    if type(value) is not list or not value:
        refuse(what, value, "the description of a type")
    if _is_array(value) and (len(value) <= _LAYOUT or value[_LAYOUT] not in tuple(_MORE_GENERAL)):
        refuse(what, value, "the description of an array")
    return value


# ---------------------------------------------------------------------------------------------------------------- images


@dataclass(frozen=True)
class Candidate:
    """An image that a launch may choose."""

    kernel: int
    target: str
    """As the user named it."""
    built_for: BuiltFor
    assumed: frozenset[Key]
    bundled: BundledImage

    @property
    def variant(self) -> str:
        """For listings."""
        return f"{len(self.assumed)} facts settled" if self.assumed else "safe"

    def image(self) -> KernelImage:
        """The code, with what a launch must know of it. Raises BundleError where the description is none."""
        image = image_from_data(self.bundled.description["image"], self.bundled.data)
        if (image.kind, image.triple, image.arch) != (self.built_for.kind, self.built_for.triple, self.built_for.arch):
            raise BundleError(f"an image is described as {image.kind} for {image.arch}, and as {self.built_for}")
        return image


def image_to_bundle(kernel: int, image: KernelImage, target: CodeTarget) -> BundledImage:
    """An image with its description, which ``candidates_of`` reads."""
    description = {"target": target.name, "features": list(target.features), "image": image_to_data(image)}
    return BundledImage(kernel, _KINDS[image.kind], image.triple, image.arch, description, image.data)


def candidates_of(bundle: Bundle) -> list[Candidate]:
    """The images of a bundle. Raises BundleError for descriptions that are none."""
    found = []
    for number, bundled in enumerate(bundle.images):
        what = f"image {number}"
        described = fields(dict(bundled.description), what, ("target", "features", "image"))
        if bundled.kind not in _NAMES:
            refuse(what, bundled.kind.name.lower(), f"one of {', '.join(_KINDS)}")
        features = listed(described["features"], f"the features of {what}", _feature)
        about: Mapping[str, Plain] = described["image"] if type(described["image"]) is dict else {}
        built_for = BuiltFor(_NAMES[bundled.kind], bundled.triple, bundled.arch, features)
        assumed = facts_from_data(about.get("assumed"))
        found.append(Candidate(bundled.kernel, text(described["target"], what), built_for, assumed, bundled))
    return found


def _feature(value: Plain, what: str) -> str:
    # It may become part of a module in LLVM's language.
    return value if FEATURE.fullmatch(text(value, what)) else refuse(what, value, "a feature's name")
