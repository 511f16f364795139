"""What is refused: too large, truncated at any place, damaged, or no image at all."""

from __future__ import annotations

import os
import zlib
from pathlib import Path

import cv2
import numpy as np
import pytest

from jetsel.base.errors import BadImageError, ImageTooLargeError
from jetsel.image import Limits, decode
from jetsel.image.limits import MAX_SIDE_PX, read_file
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


def test_a_pipe_or_a_device_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "cat.jpg")
    for path in (tmp_path / "cat.jpg", Path("/dev/zero")):
        with pytest.raises(OSError, match="not a regular file"):
            read_file(path, LIMITS)


def test_no_bytes_and_other_formats_are_named():
    with pytest.raises(BadImageError, match="empty: 0 bytes"):
        decode(b"", LIMITS, 64)
    for data in (b"x", b"GIF89a" + bytes(40), b"\xff\xd8", b"\x89PNG", b"RIFF\0\0\0\0WAVE", b"BM" + bytes(60), b"{}"):
        with pytest.raises(BadImageError, match="not a JPEG, PNG or WebP file"):
            decode(data, LIMITS, 64)


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
    "JPEG with bytes between two segments": FLAT.replace(SCAN, b"\0" + SCAN),
    "JPEG with a segment shorter than its own length": FLAT.replace(SCAN, b"\xff\xfe\0\1" + SCAN),
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
    "WebP without picture": riff(canvas(8, 8)),
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


def test_a_damaged_exif_block_leaves_the_photograph_as_it_is():
    blocks = (b"", b"MM\0*", b"MM\0*\xff\xff\xff\xff", tiff(6)[:-8], tiff(0), tiff(9), b"XX" + tiff(6)[2:])
    for block in blocks:
        data = with_app1(encoded(".jpg", drawing(30, 20)), b"Exif\0\0" + block)
        assert decode(data, LIMITS, 64).bgr.shape == (20, 30, 3)
