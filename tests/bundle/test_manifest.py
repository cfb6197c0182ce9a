"""Bundles: what is written is read, and no byte of a file can change without being noticed."""

from __future__ import annotations

import hashlib
import json
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_bundles import BUNDLE, mutations

from numba_offload.bundle import manifest as module
from numba_offload.bundle.manifest import MAX_DEPTH, Bundle, BundledImage, read_bundle, write_bundle
from numba_offload.bundle.offload_binary import Image, ImageKind, ProducerKind, read_images, write_images
from numba_offload.errors import BundleError

WRITTEN = write_bundle(BUNDLE)
MANIFEST = json.loads(read_images(WRITTEN)[0].data)

_names = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=20)
_texts = st.text(st.characters(blacklist_categories=["Cs"]), max_size=20)
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_texts, inner, max_size=3),
    max_leaves=8,
)
_objects = st.dictionaries(_texts, _json, max_size=3)


@st.composite
def _bundles(draw):
    kernels = [{**draw(_objects), "name": draw(_names)} for _ in range(draw(st.integers(1, 3)))]
    images = st.builds(
        BundledImage,
        kernel=st.integers(0, len(kernels) - 1),
        kind=st.sampled_from(ImageKind),
        triple=_names,
        arch=_names,
        description=_objects,
        data=st.binary(max_size=50),
    )
    return Bundle(draw(st.dictionaries(_texts, _texts, max_size=2)), kernels, draw(st.lists(images, max_size=4)))


@given(_bundles())
@settings(deadline=None)
def test_what_is_written_is_read(bundle):
    assert read_bundle(write_bundle(bundle)) == bundle


def test_equal_bundles_are_equal_bytes():
    assert write_bundle(BUNDLE) == WRITTEN
    assert write_bundle(read_bundle(WRITTEN)) == WRITTEN


def test_every_single_byte_matters():
    rng = random.Random(2)
    for at in range(len(WRITTEN)):
        data = bytearray(WRITTEN)
        data[at] ^= rng.randrange(1, 256)
        with pytest.raises(BundleError):
            read_bundle(bytes(data))


def test_damaged_files():
    """Whatever is done to a file: it is refused with the one documented error, or is the same bundle still."""
    same = 0
    for data in mutations(WRITTEN, 10_000, seed=3):
        try:
            bundle = read_bundle(data)
        except BundleError:
            continue
        same += 1
        assert bundle == BUNDLE
    assert same < 2_000


def signed(manifest: bytes) -> bytes:
    """A file with another manifest, and the digest that goes with it."""
    strings = {"triple": "manifest", "arch": "json", "sha256": hashlib.sha256(manifest).hexdigest()}
    return write_images([Image(ImageKind.NONE, ProducerKind.NONE, strings, manifest), *read_images(WRITTEN)[1:]])


def test_forged_manifests():
    """Digests do not stop who can make new ones: also then nothing but the documented error comes out."""
    text = json.dumps(MANIFEST).encode()
    read = 0
    for manifest in mutations(text, 3_000, seed=4):
        try:
            bundle = read_bundle(signed(manifest))
        except BundleError:
            continue
        read += 1
        assert [image.data for image in bundle.images] == [image.data for image in BUNDLE.images]
        assert write_bundle(bundle)
    assert 0 < read < 2_000


def with_image(number: int, **changes: object) -> bytes:
    images = [{**image, **(changes if k == number else {})} for k, image in enumerate(MANIFEST["images"])]
    return json.dumps({**MANIFEST, "images": images}).encode()


def with_whole(**changes: object) -> bytes:
    return json.dumps({**MANIFEST, **changes}).encode()


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        (b"", "not JSON in UTF-8"),
        (b"\xff", "not JSON in UTF-8"),
        (json.dumps(MANIFEST).encode("utf-16"), "not JSON in UTF-8"),
        (b"[" * 1_000_000, f"nested deeper than {MAX_DEPTH} levels"),
        (b"[" * 60 + b"]" * 60, f"nested deeper than {MAX_DEPTH} levels"),
        (b'{"a":' * 60 + b"1" + b"}" * 60, f"nested deeper than {MAX_DEPTH} levels"),
        (b"9" * 10_000, "not JSON in UTF-8: Exceeds the limit"),
        (b'"\\ud800"', "not JSON in UTF-8: .*surrogates not allowed"),
        (b'{"a": 1, "a": 2}', "a key twice"),
        (b"NaN", "has NaN, which is no JSON number"),
        (b"1e999", "a number beyond what a float can hold"),
        (b"[]", "not of the format 'numba_offload bundle'"),
        (with_whole(format="other"), "not of the format 'numba_offload bundle'"),
        (with_whole(version=2), "version 2 of the format, and only 1 .* load it with the one that wrote it"),
        (with_whole(version=True), "version True of the format"),
        (with_whole(extra=1), "the manifest does not have the fields format, version, .* and only these"),
        (with_whole(kernels={}), "the manifest has a dict as 'kernels', not list"),
        (with_whole(versions={"llvm": 22}), "'versions' are not all strings"),
        (with_whole(kernels=[{"name": 1}]), "kernel 0 is not a record with a name"),
        (with_whole(images=[]), "names 0 images, but 5 follow it"),
        (with_whole(images=MANIFEST["images"] * 2), "names 10 images, but 5 follow it"),
        (with_whole(images=[None] * 5), "image 0 does not have the fields"),
        (with_image(1, kernel=3), "image 1 belongs to kernel 3, but there are 3"),
        (with_image(1, kernel=-1), "image 1 belongs to kernel -1"),
        (with_image(1, kernel=False), "image 1 has a bool as 'kernel', not int"),
        (with_image(1, kernel=2), "image 1 has another strings than the manifest says"),
        (with_image(1, kind="tape"), "image 1 has the unknown kind 'tape'"),
        (with_image(1, kind="ptx"), "image 1 has another kind than the manifest says"),
        (with_image(1, triple="nvptx64"), "image 1 has another strings than the manifest says"),
        (with_image(1, size=3), r"image 1 \(sm_80\) is not the one whose size and SHA-256 the manifest has"),
        (with_image(1, sha256="00"), r"image 1 \(sm_80\) is not the one whose size and SHA-256 the manifest has"),
    ],
)
def test_what_is_wrong_with_a_manifest_is_said(manifest, message):
    with pytest.raises(BundleError, match=message):
        read_bundle(signed(manifest))


def test_images_that_were_exchanged_lost_or_added():
    first, *images = read_images(WRITTEN)
    with pytest.raises(BundleError, match="image 0 has another strings"):
        read_bundle(write_images([first, images[1], images[0], *images[2:]]))
    with pytest.raises(BundleError, match=r"image 0 \(sm_80\) is not the one"):
        read_bundle(write_images([first, replace(images[0], data=images[1].data), *images[1:]]))
    with pytest.raises(BundleError, match="names 5 images, but 4 follow it"):
        read_bundle(write_images([first, *images[1:]]))
    with pytest.raises(BundleError, match="names 5 images, but 6 follow it"):
        read_bundle(write_images([first, *images, images[0]]))
    with pytest.raises(BundleError, match="the first image is not a manifest"):
        read_bundle(write_images(images))
    with pytest.raises(BundleError, match="the manifest is not what its SHA-256 stands for"):
        read_bundle(write_images([replace(first, data=first.data + b" "), *images]))
    with pytest.raises(BundleError, match="image 0 has another producer"):
        read_bundle(write_images([first, replace(images[0], producer=ProducerKind.CUDA), *images[1:]]))


def test_a_large_manifest(monkeypatch):
    monkeypatch.setattr(module, "MAX_MANIFEST_BYTES", 100)
    with pytest.raises(BundleError, match=r"the manifest has \d+ bytes; at most 100 are read"):
        read_bundle(WRITTEN)
    with pytest.raises(BundleError, match="bundle the kernels in several files"):
        write_bundle(BUNDLE)


@pytest.mark.parametrize(
    "change",
    [
        {"kernels": [{"name": "k", "value": float("nan")}]},
        {"kernels": [{"name": "k", "value": {1, 2}}]},
        {"kernels": [{"name": "k\0"}] * 3},
        {"kernels": [{}] * 3},
        {"kernels": []},
        {"versions": {"llvm": 22}},
    ],
)
def test_what_cannot_be_written(change):
    with pytest.raises(BundleError):
        write_bundle(replace(BUNDLE, **change))
