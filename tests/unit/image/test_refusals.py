"""What is refused: too large, truncated at any place, damaged, or no image at all."""

import zlib

import cv2
import numpy as np
import pytest

from jetsel.base.errors import BadImageError, ImageTooLargeError
from jetsel.image import Limits, decode
from jetsel.image.limits import MAX_SIDE_PX
from tests.unit.image.files import (
    ANIMATED,
    EXIF,
    LIMITS,
    canvas,
    drawing,
    encoded,
    flat_jpeg,
    jpeg_segment,
    noise,
    png,
    png_chunk,
    riff,
    tiff,
    webp_chunk,
    with_app1,
)

RGB_ROW = b"\0" + bytes(9)


OTHER_FORMATS = {
    b"": "empty: 0 bytes",
    b"GIF89a" + bytes(40): "a GIF, not .* one of its frames",
    b"BM" + bytes(60): "a BMP, not .* convert it",
    b"II*\0" + bytes(60): "a TIFF or",
    b"MM\0*" + bytes(60): "a TIFF or",
    b"\0\0\0\x18ftypheic\0\0\0\0mif1heic": "HEIC, not",
    b"\0\0\0\x18ftypmif1\0\0\0\0mif1avif": "AVIF, not",
    b"\0\0\0\x1cftypavif\0\0\0\0avifmif1": "AVIF, not",
    b"\0\0\0\x14ftypqt  \0\0\0\0qt  ": "a video, not .* one of its frames",
    b"\0\0\0\x18ftypisom\0\0\2\0isomiso2": "a video, not",
    b"RIFF\0\0\0\0AVI LIST": "a video, not",
    b"\0\0\0\x0cJXL \r\n\x87\n": "JPEG XL, not",
    b"\xff\x0a\xfa\x1f": "JPEG XL, not",
    b"\0\0\0\x0cjP  \r\n\x87\n": "JPEG 2000, not",
    b"\xff\x4f\xff\x51\0": "JPEG 2000, not",
    b"\xff\xd8" + jpeg_segment(0xF7, bytes(9)) + bytes(9): "JPEG-LS, not .* convert it",
    b"\xff\xd8" + jpeg_segment(0xE8, b"SPIFF") + jpeg_segment(0xF7, bytes(9)) + bytes(9): "JPEG-LS, not",
    b"%PDF-1.7\n": "a PDF, not",
    b"PK\3\4\x14\0": "a ZIP or gzip .* unpack it",
    b"\x1f\x8b\x08\0": "a ZIP or gzip .* unpack it",
    b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n": "Git LFS pointer, .* `git lfs pull`",
    b"\n<!DOCTYPE html>\n<html>": "an HTML page, .* check its source",
    b"\xef\xbb\xbf<!-- a proxy --><HTML lang=en>": "an HTML page",
    b"<?xml version='1.0'?>\n<svg xmlns='http://www.w3.org/2000/svg'>": "an SVG",
    b'{"error": "not found"}': "JSON, not",
    b"[]": "JSON, not",
    b"404 page not found\n": "text, not",
    "见不到".encode(): "text, not",
    b"RIFF\0\0\0\0WAVE": "begins with b'RIFF",
    b"\x89PNG\r\n\x1a": "begins with",
    bytes(60): "begins with",
}


@pytest.mark.parametrize("data", OTHER_FORMATS, ids=OTHER_FORMATS.values())
def test_what_is_no_jpeg_png_or_webp_is_named_with_what_to_do(data: bytes) -> None:
    with pytest.raises(BadImageError, match=OTHER_FORMATS[data]) as raised:
        decode(data, LIMITS, 64)
    assert "JPEG, PNG or WebP file" in str(raised.value)


def test_too_many_bytes_or_pixels_name_the_figures_and_the_setting():
    data = encoded(".png", drawing(100, 50))
    decode(data, Limits(len(data), 5000), 64)
    with pytest.raises(ImageTooLargeError, match=rf"{len(data)} bytes.* {len(data) - 1} .*max_image_mb"):
        decode(data, Limits(len(data) - 1, 5000), 64)
    with pytest.raises(ImageTooLargeError, match=r"100 x 50 = 5000 pixels.* 4999 .*max_image_megapixels"):
        decode(data, Limits(len(data), 4999), 64)


def test_a_side_has_a_bound_of_its_own():
    side = MAX_SIDE_PX + 1
    with pytest.raises(ImageTooLargeError, match=f"no side .* {MAX_SIDE_PX}"):
        decode(png(side, 1, 8, 0, bytes(1 + side)), LIMITS, 64)
    assert decode(png(side - 1, 1, 8, 0, bytes(side)), LIMITS, 64).bgr.shape == (1, side - 1, 3)


WHOLE_FILES = {
    "jpeg": encoded(".jpg", noise(40, 30)),
    "jpeg, progressive": encoded(".jpg", noise(40, 30), cv2.IMWRITE_JPEG_PROGRESSIVE, 1),
    "jpeg with a thumbnail": with_app1(encoded(".jpg", drawing(24, 17)), b"Exif\0\0" + encoded(".jpg", drawing(8, 8))),
    "png": png(
        40, 30, 8, 2, b"".join(b"\0" + row.tobytes() for row in noise(40, 30)), after=png_chunk(b"tEXt", b"a\0b")
    ),
    "webp, lossless": encoded(".webp", noise(40, 30)),
    "webp, lossy": encoded(".webp", noise(40, 30), cv2.IMWRITE_WEBP_QUALITY, 80),
    "webp with EXIF": riff(canvas(40, 30, EXIF) + encoded(".webp", noise(40, 30))[12:] + webp_chunk(b"EXIF", tiff(6))),
}


@pytest.mark.parametrize("data", WHOLE_FILES.values(), ids=WHOLE_FILES)
def test_a_file_cut_anywhere_is_refused(data, capfd):
    decode(data, LIMITS, 64)
    for end in {*range(1, min(len(data), 800)), *range(12, len(data), 97), *range(len(data) - 40, len(data))}:
        with pytest.raises(BadImageError):
            decode(data[:end], LIMITS, 64)
    assert capfd.readouterr() == ("", "")  # no library writes its own line about each


def test_a_picture_that_ends_is_not_looked_behind_and_a_comment_ends_none():
    for data in WHOLE_FILES.values():
        assert decode(data + b"trailer of a phone" + data, LIMITS, 64).bgr.ndim == 3
    data = flat_jpeg(1)
    commented = data[:2] + jpeg_segment(0xFE, b"\xff\xd9") + data[2:]
    assert decode(commented, LIMITS, 64).bgr.shape == (8, 8, 3)
    with pytest.raises(BadImageError, match="truncated"):
        decode(commented[:-1], LIMITS, 64)


FLAT = flat_jpeg(3)
SCAN = FLAT[FLAT.index(b"\xff\xda") : -2]
HEADER = png(3, 1, 8, 2, b"")[8:33]
PACKED_NOTHING = png_chunk(b"IDAT", zlib.compress(b""))
HALF = png_chunk(b"IDAT", zlib.compress(noise(300, 100).tobytes())[:20_000])
DAMAGED = {
    "JPEG with two frame headers": FLAT.replace(SCAN, FLAT[FLAT.index(b"\xff\xc0") : FLAT.index(b"\xff\xda")] + SCAN),
    "JPEG with a frame header too short": b"\xff\xd8" + jpeg_segment(0xC0, b"\x08\0"),
    "JPEG without a scan": FLAT[: FLAT.index(b"\xff\xda")] + b"\xff\xd9",
    "JPEG that ends with an empty scan header": FLAT[: FLAT.index(SCAN)] + b"\xff\xda\0\2",
    "JPEG that begins with a scan": b"\xff\xd8" + SCAN + b"\xff\xd9",
    "JPEG with a segment that none has": FLAT.replace(SCAN, b"\xff\x02\0\2" + SCAN),
    "JPEG with a second start": FLAT.replace(SCAN, b"\xff\xd8" + SCAN),
    "JPEG that ends before its scan": FLAT.replace(SCAN, b"\xff\xd9" + SCAN),
    "JPEG of 0 pixels": flat_jpeg(3, 0, 8),
    "JPEG of two components": flat_jpeg(2),
    "PNG without header": b"\x89PNG\r\n\x1a\n" + png_chunk(b"IEND", b""),
    "PNG without pixels": b"\x89PNG\r\n\x1a\n" + HEADER + png_chunk(b"IEND", b""),
    "PNG with two headers": png(3, 1, 8, 2, RGB_ROW, before=png(9, 9, 8, 2, b"")[8:33]),
    "PNG with one bit turned": png(3, 1, 8, 2, RGB_ROW)[:-17] + b"\xff" + png(3, 1, 8, 2, RGB_ROW)[-16:],
    "PNG with too few pixels": png(3, 9, 8, 2, RGB_ROW),
    "PNG whose pixels were cut": png(300, 100, 8, 2, b"").replace(PACKED_NOTHING, HALF),
    "PNG of pixels that are not packed": png(3, 1, 8, 2, b"").replace(PACKED_NOTHING, png_chunk(b"IDAT", b"x" * 9)),
    "PNG of colour type 5": png(3, 1, 8, 5, RGB_ROW),
    "PNG with a chunk that no decoder may pass over": png(3, 1, 8, 2, RGB_ROW, before=png_chunk(b"NEWS", b"")),
    "PNG chunks without end": png(3, 1, 8, 2, RGB_ROW, before=png_chunk(b"tEXt", b"a\0") * 70_000),
    "PNG whose palette fails its checksum": png(
        3, 1, 8, 3, b"\0\0\0\0", before=png_chunk(b"PLTE", bytes(6))[:-1] + b"?"
    ),
    "WebP without picture": riff(canvas(8, 8)),
    "WebP of another size than its picture": riff(canvas(9, 8) + encoded(".webp", drawing(8, 8))[12:]),
    "animated WebP": riff(canvas(8, 8, ANIMATED) + encoded(".webp", drawing(8, 8))[12:]),
}


def refused(data: bytes) -> bool:
    try:
        decode(data, LIMITS, 64)
    except BadImageError:
        return True
    return False


def test_a_damaged_file_is_refused_and_leaves_nothing_behind_for_the_next():
    good = encoded(".png", drawing(9, 7))
    before = decode(good, LIMITS, 64).bgr
    assert [name for name, data in DAMAGED.items() if not refused(data)] == []
    np.testing.assert_array_equal(decode(good, LIMITS, 64).bgr, before)


def with_type(kind: int, value: bytes) -> bytes:
    """An EXIF block whose orientation is of another type than SHORT."""
    return tiff(6)[:10] + b"\1\x12" + kind.to_bytes(2, "big") + b"\0\0\0\1" + value.ljust(4, b"\0") + bytes(4)


EXIF_BLOCKS = {  # by what is wrong with them, and whether the orientation, 6, counts all the same
    "empty": (b"", False),
    "cut before its directory": (b"MM\0*", False),
    "a directory out of range": (b"MM\0*\xff\xff\xff\xff", False),
    "cut inside of its directory": (tiff(6)[:-12], False),
    "orientation 9": (tiff(9), False),
    "no TIFF": (b"XX" + tiff(6)[2:], False),
    "little-endian": (tiff(6, "<"), True),
    "a prefix twice": (b"Exif\0\0" + tiff(6), True),
    "junk before TIFF": (b"\0\xff?" + tiff(6), True),
    "a byte": (with_type(1, b"\6"), True),
    "a long": (with_type(4, b"\0\0\0\6"), True),
    "a text": (with_type(2, b"\0\6"), False),
}


@pytest.mark.parametrize("name", EXIF_BLOCKS)
def test_an_exif_block_is_read_as_far_as_it_can_be_and_never_a_reason_to_refuse(name: str) -> None:
    block, is_turned = EXIF_BLOCKS[name]
    shape = (30, 20, 3) if is_turned else (20, 30, 3)
    assert decode(with_app1(encoded(".jpg", drawing(30, 20)), b"Exif\0\0" + block), LIMITS, 64).bgr.shape == shape
    whole = encoded(".png", drawing(30, 20))
    assert decode(whole[:33] + png_chunk(b"eXIf", block) + whole[33:], LIMITS, 64).bgr.shape == shape
