"""Images and bundles for the tests of files."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator

from numba_offload.bundle.manifest import Bundle, BundledImage
from numba_offload.bundle.offload_binary import Image, ImageKind, ProducerKind

IMAGES = [
    Image(ImageKind.NONE, ProducerKind.NONE, {"triple": "manifest"}, b'{"a": 1}'),
    Image(ImageKind.CUBIN, ProducerKind.CUDA, {"triple": "nvptx64-nvidia-cuda", "arch": "sm_80"}, b"\x7fELF cubin"),
    Image(ImageKind.PTX, ProducerKind.HIP, {"triple": "nvptx64-nvidia-cuda", "arch": "sm_90", "kernel": "größe"}, b".version 8"),
    Image(ImageKind.OBJECT, ProducerKind.OPENMP, {}, b""),
]

BUNDLE = Bundle(
    {"numba_offload": "0.1.0", "llvm": "22.1.0"},
    [
        {"name": "saxpy", "layout": ["q", "q", "d"], "options": {"boundscheck": True, "contract": None}},
        {"name": "saxpy", "layout": ["q", "q", "f"]},
        {"name": "blur.<locals>.größe", "nested": [[[1.5, {"a": "\0"}]]]},
    ],
    [
        BundledImage(0, ImageKind.CUBIN, "nvptx64-nvidia-cuda", "sm_80", {"entry": "saxpy_0"}, b"cubin of saxpy, double"),
        BundledImage(1, ImageKind.CUBIN, "nvptx64-nvidia-cuda", "sm_80", {"entry": "saxpy_1"}, b"cubin of saxpy, float"),
        BundledImage(1, ImageKind.PTX, "nvptx64-nvidia-cuda", "sm_90", {"entry": "saxpy_1"}, b".version 8.0 // saxpy"),
        BundledImage(2, ImageKind.OBJECT, "amdgcn-amd-amdhsa", "gfx90a", {"entry": "größe", "sites": {"7": []}}, b"\x7fELF\0"),
        BundledImage(2, ImageKind.OBJECT, "x86_64-unknown-linux-gnu", "znver4", {"entry": "größe"}, bytes(range(256))),
    ],
)

_EXTREMES = [0, 1, 7, 8, 32, 40, 72, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 8, 2**64 - 1]


def mutations(whole: bytes, count: int, seed: int) -> Iterator[bytes]:
    """``count`` files that have been damaged in one to three ways, the same for each seed."""
    rng = random.Random(seed)
    for _ in range(count):
        data = bytearray(whole)
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            rng.choice((_flip, _flip, _set_number, _set_number, _truncate, _splice, _insert, _delete, _swap))(data, rng)
        yield bytes(data)


def _flip(data: bytearray, rng: random.Random) -> None:
    for _ in range(rng.randint(1, 4)):
        if data:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _set_number(data: bytearray, rng: random.Random) -> None:
    """One of the numbers that say where things are, or what looks like one, becomes extreme or nearly right."""
    if len(data) < 8:
        return
    begins = [at for at in range(0, len(data) - 3, 8) if data[at : at + 4] == b"\x10\xff\x10\xad"] or [0]
    at = rng.choice(begins) + 4 * rng.randrange(40) if rng.random() < 0.8 else 8 * rng.randrange(len(data) // 8)
    form = rng.choice(("<Q", "<I", "<H"))
    size = struct.calcsize(form)
    if at + size <= len(data):
        (old,) = struct.unpack_from(form, data, at)
        new = rng.choice((rng.choice(_EXTREMES), old + rng.choice((-8, -1, 1, 8)), len(data) - rng.randrange(16)))
        struct.pack_into(form, data, at, new % 2 ** (8 * size))


def _truncate(data: bytearray, rng: random.Random) -> None:
    del data[rng.randrange(len(data) + 1) :]


def _splice(data: bytearray, rng: random.Random) -> None:
    """A piece of the file is written over another, or put between others."""
    if data:
        begin = rng.randrange(len(data))
        piece = data[begin : begin + rng.choice((1, 8, 40, 72, 200))]
        at = rng.randrange(len(data))
        data[at : at + len(piece) * rng.randrange(2)] = piece


def _insert(data: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(data) + 1)
    data[at:at] = rng.choice((bytes(8), bytes(1), rng.randbytes(8), rng.randbytes(rng.randrange(1, 64))))


def _delete(data: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(data) + 1)
    del data[at : at + rng.choice((1, 8, 16, 72))]


def _swap(data: bytearray, rng: random.Random) -> None:
    """Whole binaries change places, vanish or are there twice."""
    pieces = bytes(data).split(b"\x10\xff\x10\xad")[1:]
    if pieces:
        pieces[rng.randrange(len(pieces))] = rng.choice(pieces)
        rng.shuffle(pieces)
        data[:] = b"".join(b"\x10\xff\x10\xad" + piece for piece in pieces[rng.randrange(2) :])
