"""LLVM's offload binaries, version 1: device images with a few strings about each, in one file.

A file with several images is several binaries, one behind the other, each with one image. All numbers are little-endian,
all offsets count from the beginning of the binary::

    header   magic 10 FF 10 AD, u32 version, u64 size of this binary, u64 offset and u64 size of the entry
    entry    u16 image kind, u16 producer, u32 flags, u64 offset and u64 number of the pairs of strings,
             u64 offset and u64 size of the image
    pairs    u64 offset of the key, u64 offset of the value, each UTF-8 that ends in a zero byte

This module knows nothing of kernels. What it reads may come from anywhere and may have been made to do harm.

Source: ``llvm/Object/OffloadBinary.h`` of LLVM 19, and https://clang.llvm.org/docs/ClangOffloadPackager.html.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NoReturn

from numba_offload.errors import BundleError

MAGIC = b"\x10\xff\x10\xad"
VERSION = 1
ALIGNMENT = 8
"""Of binaries in the file, and of entry, pairs and image in a binary."""

MAX_IMAGES = 16384
MAX_STRINGS = 256
"""Pairs of strings with one image."""
MAX_STRING_BYTES = 16384
"""Of all different strings with one image. The format lets strings share bytes, so a small file could hold many long ones."""

_HEADER = struct.Struct("<4sIQQQ")
_ENTRY = struct.Struct("<HHIQQQQ")
_PAIR = struct.Struct("<QQ")


class ImageKind(IntEnum):
    """What an image is. LLVM's tools know them as no extension, ``o``, ``bc``, ``cubin``, ``fatbin`` and ``s``."""

    NONE = 0
    OBJECT = 1
    BITCODE = 2
    CUBIN = 3
    FATBIN = 4
    PTX = 5


class ProducerKind(IntEnum):
    """The language that an image was made from, as LLVM 19 numbers them (``HIP`` has another number from LLVM 20 on)."""

    NONE = 0
    OPENMP = 1
    CUDA = 2
    HIP = 3


@dataclass(frozen=True)
class Image:
    """One image with what is known about it. LLVM's tools show the strings ``triple`` and ``arch``."""

    kind: ImageKind
    producer: ProducerKind
    strings: Mapping[str, str]
    data: bytes = field(repr=False)


def write_images(images: Iterable[Image]) -> bytes:
    """The contents of a file. Raises BundleError for images that the format cannot hold or ``read_images`` would refuse."""
    written = [_write_image(image, f"image {number}") for number, image in enumerate(images)]
    if not 0 < len(written) <= MAX_IMAGES:
        raise BundleError(f"an offload binary holds 1 to {MAX_IMAGES} images, not {len(written)}; write several files")
    return b"".join(written)


def read_images(data: bytes) -> list[Image]:
    """The images in a file's contents, in their order.

    Raises BundleError where anything is not as the format has it, up to bytes between its parts that are not zero. Time
    and memory are bounded by the size of the contents.
    """
    try:
        return _read_all(data)
    except MemoryError:
        raise BundleError(
            f"the images of an offload binary of {len(data)} bytes do not fit into memory; read it in a process with more"
        ) from None


def _read_all(data: bytes) -> list[Image]:
    if not data:
        raise BundleError("an offload binary is empty: no image at byte 0; was the file written to its end?")
    images: list[Image] = []
    start = 0
    while start < len(data):
        if len(images) == MAX_IMAGES:
            _fail(start, f"more than {MAX_IMAGES} images", "split the file")
        reader = _BinaryReader(data, start)
        images.append(reader.image())
        start += reader.size
    return images


def _align(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _write_image(image: Image, what: str) -> bytes:
    offsets: dict[str, int] = {}
    # LLVM's string tables begin with a zero byte.
    table = bytearray(b"\0")
    pairs_at = _HEADER.size + _ENTRY.size
    table_at = pairs_at + _PAIR.size * len(image.strings)
    if len(image.strings) > MAX_STRINGS:
        raise BundleError(f"{what} has {len(image.strings)} pairs of strings; at most {MAX_STRINGS} are possible")
    for text in (text for pair in image.strings.items() for text in pair):
        if text not in offsets:
            offsets[text] = table_at + len(table)
            table += _encoded(text, what) + b"\0"
    if len(table) - 1 > MAX_STRING_BYTES:
        raise BundleError(
            f"{what} has strings of {len(table) - 1} bytes; at most {MAX_STRING_BYTES} are possible: shorten them"
        )
    image_at = _align(table_at + len(table))
    size = _align(image_at + len(image.data))
    parts = [
        _HEADER.pack(MAGIC, VERSION, size, _HEADER.size, _ENTRY.size),
        _ENTRY.pack(
            ImageKind(image.kind), ProducerKind(image.producer), 0,
            pairs_at, len(image.strings), image_at, len(image.data),
        ),
        *(_PAIR.pack(offsets[key], offsets[value]) for key, value in image.strings.items()),
        bytes(table).ljust(image_at - table_at, b"\0"),
        image.data.ljust(size - image_at, b"\0"),
    ]  # fmt: skip
    return b"".join(parts)


def _encoded(text: str, what: str) -> bytes:
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        raise BundleError(f"{what}: the string {text!r} cannot be written as UTF-8") from None
    if b"\0" in encoded:
        raise BundleError(f"{what}: the string {text!r} has a zero character, which would end it")
    return encoded


def _fail(at: int, wrong: str, mend: str = "the file is damaged; copy it again, or compile it again") -> NoReturn:
    raise BundleError(f"offload binary, byte {at}: {wrong}; {mend}")


class _BinaryReader:
    """One binary of a file. Every number in it is checked before it is used; parts may not share bytes."""

    def __init__(self, data: bytes, start: int) -> None:
        self.data = data
        self.start = start
        self.size = self._header()
        self.claimed: list[tuple[int, int, str]] = []
        """Begin, end and name of the parts found, but for strings."""

    def _header(self) -> int:
        left = len(self.data) - self.start
        smallest = _HEADER.size + _ENTRY.size
        if left < smallest:
            _fail(self.start, f"{left} bytes are left, but a header and an entry take {smallest}")
        magic, version, size, self.entry_at, entry_size = _HEADER.unpack_from(self.data, self.start)
        if magic != MAGIC:
            what = "this is no offload binary" if self.start == 0 else "no offload binary begins where one should"
            _fail(self.start, f"{what}: the first bytes are {magic.hex(' ')}, not {MAGIC.hex(' ')}", "check the file's name")
        if version != VERSION:
            _fail(self.start + 4, f"version {version} of the format; only {VERSION} can be read", "write it in that version")
        if size < smallest or size % ALIGNMENT:
            _fail(self.start + 8, f"a size of {size} bytes: at least {smallest} and a multiple of {ALIGNMENT} is possible")
        if size > left:
            _fail(self.start + 8, f"a size of {size} bytes, but the file ends after {left}")
        if entry_size != _ENTRY.size:
            _fail(self.start + 24, f"an entry of {entry_size} bytes; entries have {_ENTRY.size}")
        return int(size)

    def image(self) -> Image:
        self._claim(0, _HEADER.size, "header", self.start)
        self._claim(self.entry_at, _ENTRY.size, "entry", self.start + 16)
        at = self.start + self.entry_at
        kind, producer, flags, pairs_at, count, image_at, image_size = _ENTRY.unpack_from(self.data, at)
        if kind > max(ImageKind):
            _fail(at, f"image kind {kind} is not known", "write it with the tools of LLVM 19")
        if producer > max(ProducerKind):
            _fail(at + 2, f"producer {producer} is not known", "write it with the tools of LLVM 19")
        if flags:
            _fail(at + 4, f"flags {flags:#x}, which have no meaning here", "write it with the tools of LLVM 19")
        if count > MAX_STRINGS:
            _fail(at + 16, f"{count} pairs of strings; at most {MAX_STRINGS} are read")
        self._claim(pairs_at, _PAIR.size * count, "pairs of strings", at + 8)
        self._claim(image_at, image_size, "image", at + 24)
        strings = self._strings(pairs_at, count)
        begin = self.start + image_at
        return Image(ImageKind(kind), ProducerKind(producer), strings, self.data[begin : begin + image_size])

    def _claim(self, offset: int, size: int, what: str, stated_at: int) -> None:
        """A part that lies at ``offset``, as the number at byte ``stated_at`` of the file says."""
        if offset % ALIGNMENT:
            _fail(stated_at, f"the {what} at offset {offset}, which is not a multiple of {ALIGNMENT}")
        if offset > self.size or size > self.size - offset:
            _fail(stated_at, f"the {what} at offset {offset}, {size} bytes long, in a binary of {self.size} bytes")
        for begin, end, other in self.claimed:
            if offset < end and begin < offset + size:
                _fail(stated_at, f"the {what} at offset {offset}, {size} bytes long, overlaps the {other} at {begin}")
        self.claimed.append((offset, offset + size, what))

    def _strings(self, pairs_at: int, count: int) -> dict[str, str]:
        found: dict[int, tuple[int, str]] = {}
        strings: dict[str, str] = {}
        budget = MAX_STRING_BYTES
        for number in range(count):
            at = self.start + pairs_at + _PAIR.size * number
            for stated_at, offset in zip((at, at + 8), _PAIR.unpack_from(self.data, at), strict=True):
                if offset not in found:
                    found[offset] = self._string(offset, stated_at, budget)
                    budget -= found[offset][0] - offset
            key, value = (found[offset][1] for offset in _PAIR.unpack_from(self.data, at))
            if key in strings:
                _fail(at, f"the key {_shortened(key)} a second time")
            strings[key] = value
        self._check_gaps([(offset, end) for offset, (end, _) in found.items()])
        return strings

    def _string(self, offset: int, stated_at: int, budget: int) -> tuple[int, str]:
        """The offset behind a string's zero byte, and the string."""
        if offset >= self.size:
            _fail(stated_at, f"a string at offset {offset} in a binary of {self.size} bytes")
        begin = self.start + offset
        end = self.data.find(b"\0", begin, min(self.start + self.size, begin + budget))
        if end < 0:
            _fail(begin, f"a string without an end, or strings of more than {MAX_STRING_BYTES} bytes in all")
        last = end + 1 - self.start
        for other_begin, other_end, other in self.claimed:
            if offset < other_end and other_begin < last:
                _fail(stated_at, f"a string at offset {offset} overlaps the {other} at {other_begin}")
        try:
            return last, self.data[begin:end].decode()
        except UnicodeDecodeError as error:
            _fail(begin + error.start, "a string that is not UTF-8")

    def _check_gaps(self, strings: list[tuple[int, int]]) -> None:
        """What belongs to no part is padding. Were anything allowed in it, files could differ that read alike."""
        position = 0
        for begin, end in [*sorted([(b, e) for b, e, _ in self.claimed] + strings), (self.size, self.size)]:
            if begin > position:
                gap = self.data[self.start + position : self.start + begin]
                zeros = len(gap) - len(gap.lstrip(b"\0"))
                if zeros < len(gap):
                    _fail(self.start + position + zeros, "a byte that belongs to nothing and is not zero")
            position = max(position, end)


def _shortened(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:40] + "...")
