"""Files that are no bundles, or not the ones that were written: refused with BundleError, and nothing else."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import field_kernels
import pytest
from sample_bundles import mutations

from numba_offload import BundleError, load_bundle
from numba_offload.bundle.compiling import make_bundle
from numba_offload.bundle.content import candidates_of, kernels_of
from numba_offload.bundle.loading import LoadedBundle
from numba_offload.bundle.manifest import Bundle, read_bundle, write_bundle


def test_another_version_of_the_package_is_told(small, tmp_path):
    bundle = read_bundle(small.read_bytes())
    for version in ({"numba_offload": "0.0.9"}, {}):
        (tmp_path / "file").write_bytes(write_bundle(replace(bundle, versions=version)))
        with pytest.raises(BundleError, match=r"file: it was compiled by version .* and this is .*; compile the bundle again"):
            load_bundle(tmp_path / "file")


def test_another_version_of_the_format_is_told(small, tmp_path):
    data = small.read_bytes()
    bundle = read_bundle(data)
    kernels = [{**kernel, "record": {**kernel["record"], "format": 99}} for kernel in bundle.kernels]
    (tmp_path / "file").write_bytes(write_bundle(replace(bundle, kernels=kernels)))
    with pytest.raises(BundleError, match="file: the format of a record is 99; .*compile the bundle again"):
        load_bundle(tmp_path / "file")


def test_what_is_no_bundle_is_told(tmp_path):
    (tmp_path / "file").write_bytes(b"PK\3\4 something else")
    with pytest.raises(BundleError, match="file: "):
        load_bundle(tmp_path / "file")
    with pytest.raises(FileNotFoundError):
        load_bundle(tmp_path / "other")


def test_damaged_files_are_refused(small, tmp_path):
    whole = small.read_bytes()
    for data in mutations(whole, 300, seed=5):
        if data != whole:
            (tmp_path / "file").write_bytes(data)
            with pytest.raises(BundleError):
                load_bundle(tmp_path / "file")


def changed(value, rng):
    """Plain data with one part of it changed."""
    if isinstance(value, dict) and value and rng.random() < 0.95:
        key = rng.choice(sorted(value))
        return {**value, key: changed(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.95:
        at = rng.randrange(len(value))
        return [*value[:at], changed(value[at], rng), *value[at + 1 :]]
    return rng.choice([None, True, 0, 1, -1, 7, 2**63, 1.5, "", "x", "f8", "C", [], [[]], {}, ["array"], {"a": 1}])


def test_manifests_that_say_something_else_are_refused_or_harmless(small):
    """Whole files, but with records and descriptions that nothing here would have written."""
    bundle = read_bundle(small.read_bytes())
    rng = random.Random(3)
    refused = 0
    for _ in range(1500):
        kernels, images = [json.loads(json.dumps(k)) for k in bundle.kernels], list(bundle.images)
        if rng.random() < 0.5:
            at = rng.randrange(len(kernels))
            kernels[at] = changed(kernels[at], rng)
        else:
            at = rng.randrange(len(images))
            images[at] = replace(images[at], description=changed(json.loads(json.dumps(images[at].description)), rng))
        try:
            data = write_bundle(Bundle(bundle.versions, kernels, images))
        except (BundleError, TypeError, ValueError, AttributeError):
            continue  # not even a manifest
        try:
            loaded_from(data)
        except BundleError:
            refused += 1
    assert refused > 500


def loaded_from(data):
    """load_bundle without a file, and every image looked at."""
    bundle = read_bundle(data)
    made = LoadedBundle("memory", bundle.versions, kernels_of(bundle), candidates_of(bundle))
    for image in made.images:
        image.image()


def test_records_that_contradict_each_other_are_refused(small, tmp_path):
    bundle = read_bundle(small.read_bytes())
    first, *others = bundle.kernels
    record = {**first["record"], "parameters": [["a", False, []], *first["record"]["parameters"][1:]]}
    for kernels in ([first, first, *others[1:]], [first, {**others[0], "record": record}, *others[1:]]):
        (tmp_path / "file").write_bytes(write_bundle(replace(bundle, kernels=kernels)))
        with pytest.raises(BundleError, match="compile the bundle again"):
            load_bundle(tmp_path / "file")


def test_bundles_are_made_alike_each_time():
    one, other = (make_bundle([(field_kernels.saxpy, "f8, f8[::1], Region(f8[::1])")], ["cpu"]) for _ in range(2))
    assert write_bundle(one) == write_bundle(other)
