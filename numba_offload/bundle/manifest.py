"""A bundle: an offload binary whose first image, the manifest, says what the others are.

The manifest is JSON: the format's name and version, the versions of what compiled the kernels, a record for each kernel, and
for each further image its kernel, its description, its size and its SHA-256. The manifest's own SHA-256 is a string beside
it. So whoever has read a bundle knows that no byte of it has changed since it was written - by accident: digests in
the file itself do not protect from somebody who writes a file to do harm.

What records and descriptions mean is not known here.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from numba_offload.bundle.offload_binary import Image, ImageKind, ProducerKind, read_images, write_images
from numba_offload.errors import BundleError

FORMAT = "numba_offload bundle"
FORMAT_VERSION = 1

MANIFEST_TRIPLE = "manifest"
"""In place of a triple, by which LLVM's tools extract the manifest."""

MAX_MANIFEST_BYTES = 16 << 20
"""JSON takes up to some 20 times its size in memory once it is read."""
MAX_DEPTH = 32
"""How deep lists and objects may be nested in each other."""

_AGAIN = "compile the bundle again, or copy it again if it was whole elsewhere"


@dataclass(frozen=True)
class BundledImage:
    """Code for one kernel and one architecture. ``description`` is JSON data."""

    kernel: int
    """The number of its record in the bundle."""
    kind: ImageKind
    triple: str
    arch: str
    description: Mapping[str, Any]
    data: bytes = field(repr=False)


@dataclass(frozen=True)
class Bundle:
    """What a bundle's file holds. ``kernels`` are JSON data, each with at least the kernel's ``name``."""

    versions: Mapping[str, str]
    """Of what compiled the kernels: this package, Numba, LLVM ..."""
    kernels: Sequence[Mapping[str, Any]]
    images: Sequence[BundledImage]


def write_bundle(bundle: Bundle) -> bytes:
    """The contents of a bundle's file. Raises BundleError for what it cannot hold.

    LLVM's tools extract each image by ``image=N``, or by kernel, triple and arch.
    """
    manifest = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "versions": dict(bundle.versions),
        "kernels": [dict(record) for record in bundle.kernels],
        "images": [
            {
                "kernel": image.kernel,
                "kind": image.kind.name.lower(),
                "triple": image.triple,
                "arch": image.arch,
                "size": len(image.data),
                "sha256": hashlib.sha256(image.data).hexdigest(),
                "description": dict(image.description),
            }
            for image in bundle.images
        ],
    }
    try:
        encoded = json.dumps(manifest, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise BundleError(f"a bundle's records and descriptions must be JSON data: {error}") from None
    return write_images([_manifest_image(encoded), *_expected_images(_Manifest(encoded), bundle.images)])


def read_bundle(data: bytes) -> Bundle:
    """What a bundle's file holds. Raises BundleError where any part of it is missing, added, changed or not understood.

    What the records and descriptions say is up to who reads them.
    """
    manifest_image, *others = read_images(data)
    if manifest_image != _manifest_image(manifest_image.data):
        found = manifest_image.strings
        if found.get("triple") != MANIFEST_TRIPLE:
            _fail("the first image is not a manifest", "only what compile_bundle wrote can be loaded as a bundle")
        _fail("the manifest is not what its SHA-256 stands for, or is described otherwise than it should be")
    manifest = _Manifest(manifest_image.data)
    if len(others) != len(manifest.images):
        _fail(f"the manifest names {len(manifest.images)} images, but {len(others)} follow it")
    images = [
        BundledImage(
            described["kernel"],
            ImageKind[described["kind"].upper()],
            described["triple"],
            described["arch"],
            described["description"],
            image.data,
        )
        for described, image in zip(manifest.images, others, strict=True)
    ]
    for number, (image, expected) in enumerate(zip(others, _expected_images(manifest, images), strict=True)):
        if image != expected:
            what = ", ".join(name for name in ("kind", "producer", "strings") if getattr(image, name) != getattr(expected, name))
            _fail(f"image {number} has another {what} than the manifest says")
        described = manifest.images[number]
        if (len(image.data), hashlib.sha256(image.data).hexdigest()) != (described["size"], described["sha256"]):
            _fail(f"image {number} ({described['arch']}) is not the one whose size and SHA-256 the manifest has")
    return Bundle(manifest.versions, manifest.kernels, images)


def _manifest_image(encoded: bytes) -> Image:
    strings = {"triple": MANIFEST_TRIPLE, "arch": "json", "sha256": hashlib.sha256(encoded).hexdigest()}
    return Image(ImageKind.NONE, ProducerKind.NONE, strings, encoded)


def _expected_images(manifest: _Manifest, images: Sequence[BundledImage]) -> list[Image]:
    """The images as the manifest describes them.

    Their producer is none, as LLVM 19 and 20 do not agree on the numbers of the others.
    """
    return [
        Image(
            image.kind,
            ProducerKind.NONE,
            {
                "triple": image.triple,
                "arch": image.arch,
                "kernel": manifest.kernels[image.kernel]["name"],
                "image": str(number),
            },
            image.data,
        )
        for number, image in enumerate(images)
    ]


class _Manifest:
    """A manifest's JSON, checked: only what is attached to kernels and images is left open."""

    def __init__(self, encoded: bytes) -> None:
        whole = _json(encoded)
        if type(whole) is not dict or whole.get("format") != FORMAT:
            _fail(f"the manifest is not of the format {FORMAT!r}")
        if type(whole.get("version")) is not int or whole["version"] != FORMAT_VERSION:
            _fail(
                f"it has version {whole.get('version')!r} of the format, and only {FORMAT_VERSION} can be read",
                "compile it again with this version of numba_offload, or load it with the one that wrote it",
            )
        _check(whole, "the manifest", format=str, version=int, versions=dict, kernels=list, images=list)
        self.versions: dict[str, str] = whole["versions"]
        self.kernels: list[dict[str, Any]] = whole["kernels"]
        self.images: list[dict[str, Any]] = whole["images"]
        if not all(type(version) is str for version in self.versions.values()):
            _fail("the manifest's 'versions' are not all strings")
        for number, record in enumerate(self.kernels):
            if type(record) is not dict or type(record.get("name")) is not str:
                _fail(f"the manifest's kernel {number} is not a record with a name")
        for number, image in enumerate(self.images):
            self._check_image(image, f"the manifest's image {number}")

    def _check_image(self, image: Any, what: str) -> None:
        _check(image, what, kernel=int, kind=str, triple=str, arch=str, size=int, sha256=str, description=dict)
        if not 0 <= image["kernel"] < len(self.kernels):
            _fail(f"{what} belongs to kernel {image['kernel']}, but there are {len(self.kernels)}")
        if image["kind"] not in _KINDS:
            _fail(f"{what} has the unknown kind {image['kind'][:40]!r}")


_KINDS = frozenset(kind.name.lower() for kind in ImageKind)


def _check(found: Any, what: str, **fields: type) -> None:
    """That an object has these fields, and no others. ``bool`` is not ``int`` here."""
    if type(found) is not dict or found.keys() != fields.keys():
        _fail(f"{what} does not have the fields {', '.join(fields)}, and only these")
    for name, expected in fields.items():
        if type(found[name]) is not expected:
            _fail(f"{what} has a {type(found[name]).__name__} as {name!r}, not {expected.__name__}")


def _json(encoded: bytes) -> Any:
    if len(encoded) > MAX_MANIFEST_BYTES:
        _fail(
            f"the manifest has {len(encoded)} bytes; at most {MAX_MANIFEST_BYTES} are read", "bundle the kernels in several files"
        )
    try:
        value = json.loads(encoded.decode(), object_pairs_hook=_object, parse_constant=_constant)
        _check_nesting(value)
    except BundleError:
        raise
    except RecursionError:
        _fail(f"the manifest's JSON is nested deeper than {MAX_DEPTH} levels")
    except MemoryError:
        _fail("the manifest does not fit into memory", "load the bundle in a process with more")
    except ValueError as error:
        _fail(f"the manifest is not JSON in UTF-8: {error}")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        _fail("the manifest's JSON has an object with a key twice")
    return made


def _constant(name: str) -> NoReturn:
    _fail(f"the manifest's JSON has {name}, which is no JSON number")


def _check_nesting(value: Any) -> None:
    """Refuse what later readers could stumble over: deep nesting, infinities, halves of surrogate pairs as characters."""
    level, depth = [value], 0
    while level:
        if depth > MAX_DEPTH:
            raise RecursionError
        deeper: list[Any] = []
        for item in level:
            if type(item) is dict:
                deeper += item.keys()
                deeper += item.values()
            elif type(item) is list:
                deeper += item
            elif type(item) is str:
                item.encode()
            elif type(item) is float and not math.isfinite(item):
                _fail("the manifest's JSON has a number beyond what a float can hold")
        level, depth = deeper, depth + 1


def _fail(wrong: str, mend: str = _AGAIN) -> NoReturn:
    raise BundleError(f"bundle: {wrong}; {mend}")
