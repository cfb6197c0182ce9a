"""Files that are not what they were: ignored, and written again."""

from __future__ import annotations

import random
import shutil

import pytest
from cached_kernels import HIT, again, counts, run

from numba_offload import offload_kernel
from numba_offload.bundle.manifest import Bundle, read_bundle, write_bundle
from numba_offload.targets.cpu.target import CPUTarget


@offload_kernel
def gathered(x, y):
    for i in y.indices():
        y[i] = x[i] + 1


EXPECTED = [1.0, 2.0, 3.0, 4.0]


@pytest.fixture
def kept(folder, cpu):
    """A record and code on disk, by ending."""
    run(again(gathered))
    return {path.suffix: path for path in folder.iterdir()}


def check(kept, ending):
    """The damaged file is ignored, and replaced."""
    kernel = again(gathered)
    assert run(kernel) == EXPECTED
    assert kernel.cache_stats.ignored == 1
    assert counts(kernel) == ((0, 1, 1, 0) if ending == ".record" else (1, 0, 0, 1))
    kernel = again(gathered)
    run(kernel)
    assert counts(kernel) == HIT
    assert kernel.cache_stats.ignored == 0
    assert len(list(kept[ending].parent.iterdir())) == 2


@pytest.fixture(autouse=True)
def nothing_damaged_is_loaded(monkeypatch):
    """Whatever reaches LLVM is what LLVM made."""
    load = CPUTarget.load
    made = set()
    build = CPUTarget.build

    def building(self, source):
        image = build(self, source)
        made.add(image.data)
        return image

    def loading(self, image, name):
        assert image.data in made, "a damaged object is loaded"
        return load(self, image, name)

    monkeypatch.setattr(CPUTarget, "build", building)
    monkeypatch.setattr(CPUTarget, "load", loading)


ENDINGS = [".record", ".code"]
TO = {
    "empty": lambda data: b"",
    "one byte": lambda data: data[:1],
    "cut in half": lambda data: data[: len(data) // 2],
    "cut at the end": lambda data: data[:-8],
    "longer": lambda data: data + bytes(8),
    "twice": lambda data: data * 2,
    "zeros": lambda data: bytes(len(data)),
    "text": lambda data: b"#!/bin/sh\n",
    "another format": lambda data: b"\x7fELF" + data[4:],
    "JSON": lambda data: b'{"format": 1}',
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("how", TO)
def test_damage(how, ending, kept):
    kept[ending].write_bytes(TO[how](kept[ending].read_bytes()))
    check(kept, ending)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_byte_anywhere(ending, kept):
    whole = kept[ending].read_bytes()
    choose = random.Random(20261130)
    for _ in range(12):
        at = choose.randrange(len(whole))
        data = bytearray(whole)
        data[at] ^= 1 << choose.randrange(8)
        kept[ending].write_bytes(data)
        check(kept, ending)
        assert kept[ending].read_bytes() == whole


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_under_the_name_of_another(ending, kept):
    other = again(offload_kernel(fastmath=True)(gathered.py_func))
    run(other)
    (foreign,) = [path for path in kept[ending].parent.glob(f"*{ending}") if path != kept[ending]]
    shutil.copy(foreign, kept[ending])
    foreign.unlink()
    kernel = again(gathered)
    assert run(kernel) == EXPECTED
    assert kernel.cache_stats.ignored == 1


@pytest.mark.parametrize("ending", ENDINGS)
def test_records_and_code_in_each_others_place(ending, kept):
    other = next(e for e in ENDINGS if e != ending)
    shutil.copy(kept[other], kept[ending])
    check(kept, ending)


def rewritten(path, change):
    """The file with its digests right and its content changed."""
    bundle = read_bundle(path.read_bytes())
    versions, kernels, images = dict(bundle.versions), [dict(k) for k in bundle.kernels], list(bundle.images)
    change(versions, kernels, images)
    path.write_bytes(write_bundle(Bundle(versions, kernels, images)))


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize(
    "change",
    [
        lambda versions, kernels, images: versions.update(numba="0.1"),
        lambda versions, kernels, images: kernels[0].update(key="0" * 64),
        lambda versions, kernels, images: kernels[0].update(more=1),
        lambda versions, kernels, images: kernels.append({"name": "k"}),
    ],
)
def test_files_that_are_whole_and_wrong(ending, change, kept):
    rewritten(kept[ending], change)
    check(kept, ending)


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record.update(format=99),
        lambda record: record.pop("leaves"),
        lambda record: record["layout"].pop(),
        lambda record: record["leaves"].clear(),
        lambda record: record.update(facts=[["no", "fact"]]),
    ],
)
def test_a_record_that_means_nothing(change, kept):
    rewritten(kept[".record"], lambda versions, kernels, images: change(kernels[0]["record"]))
    check(kept, ".record")


@pytest.mark.parametrize("field, value", [("kind", "ptx"), ("arch", "other"), ("parameters", "&"), ("format", 99)])
def test_a_description_that_means_nothing(field, value, kept):
    rewritten(kept[".code"], lambda versions, kernels, images: images[0].description.update({field: value}))
    check(kept, ".code")


@pytest.mark.parametrize("field, value", [("parameters", "qq"), ("symbols", ["no_such_symbol"]), ("entry", "nowhere")])
def test_code_that_cannot_be_loaded(field, value, kept):
    rewritten(kept[".code"], lambda versions, kernels, images: images[0].description.update({field: value}))
    kernel = again(gathered)
    assert run(kernel) == EXPECTED
    kernel = again(gathered)
    run(kernel)
    assert counts(kernel) == HIT


def test_a_folder_that_vanishes(kept, folder):
    kernel = again(gathered)
    shutil.rmtree(folder)
    assert run(kernel) == EXPECTED
    assert len(list(folder.iterdir())) == 2
