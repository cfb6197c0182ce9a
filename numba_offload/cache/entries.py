"""A record or an image as a file of the cache, and back: a bundle that holds one of them, with the key it was made under."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from numba_offload.bundle.manifest import Bundle, BundledImage, read_bundle, write_bundle
from numba_offload.bundle.offload_binary import ImageKind
from numba_offload.cache.versions import versions
from numba_offload.errors import BundleError
from numba_offload.record import KernelRecord
from numba_offload.record_data import record_from_data, record_to_data
from numba_offload.targets.image import KernelImage
from numba_offload.targets.image_data import KINDS, image_from_data, image_to_data
from numba_offload.targets.sites import LostException, RaiseSite, Site

_KINDS = {kind: ImageKind[kind.upper()] for kind in KINDS}


def record_to_file(record: KernelRecord, key: str) -> bytes:
    """What ``record_from_file`` reads. Raises BundleError for what it would not."""
    kernel = {"name": record.name, "key": key, "record": record_to_data(record)}
    data = write_bundle(Bundle(versions(), [kernel], []))
    record_from_file(data, key)
    return data


def record_from_file(data: bytes, key: str) -> KernelRecord:
    """The record that was kept under a key. Raises BundleError where the file holds anything else."""
    bundle = _checked(data, {"name", "key", "record"}, key, images=0)
    return record_from_data(bundle.kernels[0]["record"])


def image_to_file(image: KernelImage, name: str, key: str) -> bytes:
    """What ``image_from_file`` reads, for the kernel ``name``.

    Raises BundleError for what cannot be read as it was: an exception that cannot be imported, a constant that is no plain
    value among the arguments of one.
    """
    described = BundledImage(0, _KINDS[image.kind], image.triple, image.arch, image_to_data(image), image.data)
    data = write_bundle(Bundle(versions(), [{"name": name, "key": key}], [described]))
    again = image_from_file(data, key)
    for number, site in image.sites.items():
        # By what they look like: 1, 1.0 and True are equal, and a NaN equals nothing.
        if repr(again.sites[number]) != repr(site):
            raise BundleError(f"{_shown(site)} would not be the same after it was read from a file")
    if replace(again, sites={}) != replace(image, sites={}):
        raise BundleError("its code would not be the same after it was read from a file")
    return data


def _shown(site: Site) -> str:
    if isinstance(site, RaiseSite) and not isinstance(site.exception, LostException):
        return f"the exception {site.exception.__qualname__} with the arguments {site.args!r}"
    return repr(site)


def image_from_file(data: bytes, key: str) -> KernelImage:
    """The image that was kept under a key. Raises BundleError where the file holds anything else."""
    bundle = _checked(data, {"name", "key"}, key, images=1)
    (described,) = bundle.images
    image = image_from_data(described.description, described.data)
    known = (_KINDS[image.kind], image.triple, image.arch)
    if known != (described.kind, described.triple, described.arch):
        raise BundleError("a cached image is described in two ways")
    return image


def _checked(data: bytes, fields: set[str], key: str, images: int) -> Bundle:
    bundle = read_bundle(data)
    kernels: Any = bundle.kernels
    if len(kernels) != 1 or set(kernels[0]) != fields or len(bundle.images) != images:
        raise BundleError("a file of the cache holds something else")
    if kernels[0]["key"] != key or dict(bundle.versions) != dict(versions()):
        raise BundleError("a file of the cache has the name of another one")
    return bundle
