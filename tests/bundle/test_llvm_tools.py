"""LLVM 19's own tools and this package read what the other wrote."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from sample_bundles import BUNDLE, IMAGES

from numba_offload.bundle.manifest import write_bundle
from numba_offload.bundle.offload_binary import Image, ImageKind, ProducerKind, read_images, write_images

OBJDUMP, PACKAGER = "llvm-objdump-19", "clang-offload-packager-19"
pytestmark = [
    pytest.mark.skipif(shutil.which(OBJDUMP) is None, reason=f"{OBJDUMP} is not installed (Debian's package llvm-19)"),
    pytest.mark.skipif(
        shutil.which(PACKAGER) is None, reason=f"{PACKAGER} is not installed (Debian's package clang-tools-19)"
    ),
]
SHOWN = {
    ImageKind.NONE: "<none>",
    ImageKind.OBJECT: "elf",
    ImageKind.BITCODE: "llvm ir",
    ImageKind.CUBIN: "cubin",
    ImageKind.FATBIN: "fatbinary",
    ImageKind.PTX: "ptx",
}


def run(*command: object) -> str:
    """What a tool prints; a warning is a failure too."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=True)
    assert not done.stderr
    return done.stdout


def listing(file: Path) -> list[dict[str, str]]:
    """What llvm-objdump shows of each image."""
    shown = run(OBJDUMP, "--offloading", file).split("OFFLOADING IMAGE")[1:]
    fields = r"^(kind|arch|triple|producer) +(.*)$"
    return [dict(re.findall(fields, image, re.MULTILINE)) for image in shown]


def extract(file: Path, folder: Path, **strings: str) -> bytes:
    """The one image with these strings. The tool warns if there are several, and writes nothing if there is none."""
    out = folder / "extracted"
    wanted = ",".join(f"{key}={value}" for key, value in {"file": out, **strings}.items())
    run(PACKAGER, file, f"--image={wanted}")
    data = out.read_bytes()
    out.unlink()
    return data


@pytest.mark.parametrize("kind", ImageKind)
@pytest.mark.parametrize("producer", ProducerKind)
def test_every_kind_and_producer_is_shown(tmp_path, kind, producer):
    file = tmp_path / "file"
    file.write_bytes(write_images([Image(kind, producer, {"triple": "t", "arch": "a"}, b"data")]))
    assert [{"kind": SHOWN[kind], "arch": "a", "triple": "t", "producer": producer.name.lower()}] == listing(file)


def test_a_bundle_is_listed_and_every_image_extracted(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(write_bundle(BUNDLE))
    assert [
        {"kind": SHOWN[image.kind], "arch": image.arch, "triple": image.triple, "producer": "none"} for image in BUNDLE.images
    ] == listing(file)[1:]
    manifest, *_ = read_images(file.read_bytes())
    assert manifest.data == extract(file, tmp_path, triple="manifest")
    for number, image in enumerate(BUNDLE.images):
        assert image.data == extract(file, tmp_path, image=str(number))
    for image in BUNDLE.images[2:]:
        assert image.data == extract(file, tmp_path, triple=image.triple, arch=image.arch)
        assert image.data == extract(file, tmp_path, kernel=BUNDLE.kernels[image.kernel]["name"], arch=image.arch)


def test_images_of_equal_triple_and_arch_are_extracted_together(tmp_path):
    file = tmp_path / "some.bundle"
    file.write_bytes(write_bundle(BUNDLE))
    subprocess.run(
        [PACKAGER, file, "--image=triple=nvptx64-nvidia-cuda,arch=sm_80"], cwd=tmp_path, check=True, capture_output=True
    )
    extracted = sorted(tmp_path.glob("some-nvptx64-nvidia-cuda-sm_80.*.cubin"))
    assert [image.data for image in BUNDLE.images[:2]] == [path.read_bytes() for path in extracted]


_SUFFIXES = {ImageKind.NONE: "x", ImageKind.OBJECT: "o", ImageKind.CUBIN: "cubin", ImageKind.PTX: "s"}


def test_files_that_the_packager_wrote_are_read(tmp_path):
    # Its string table shares tails: "a" is the end of "nvptx64-nvidia-cuda".
    images = [
        *IMAGES[:3],
        Image(ImageKind.OBJECT, ProducerKind.NONE, {"triple": "amdgcn-amd-amdhsa", "arch": "", "empty": ""}, b""),
        Image(ImageKind.PTX, ProducerKind.CUDA, {"triple": "nvptx64-nvidia-cuda", "a": "cuda", "uda": "a"}, bytes(1000)),
    ]
    given = []
    for number, image in enumerate(images):
        path = tmp_path / f"{number}.{_SUFFIXES[image.kind]}"
        path.write_bytes(image.data)
        strings = {"file": path, "kind": image.producer.name.lower(), **image.strings}
        given.append("--image=" + ",".join(f"{key}={value}" for key, value in strings.items()))
    file = tmp_path / "file"
    run(PACKAGER, "-o", file, *given)
    assert images == read_images(file.read_bytes())
    # And what is written from it, the tools read again.
    file.write_bytes(write_images(images))
    assert len(images) == len(listing(file))
