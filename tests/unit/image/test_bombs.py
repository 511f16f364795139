"""Small files that would cost much: what they announce is never allocated, and what they hold never unpacked."""

from __future__ import annotations

import resource
import struct
import time
import tracemalloc
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress

import cv2
import numpy as np
import pytest

from jetsel.errors import BadImageError, ImageTooLargeError
from jetsel.image import Limits, decode
from tests.unit.image.files import (
    ANIMATED,
    EXIF,
    animation,
    bmp,
    canvas,
    drawing,
    encoded,
    flat_jpeg,
    frame,
    jpeg_segment,
    noise,
    png,
    png_chunk,
    riff,
    webp_chunk,
    with_app1,
)

DEFAULTS = Limits(16_000_000, 50_000_000)  # as the daemon has them unless told otherwise
NEEDED = 224
ROW = b"\0" + bytes(9)  # 3 x 1 pixels of 24 bits


def zeros(megabytes: int) -> bytes:
    """So many MB of zeros as zlib packs them: a thousandth."""
    packing = zlib.compressobj(9)
    return b"".join(packing.compress(bytes(1 << 20)) for _ in range(megabytes)) + packing.flush()


@contextmanager
def little(most_s: float = 1.0, most_mb: float = 40.0) -> Iterator[None]:
    """Fail where what stands inside takes more processor time or memory than any small file may."""
    peak_kb, began_s = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.thread_time()
    tracemalloc.start()
    try:
        yield
        _, traced_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert time.thread_time() - began_s < most_s
    assert traced_bytes < most_mb * 1e6
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak_kb) / 1024 < most_mb


def test_a_png_of_100_000_by_100_000_pixels_costs_nothing():
    header = png(100_000, 100_000, 8, 2, b"")[:33]
    for data in (png(100_000, 100_000, 8, 2, bytes(1000)), header, header + png_chunk(b"IDAT", zeros(64))):
        with little(most_mb=5), pytest.raises(ImageTooLargeError, match="100000 x 100000"):
            decode(data, DEFAULTS, NEEDED)


def test_a_jpeg_of_the_largest_sides_there_are_costs_nothing():
    """JPEG states a side in 16 bits; that of 100,000 x 100,000 pixels would be one of 34,464 x 34,464."""
    for side in (65_535, 100_000 % 65_536):
        with little(most_mb=5), pytest.raises(ImageTooLargeError, match=f"{side} x {side}"):
            decode(flat_jpeg(3, side, side), DEFAULTS, NEEDED)


def test_pixels_that_unpack_to_too_many_bytes_are_refused_once_there_are_too_many():
    data = png(3, 1, 8, 2, b"").replace(png_chunk(b"IDAT", zlib.compress(b"")), png_chunk(b"IDAT", zeros(64)))
    interlaced = data[:8] + png_chunk(b"IHDR", data[16:28] + b"\1") + data[33:]
    for whole in (data, interlaced):
        with little(), pytest.raises(BadImageError, match="more pixels than its header says"):
            decode(whole, DEFAULTS, NEEDED)


EIGHT_MB = zeros(7)
TEXTS = {
    "zTXt": lambda n: png_chunk(b"zTXt", b"a%d\0\0" % n + EIGHT_MB),
    "iTXt": lambda n: png_chunk(b"iTXt", b"a%d\0\1\0\0\0" % n + EIGHT_MB),
    "iCCP": lambda n: png_chunk(b"iCCP", b"a%d\0\0" % n + EIGHT_MB),
    "sPLT": lambda n: png_chunk(b"sPLT", b"a%d\0\x08" % n + bytes(6 * 1000)),
}


@pytest.mark.parametrize("chunk", TEXTS.values(), ids=TEXTS)
def test_texts_and_profiles_of_a_png_are_never_unpacked(chunk, capfd):
    for place in ("before", "after"):
        data = png(3, 1, 8, 2, ROW, **{place: b"".join(chunk(number) for number in range(90))})
        with little():
            assert decode(data, DEFAULTS, NEEDED).bgr.tolist() == [[[0, 0, 0]] * 3]
    assert capfd.readouterr() == ("", "")  # libpng's own lines about each would fill the log


def test_a_directory_of_exif_whose_entries_all_point_to_all_of_it_costs_nothing():
    """Pillow copies 64 KB for each of 5,400 entries; and a directory that points at itself never ends for some."""
    whole = b"\0\2\0\0\xff\0\0\0\0\x08"  # text, 65,280 bytes from byte 8 on
    entries = b"".join(number.to_bytes(2, "big") + whole for number in range(0x1000, 0x1000 + 5400))
    itself = b"MM\0*\0\0\0\x08\0\0\0\0\0\x08"
    for tiff in (b"MM\0*\0\0\0\x08\x15\x18" + entries, b"MM\0*\0\0\0\0", itself):
        with little(most_mb=10):
            assert decode(with_app1(flat_jpeg(3), b"Exif\0\0" + tiff), DEFAULTS, NEEDED).bgr.shape == (8, 8, 3)
            block = riff(canvas(8, 6, flags=EXIF) + encoded(".webp", noise(8, 6))[12:] + webp_chunk(b"EXIF", tiff))
            assert decode(block, DEFAULTS, NEEDED).bgr.shape == (6, 8, 3)


def test_a_jpeg_behind_megabytes_of_filling_is_refused_at_once():
    with little(), pytest.raises(BadImageError):
        decode(SMALL[:2] + b"\xff" * 15_000_000 + SMALL[2:], DEFAULTS, NEEDED)


def test_a_jpeg_behind_megabytes_of_segments_that_pillow_takes_apart_costs_little():
    frame_header = struct.pack(">BHHB", 8, 8, 8, 3) + b"\1\x11\0" * 300
    for marker, content, is_read in (
        (0xED, b"Photoshop 3.0\0" + b"8BIM\0\0\0\0\0\0\0\0" * 5400, True),
        (0xE2, b"ICC_PROFILE\0\1\xff" + bytes(65_000), True),
        (0xE1, b"Exif\0\0" + bytes(65_000), True),
        (0xC0, frame_header, False),
    ):
        segments = jpeg_segment(marker, content) * (15_000_000 // len(content))
        with little(most_mb=70), nullcontext() if is_read else pytest.raises(BadImageError):
            decode(SMALL[:2] + segments + SMALL[2:], DEFAULTS, NEEDED)


def test_a_jpeg_has_as_many_scans_as_its_size_allows():
    """Each scan costs a pass over all pixels: a file of 16 MB would hold a million."""
    progressive = encoded(".jpg", drawing(24, 17), cv2.IMWRITE_JPEG_PROGRESSIVE, 1)
    scan = progressive[progressive.rindex(b"\xff\xda") : -2]
    decode(progressive[:-2] + scan * 40 + b"\xff\xd9", DEFAULTS, NEEDED)
    with little(), pytest.raises(BadImageError, match="scans"):
        decode(progressive[:-2] + scan * 100_000 + b"\xff\xd9", DEFAULTS, NEEDED)
    with pytest.raises(BadImageError, match="over 16"):
        decode(progressive[:-2] + scan * 40 + b"\xff\xd9", Limits(16_000_000, 24 * 17), NEEDED)


def profile(inner: bytes) -> bytes:
    """An ICC profile of one tag, whose content is what is given (ICC.1:2022, 7)."""
    tag = b"desc" + (144).to_bytes(4, "big") + len(inner).to_bytes(4, "big")
    size = 128 + 4 + 12 + len(inner)
    return size.to_bytes(4, "big") + bytes(32) + b"acsp" + bytes(88) + (1).to_bytes(4, "big") + tag + inner


def test_profiles_nested_a_thousand_deep_are_ignored():
    nested = b""
    for _ in range(400):
        nested = profile(nested)
    wide = nested + bytes(10_000_000 - len(nested))
    parts = [wide[at : at + 65_000] for at in range(0, len(wide), 65_000)]
    icc = b"".join(
        jpeg_segment(0xE2, b"ICC_PROFILE\0" + bytes((number % 255 + 1, 255)) + part)
        for number, part in enumerate(parts)
    )
    jpeg, picture = encoded(".jpg", drawing(64, 40)), encoded(".webp", noise(8, 6))
    files = {
        "jpeg": (jpeg[:2] + icc + jpeg[2:], decode(jpeg, DEFAULTS, NEEDED).bgr),
        "png": (png(3, 1, 8, 2, ROW, before=png_chunk(b"iCCP", b"a\0\0" + zlib.compress(wide))), np.zeros((1, 3, 3))),
        "webp": (
            riff(
                webp_chunk(b"VP8X", bytes((0x20, 0, 0, 0, 7, 0, 0, 5, 0, 0))) + webp_chunk(b"ICCP", wide) + picture[12:]
            ),
            noise(8, 6),
        ),
    }
    for data, expected in files.values():
        with little(most_mb=70):
            np.testing.assert_array_equal(decode(data, DEFAULTS, NEEDED).bgr, expected)


SMALL = encoded(".jpg", drawing(24, 17))


def test_a_bmp_of_impossible_or_packed_pixels_is_refused():
    for data, error in (
        (bmp(3, 2**31 - 1, 24, bytes(12)), ImageTooLargeError),
        (bmp(3, -(2**31), 24, bytes(12)), ImageTooLargeError),
        (bmp(-4, 1, 24, bytes(40)), ImageTooLargeError),
        (bmp(3, -60_000, 24, bytes(12)), BadImageError),  # truncated
        (bmp(0, 9, 24, bytes(12)), BadImageError),
        (bmp(7000, 7000, 8, bytes(12), compression=1), BadImageError),  # run lengths: 49 MB from 12 bytes
        (bmp(7000, 7000, 4, bytes(12), compression=2), BadImageError),
        (bmp(1, 1, 24, b"\1\2\3\0", compression=4), BadImageError),  # a JPEG inside
    ):
        with little(), pytest.raises(error):
            decode(data, DEFAULTS, NEEDED)


def test_a_webp_of_a_canvas_that_is_too_large_or_hidden_behind_a_small_one_costs_nothing():
    still, picture = encoded(".webp", drawing(2, 2))[12:], frame(drawing(2, 2))
    large, small = canvas(7000, 7000, ANIMATED), canvas(2, 2, ANIMATED)
    for data in (
        riff(canvas(1 << 24, 1 << 24) + still),
        animation(1 << 14, 1 << 14, frame(noise(8, 8))),
        riff(still + large + picture),
        riff(small + large + picture),
        riff(small + picture + large),
        riff(webp_chunk(b"JUNK", bytes(10)) + large + picture),
    ):
        with little(), suppress(BadImageError, ImageTooLargeError):
            assert decode(data, DEFAULTS, NEEDED).bgr.shape == (2, 2, 3)


def test_a_chunk_that_says_it_is_longer_than_the_file_is_refused():
    whole = png(3, 1, 8, 2, ROW, before=png_chunk(b"tEXt", b"a\0b"))
    for name in (b"IHDR", b"IDAT", b"IEND", b"tEXt"):
        at = whole.index(name) - 4
        for length in (0xFFFFFFFF, 0x80000000, 0x7FFFFFFF, 1 << 24):
            with little(most_mb=5), pytest.raises(BadImageError):
                decode(whole[:at] + length.to_bytes(4, "big") + whole[at + 4 :], DEFAULTS, NEEDED)
