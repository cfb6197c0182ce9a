"""Offload binaries, byte for byte: what is written is read, and whatever is wrong is refused with its place."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_bundles import IMAGES, mutations

from numba_offload import OffloadError
from numba_offload.bundle import offload_binary
from numba_offload.bundle.offload_binary import (
    MAX_STRING_BYTES,
    MAX_STRINGS,
    Image,
    ImageKind,
    ProducerKind,
    read_images,
    write_images,
)
from numba_offload.errors import BundleError

_texts = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=40)
_images = st.builds(
    Image,
    kind=st.sampled_from(ImageKind),
    producer=st.sampled_from(ProducerKind),
    strings=st.dictionaries(_texts, _texts, max_size=6),
    data=st.binary(max_size=100),
)


@given(st.lists(_images, min_size=1, max_size=5))
@settings(deadline=None)
def test_what_is_written_is_read(images):
    written = write_images(images)
    assert len(written) % 8 == 0
    assert read_images(written) == images


TINY = Image(ImageKind.CUBIN, ProducerKind.CUDA, {"triple": "t", "arch": "t"}, b"code")
GOLDEN = bytes.fromhex(
    # header: magic, version, size 128, entry at 32 of 40 bytes
    "10ff10ad 01000000 8000000000000000 2000000000000000 2800000000000000"
    # entry: cubin, cuda, no flags, 2 pairs at 72, 4 bytes of image at 120
    "0300 0200 00000000 4800000000000000 0200000000000000 7800000000000000 0400000000000000"
    # triple at 105, t at 112, arch at 114, t at 112
    "6900000000000000 7000000000000000 7200000000000000 7000000000000000"
    # the strings, padded; the image, padded
    "00 747269706c6500 7400 6172636800 00 636f6465 00000000"
)


def test_the_bytes_of_a_tiny_file():
    assert write_images([TINY]).hex(" ") == GOLDEN.hex(" ")
    assert read_images(GOLDEN) == [TINY]


def changed(at: int, form: str, value: int) -> bytes:
    data = bytearray(GOLDEN)
    struct.pack_into("<" + form, data, at, value)
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "empty: no image at byte 0"),
        (GOLDEN[:71], "byte 0: 71 bytes are left, but a header and an entry take 72"),
        (GOLDEN[:120], "byte 8: a size of 128 bytes, but the file ends after 120"),
        (GOLDEN + bytes(8), "byte 128: 8 bytes are left"),
        (GOLDEN + bytes(72), "byte 128: no offload binary begins where one should: the first bytes are 00 00 00 00"),
        (b"\x7fELF" + GOLDEN[4:], "byte 0: this is no offload binary: the first bytes are 7f 45 4c 46, not 10 ff 10 ad"),
        (changed(4, "I", 2), "byte 4: version 2 of the format; only 1 can be read"),
        (changed(8, "Q", 64), "byte 8: a size of 64 bytes: at least 72"),
        (changed(8, "Q", 127), "byte 8: a size of 127 bytes: .* a multiple of 8"),
        (changed(8, "Q", 2**64 - 8), "byte 8: a size of 18446744073709551608 bytes, but the file ends after 128"),
        (changed(8, "Q", 120), "byte 56: the image at offset 120, 4 bytes long, in a binary of 120 bytes"),
        (changed(16, "Q", 2**64 - 8), "byte 16: the entry at offset 18446744073709551608, 40 bytes long, in a binary of 128"),
        (changed(16, "Q", 36), "byte 16: the entry at offset 36, which is not a multiple of 8"),
        (changed(16, "Q", 24), "byte 16: the entry at offset 24, 40 bytes long, overlaps the header at 0"),
        (changed(24, "Q", 48), "byte 24: an entry of 48 bytes; entries have 40"),
        (changed(32, "H", 6), "byte 32: image kind 6 is not known"),
        (changed(34, "H", 4), "byte 34: producer 4 is not known"),
        (changed(36, "I", 1), "byte 36: flags 0x1, which have no meaning here"),
        (changed(40, "Q", 73), "byte 40: the pairs of strings at offset 73, which is not a multiple of 8"),
        (changed(40, "Q", 64), "byte 40: the pairs of strings at offset 64, 32 bytes long, overlaps the entry at 32"),
        (changed(48, "Q", 2**60), "byte 48: 1152921504606846976 pairs of strings; at most 256 are read"),
        (changed(48, "Q", 4), "byte 40: the pairs of strings at offset 72, 64 bytes long, in a binary of 128 bytes"),
        (changed(48, "Q", 1), "byte 88: a byte that belongs to nothing and is not zero"),
        (changed(56, "Q", 121), "byte 56: the image at offset 121, which is not a multiple of 8"),
        (changed(56, "Q", 96), "byte 56: the image at offset 96, 4 bytes long, overlaps the pairs of strings at 72"),
        (changed(56, "Q", 112), "byte 72: a string at offset 105 overlaps|byte 80: a string at offset 112 overlaps the image"),
        (changed(64, "Q", 2**64 - 1), "byte 56: the image at offset 120, 18446744073709551615 bytes long"),
        (changed(64, "Q", 3), "byte 123: a byte that belongs to nothing and is not zero"),
        (changed(72, "Q", 128), "byte 72: a string at offset 128 in a binary of 128 bytes"),
        (changed(72, "Q", 2**64 - 1), "byte 72: a string at offset 18446744073709551615 in a binary"),
        (changed(72, "Q", 32), "byte 72: a string at offset 32 overlaps the entry at 32"),
        (changed(80, "Q", 121), "byte 80: a string at offset 121 overlaps the image at 120"),
        (changed(88, "Q", 105), "byte 88: the key 'triple' a second time"),
        (changed(106, "B", 0xFF), "byte 106: a string that is not UTF-8"),
        (changed(104, "B", 1), "byte 104: a byte that belongs to nothing and is not zero"),
        (changed(127, "B", 1), "byte 127: a byte that belongs to nothing and is not zero"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(data, message):
    with pytest.raises(BundleError, match=message) as raised:
        read_images(data)
    assert isinstance(raised.value, OffloadError) and isinstance(raised.value, ValueError)


def test_places_in_the_second_binary_count_from_the_beginning_of_the_file():
    with pytest.raises(BundleError, match="byte 132: version 7"):
        read_images(GOLDEN + changed(4, "I", 7))


def test_a_string_without_an_end():
    data = bytearray(write_images([Image(ImageKind.NONE, ProducerKind.NONE, {"k": "value"}, b"")]))
    data[data.index(b"value\0") + 5 :] = b"\xff" * len(data[data.index(b"value\0") + 5 :])
    with pytest.raises(BundleError, match="byte 91: a string without an end"):
        read_images(bytes(data))


def test_strings_that_share_bytes_do_not_take_more_memory_than_allowed():
    # Each string is the tail of one long one; unshared they would have 256 times its length.
    count, length = MAX_STRINGS, MAX_STRING_BYTES // 2
    table = 72 + 16 * count
    size = table + length + 8
    pairs = [offset for k in range(count) for offset in (table + k, table + length)]
    data = struct.pack("<4sIQQQ", b"\x10\xff\x10\xad", 1, size, 32, 40)
    data += struct.pack("<HHIQQQQ", 0, 0, 0, 72, count, size, 0)
    data += struct.pack(f"<{2 * count}Q", *pairs) + b"a" * length + bytes(8)
    with pytest.raises(BundleError, match=f"strings of more than {MAX_STRING_BYTES} bytes in all"):
        read_images(data)


def test_too_many_images(monkeypatch):
    monkeypatch.setattr(offload_binary, "MAX_IMAGES", 2)
    assert len(read_images(GOLDEN * 2)) == 2
    with pytest.raises(BundleError, match="byte 256: more than 2 images"):
        read_images(GOLDEN * 3)
    with pytest.raises(BundleError, match="1 to 2 images, not 3"):
        write_images([TINY] * 3)


@pytest.mark.parametrize(
    ("strings", "message"),
    [
        ({"a\0b": "c"}, "image 1: the string .* has a zero character"),
        ({"a": "\ud800"}, "image 1: the string .* cannot be written as UTF-8"),
        ({str(k): "" for k in range(MAX_STRINGS + 1)}, f"image 1 has {MAX_STRINGS + 1} pairs of strings"),
        ({"a": "b" * MAX_STRING_BYTES}, f"image 1 has strings of {MAX_STRING_BYTES + 3} bytes"),
    ],
)
def test_what_cannot_be_written(strings, message):
    with pytest.raises(BundleError, match=message):
        write_images([TINY, Image(ImageKind.NONE, ProducerKind.NONE, strings, b"")])


def test_the_largest_strings_are_read_back():
    images = [Image(ImageKind.NONE, ProducerKind.NONE, {"a": "b" * (MAX_STRING_BYTES - 3)}, b"")]
    assert read_images(write_images(images)) == images


def test_nothing_to_write():
    with pytest.raises(BundleError, match="not 0"):
        write_images([])


def test_damaged_files():
    """Whatever is done to a file: it is refused with the one documented error, or what is read can be written again."""
    whole = write_images(IMAGES)
    refused = 0
    for data in mutations(whole, 10_000, seed=1):
        try:
            images = read_images(data)
        except BundleError as error:
            refused += 1
            assert "byte" in str(error)
        else:
            assert read_images(write_images(images)) == images
    assert refused > 5_000
