"""What is refused: too large, truncated at any place, damaged, animated, or no image at all."""

from __future__ import annotations

import resource
import struct
import tracemalloc
import zlib

import cv2
import numpy as np
import pytest

from jetsel.errors import BadImageError, ImageTooLargeError
from jetsel.image import Limits, decode
from jetsel.image.limits import MAX_SIDE_PX
from tests.unit.image.files import (
    LIMITS,
    bmp,
    canvas,
    drawing,
    encoded,
    flat_jpeg,
    jpeg_segment,
    noise,
    png,
    png_chunk,
    riff,
    webp_chunk,
)

RGB_ROW = b"\0" + bytes(9)


def test_no_bytes_at_all():
    with pytest.raises(BadImageError, match="empty: 0 bytes"):
        decode(b"", LIMITS, 64)


@pytest.mark.parametrize(
    "data", [b"x", b"GIF89a" + bytes(40), b"\xff\xd8", b"\x89PNG", b"RIFF\0\0\0\0WAVE", bytes(99), b"{}"]
)
def test_other_formats_are_named_none_of_the_four(data):
    with pytest.raises(BadImageError, match="no JPEG, PNG, WebP or BMP file"):
        decode(data, LIMITS, 64)


def test_too_many_bytes_names_the_figures_and_the_setting():
    data = flat_jpeg(1)
    decode(data, Limits(len(data), 64), 64)
    with pytest.raises(
        ImageTooLargeError, match=rf"{len(data)} bytes and at most {len(data) - 1}.*\[server\] max_image_mb"
    ):
        decode(data, Limits(len(data) - 1, 64), 64)


def vp8_frame(width: int, height: int) -> bytes:
    return webp_chunk(b"VP8 ", b"\x10\0\0\x9d\x01\x2a" + struct.pack("<HH", width, height) + bytes(20))


def vp8l_frame(width: int, height: int) -> bytes:
    return webp_chunk(b"VP8L", b"\x2f" + struct.pack("<I", width - 1 | height - 1 << 14) + bytes(20))


BOMBS = {
    "png": png(100_000, 100_000, 8, 2, bytes(1000)),
    "png, header only": png(100_000, 100_000, 8, 2, b"")[:33],
    "jpeg": flat_jpeg(3, 65_535, 65_535),
    "jpeg, header only": flat_jpeg(3, 65_535, 65_535)[:100],
    "webp canvas": riff(canvas(1 << 24, 1 << 24) + vp8_frame(8, 8)),
    "webp lossy": riff(vp8_frame(16_383, 16_383)),
    "webp lossy, header only": riff(vp8_frame(16_383, 16_383))[:30],
    "webp lossless": riff(vp8l_frame(16_384, 16_384)),
    "bmp": bmp(100_000, 100_000, 24, bytes(100)),
    "bmp, top row first": bmp(100_000, -(2**31), 24, bytes(100)),
}


@pytest.mark.parametrize("data", BOMBS.values(), ids=BOMBS)
def test_a_bomb_is_refused_before_anything_is_allocated(data):
    peak_before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tracemalloc.start()
    try:
        with pytest.raises(ImageTooLargeError, match=r"at most 1000000 are accepted.*\[server\] max_image_megapixels"):
            decode(data, LIMITS, 64)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 1_000_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak_before_kb < 50_000


def test_pixels_are_counted_to_the_last():
    data = encoded(".png", drawing(100, 50))
    assert decode(data, Limits(10**6, 5000), 64).width_px == 100
    with pytest.raises(ImageTooLargeError, match="100 x 50 = 5000 pixels and at most 4999"):
        decode(data, Limits(10**6, 4999), 64)


def test_a_side_has_a_bound_of_its_own():
    side = MAX_SIDE_PX + 1
    with pytest.raises(ImageTooLargeError, match=f"no side may have more than {MAX_SIDE_PX}"):
        decode(png(side, 1, 8, 0, bytes(1 + side)), LIMITS, 64)
    assert decode(png(side - 1, 1, 8, 0, bytes(side)), LIMITS, 64).bgr.shape == (1, side - 1, 3)


def webp_with_exif() -> bytes:
    return riff(canvas(40, 30, flags=8) + encoded(".webp", noise(40, 30))[12:] + webp_chunk(b"EXIF", b"MM\0*"))


WHOLE_FILES = {
    "jpeg": encoded(".jpg", noise(40, 30)),
    "jpeg, progressive": encoded(".jpg", noise(40, 30), cv2.IMWRITE_JPEG_PROGRESSIVE, 1),
    "png": png(
        40, 30, 8, 2, b"".join(b"\0" + row.tobytes() for row in noise(40, 30)), after=png_chunk(b"tEXt", b"a\0b")
    ),
    "webp, lossless": encoded(".webp", noise(40, 30)),
    "webp, lossy": encoded(".webp", noise(40, 30), cv2.IMWRITE_WEBP_QUALITY, 80),
    "webp, with EXIF": webp_with_exif(),
    "bmp": encoded(".bmp", noise(40, 30)),
}


@pytest.mark.parametrize("data", WHOLE_FILES.values(), ids=WHOLE_FILES)
def test_a_file_cut_anywhere_is_refused_and_past_its_first_bytes_called_truncated(data, capfd):
    decode(data, LIMITS, 64)
    for end in {*range(12, min(len(data), 800)), *range(12, len(data), 97), *range(len(data) - 40, len(data))}:
        with pytest.raises(BadImageError, match="is truncated"):
            decode(data[:end], LIMITS, 64)
    for end in range(1, 12):
        with pytest.raises(BadImageError):
            decode(data[:end], LIMITS, 64)
    assert capfd.readouterr() == ("", "")  # no library writes its own line about each


def jpeg_with(marker: int, content: bytes) -> bytes:
    data = flat_jpeg(3)
    at = data.index(b"\xff\xda")
    return data[:at] + jpeg_segment(marker, content) + data[at:]


SECOND_FRAME = struct.pack(">BHHB", 8, 60_000, 60_000, 1) + bytes((1, 0x11, 0))
FLAT = flat_jpeg(3)
LARGEST = encoded(".jpg", np.zeros((1000, 1000, 3), np.uint8), cv2.IMWRITE_JPEG_PROGRESSIVE, 1)
SCAN = FLAT[FLAT.index(b"\xff\xda") : -2]
PROGRESSIVE = WHOLE_FILES["jpeg, progressive"]
LOSSLESS = encoded(".webp", noise(8, 8))[12:]

PACKED_NOTHING = png_chunk(b"IDAT", zlib.compress(b""))


def with_methods(compression: int, filtering: int, interlacing: int) -> bytes:
    """A PNG whose header names these methods, of each of which there is one but of interlacing two."""
    header = struct.pack(">IIBB", 3, 1, 8, 2)
    whole = png_chunk(b"IHDR", header + bytes((compression, filtering, interlacing)))
    return png(3, 1, 8, 2, RGB_ROW).replace(png_chunk(b"IHDR", header + bytes(3)), whole)


DAMAGED = {
    "a second frame header": (jpeg_with(0xC0, SECOND_FRAME), "two frame headers"),
    "a frame header too short": (b"\xff\xd8" + jpeg_segment(0xC0, b"\x08\0"), "frame header is too short"),
    "no picture": (b"\xff\xd8\xff\xd9", "no picture"),
    "no scan": (FLAT[: FLAT.index(b"\xff\xda")] + b"\xff\xd9", "no picture"),
    "a scan first": (b"\xff\xd8" + SCAN + b"\xff\xd9", "no frame header before its scan"),
    "a picture in a picture": (FLAT[:-2] + b"\0\xff\xd8" + FLAT[2:-2], "second picture begins"),
    "0 pixels": (flat_jpeg(3, 0, 8), "0 x 8 pixels"),
    "a segment of 1 byte": (b"\xff\xd8\xff\xe0\0\x01" + FLAT[2:], "a segment of 1 bytes"),
    "many scans of a picture as large as may be": (
        LARGEST[:-2] + SCAN * 16 + b"\xff\xd9",
        "over 16 scans of 1000 x 1000",
    ),
    "scans without end": (PROGRESSIVE[:-2] + SCAN * 70 + b"\xff\xd9", "over 64 scans"),
    "segments without end": (b"\xff\xd8" + jpeg_segment(0xFE, b"") * 70_000 + FLAT[2:], "first 1024 segments"),
    "segments without end after a scan": (FLAT[:-2] + jpeg_segment(0xFE, b"") * 70_000, "more than 65536 segments"),
    "filling without end": (FLAT[:2] + b"\xff" * 70_000 + FLAT[2:], "over 65536 bytes stand between"),
    "lossless JPEG cut short": (FLAT.replace(b"\xff\xc0", b"\xff\xc3"), "cannot be decoded"),
    "PNG without header": (b"\x89PNG\r\n\x1a\n" + png_chunk(b"IEND", b""), "inside its header"),
    "PNG without pixels": (b"\x89PNG\r\n\x1a\n" + png(1, 1, 8, 2, b"")[8:33] + png_chunk(b"IEND", b""), "no picture"),
    "PNG with a header too long": (b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", bytes(14)), "14 bytes instead of 13"),
    "PNG with two headers": (png(3, 1, 8, 2, RGB_ROW, before=png(9, 9, 8, 2, b"")[8:33]), "not its first chunk"),
    "PNG that begins with pixels": (b"\x89PNG\r\n\x1a\n" + png_chunk(b"IDAT", bytes(13)), "not its first chunk"),
    "PNG of 0 pixels": (png(0, 3, 8, 2, b""), "0 x 3 pixels"),
    "PNG with one bit turned": (png(3, 1, 8, 2, RGB_ROW)[:-17] + b"\xff" + png(3, 1, 8, 2, RGB_ROW)[-16:], "checksum"),
    "PNG with too few pixels": (png(3, 9, 8, 2, RGB_ROW), "fewer pixels than its header says"),
    "PNG with too many pixels": (png(3, 1, 8, 2, RGB_ROW + b"\0"), "more pixels than its header says"),
    "PNG of pixels that are not packed": (
        png(3, 1, 8, 2, b"").replace(PACKED_NOTHING, png_chunk(b"IDAT", b"x" * 9)),
        "cannot be unpacked",
    ),
    "PNG of 3 bits": (png(3, 1, 3, 0, RGB_ROW), "3 bits of colour type 0"),
    "PNG of colour type 5": (png(3, 1, 8, 5, RGB_ROW), "8 bits of colour type 5"),
    "PNG of another interlacing": (with_methods(0, 0, 2), "methods 0, 0, 2"),
    "PNG of another compression": (with_methods(1, 0, 0), "methods 1, 0, 0"),
    "PNG with a chunk that no decoder may pass over": (
        png(3, 1, 8, 2, RGB_ROW, before=png_chunk(b"NEWS", b"")),
        "a chunk b'NEWS', which no PNG may have",
    ),
    "PNG with a chunk of no name": (
        png(3, 1, 8, 2, RGB_ROW, before=png_chunk(b"\0\1ab", b"")),
        "which no PNG may have",
    ),
    "PNG chunks without end": (png(3, 1, 8, 2, RGB_ROW, before=png_chunk(b"tEXt", b"a\0") * 70_000), "65536 chunks"),
    "WebP without picture": (riff(canvas(8, 8)), "no picture"),
    "WebP canvas and frame differ": (
        riff(canvas(80, 8) + LOSSLESS),
        r"canvas is \(80, 8\) pixels and its picture \(8, 8\)",
    ),
    "WebP chunk past the end": (riff(LOSSLESS + b"JUNK" + struct.pack("<I", 500) + bytes(600))[:-300], "truncated"),
    "WebP that begins with another chunk": (riff(webp_chunk(b"JUNK", bytes(8)) + LOSSLESS), "begins with a chunk"),
    "WebP with two canvases": (riff(canvas(8, 8) + canvas(8, 8) + LOSSLESS), "not its first chunk"),
    "WebP with a canvas after its picture": (riff(LOSSLESS + canvas(8, 8)), "not its first chunk"),
    "WebP of two pictures": (riff(LOSSLESS + LOSSLESS), "second picture"),
    "WebP chunk past its container": (b"RIFF\x14\0\0\0WEBP" + LOSSLESS, "longer than the file says"),
    "WebP that is no key frame": (riff(webp_chunk(b"VP8 ", b"\x11\0\0\x9d\x01\x2a\x08\0\x08\0")), "no VP8 key frame"),
    "WebP that is no VP8L": (riff(webp_chunk(b"VP8L", bytes(20))), "no VP8L frame"),
    "WebP frame of noise": (riff(vp8_frame(8, 8)), "cannot be decoded"),
    "WebP frame of 0 pixels": (riff(vp8_frame(0, 8)), "0 x 8 pixels"),
    "BMP header of 5 bytes": (b"BM" + bytes(12) + struct.pack("<I", 5) + bytes(60), "a header of 5 bytes"),
    "BMP of 3 bits": (bmp(1, 1, 3, bytes(40)), "a pixel has 3 bits"),
    "BMP run-length encoded": (bmp(4, 1, 8, bytes(40), compression=1), "compressed .type 1."),
    "BMP of negative width": (bmp(-4, 1, 24, bytes(40)), "-4 x 1 pixels"),
}


@pytest.mark.parametrize(("data", "message"), DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file_is_refused_with_what_is_wrong(data, message):
    with pytest.raises(BadImageError, match=message):
        decode(data, LIMITS, 64)


def test_a_png_cut_before_it_was_wrapped_is_refused():
    half = zlib.compress(noise(300, 100).tobytes())[:20_000]
    data = png(300, 100, 8, 2, b"")
    empty = png_chunk(b"IDAT", zlib.compress(b""))
    with pytest.raises(BadImageError, match="fewer pixels than its header says"):
        decode(data.replace(empty, png_chunk(b"IDAT", half)), LIMITS, 64)


def test_what_is_refused_leaves_nothing_behind_for_the_next():
    good = encoded(".png", drawing(9, 7))
    before = decode(good, LIMITS, 64).bgr
    for data, _ in list(DAMAGED.values())[:6]:
        with pytest.raises(BadImageError):
            decode(data, LIMITS, 64)
        np.testing.assert_array_equal(decode(good, LIMITS, 64).bgr, before)
