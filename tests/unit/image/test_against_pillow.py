"""Files of every kind that cameras write show what Pillow shows; of their mutants jetsel alone refuses none."""

import base64
import io
import re
import warnings

import cv2
import numpy as np
import pytest
from PIL import Image, ImageOps

from jetsel.base.errors import BadImageError, ImageTooLargeError
from jetsel.image import decode
from tests.unit.image.files import LIMITS, canvas, drawing, encoded, interlaced, png, png_chunk, riff, tiff, webp_chunk
from tests.unit.image.mutants import mutants

WHOLE_PX = 1_000_000
MOST_LEVELS = 2.0
WIDTH, HEIGHT = 48, 32
BGR = cv2.GaussianBlur(drawing(WIDTH, HEIGHT), (0, 0), 1.5)
PICTURE = Image.fromarray(np.ascontiguousarray(BGR[:, :, ::-1]))


def saved(kind: str, image: Image.Image = PICTURE, **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def with_alpha(mode: str) -> Image.Image:
    image = PICTURE.convert(mode)
    image.putalpha(Image.linear_gradient("L").resize(image.size))
    return image


def without(jpeg: bytes, code: int) -> bytes:
    """A JPEG without its segments of one kind."""
    while (at := jpeg.find(bytes((0xFF, code)))) >= 0:
        jpeg = jpeg[:at] + jpeg[at + 2 + int.from_bytes(jpeg[at + 2 : at + 4], "big") :]
    return jpeg


ADOBE = b"Adobe\0\x64\0\0\0\0"
CMYK = saved("JPEG", PICTURE.convert("CMYK"), quality=95)
STILL = saved("WEBP", lossless=True)[12:]
MUTATED = {
    "JPEG": saved("JPEG", exif=tiff(6)),
    "JPEG, progressive": saved("JPEG", progressive=True),
    "JPEG, grey": saved("JPEG", PICTURE.convert("L")),
    "JPEG, CMYK": CMYK,
    "JPEG, restart markers": encoded(".jpg", BGR, cv2.IMWRITE_JPEG_RST_INTERVAL, 2),
    "PNG": saved("PNG", exif=tiff(6)),
    "PNG, alpha": saved("PNG", with_alpha("RGBA")),
    "PNG, palette": saved("PNG", PICTURE.quantize(16)),
    "PNG, 1 bit": saved("PNG", PICTURE.convert("1")),
    "PNG, 16 bits": png(3, 1, 16, 0, b"\0\0\0\x80\x80\xff\xff"),
    "WebP, lossy": saved("WEBP", exif=tiff(6)),
    "WebP, lossless": saved("WEBP", lossless=True),
    "WebP, alpha": saved("WEBP", with_alpha("RGBA")),
}
WHOLE = {
    **MUTATED,
    **{f"JPEG, sampling {number}": saved("JPEG", subsampling=number) for number in range(3)},
    "JPEG, sampling 4:1:1": encoded(".jpg", BGR, cv2.IMWRITE_JPEG_SAMPLING_FACTOR, 0x411111),
    "JPEG, RGB": saved("JPEG", keep_rgb=True),
    "JPEG, own tables": saved("JPEG", optimize=True),
    "JPEG without Huffman tables": without(encoded(".jpg", BGR), 0xC4),
    "JPEG, YCCK": CMYK.replace(ADOBE + b"\0", ADOBE + b"\2"),
    "PNG, 16 bits of colour": png(2, 1, 16, 2, b"\0\xc8\xc8\x64\x64\x32\x32\0\0\1\x81\xff\xff"),
    "PNG, grey with alpha": saved("PNG", with_alpha("LA")),
    "PNG, a transparent colour": saved("PNG", transparency=(40, 60, 80)),
    "PNG, interlaced": interlaced(BGR),
    **{f"PNG, palette of {bits} bits": saved("PNG", PICTURE.quantize(2**bits), bits=bits) for bits in (1, 2, 4, 8)},
    "PNG, transparent palette": saved("PNG", PICTURE.quantize(4), bits=2, transparency=b"\0\x80"),
    "WebP, lossless, alpha": saved("WEBP", with_alpha("RGBA"), lossless=True, exact=True),
    "WebP, EXIF before the picture": riff(canvas(WIDTH, HEIGHT, 8) + webp_chunk(b"EXIF", tiff(6)) + STILL),
    "WebP, unknown chunks": riff(canvas(WIDTH, HEIGHT) + webp_chunk(b"JUNK", b"odd") + STILL) + b"\0junk",
}


def shown(data: bytes) -> np.ndarray:
    """What Pillow shows, turned upright by EXIF; of 16 bits of grey the upper 8, which Pillow clips."""
    with Image.open(io.BytesIO(data)) as image:
        if image.mode == "I;16":
            return np.repeat((np.asarray(image) >> 8)[..., np.newaxis], 3, axis=2)
        upright = ImageOps.exif_transpose(image)
        colours = upright.convert("RGBA") if upright.mode == "P" else upright  # it warns of transparent palettes
        return np.asarray(colours.convert("RGB"))[:, :, ::-1]


@pytest.mark.parametrize("name", WHOLE)
def test_each_kind_of_file_shows_what_pillow_shows(name: str) -> None:
    bgr, expected = decode(WHOLE[name], LIMITS, WHOLE_PX).bgr, shown(WHOLE[name])
    assert bgr.shape == expected.shape
    assert np.abs(bgr.astype(float) - expected).mean() <= MOST_LEVELS


@pytest.mark.parametrize("depth", [1, 2, 4, 8])
def test_grey_levels_of_few_bits_are_spread_over_all_levels(depth: int) -> None:
    levels = np.arange(16).reshape(1, 16) % 2**depth
    bits = (levels[..., np.newaxis] >> np.arange(depth)[::-1]) & 1
    data = png(16, 1, depth, 0, b"\0" + np.packbits(bits.reshape(1, -1).astype(np.uint8)).tobytes())
    assert decode(data, LIMITS, WHOLE_PX).bgr[0, :, 0].tolist() == (levels[0] * (255 // (2**depth - 1))).tolist()


def test_what_a_png_says_of_its_colours_changes_no_pixel() -> None:
    """They are left out of what is decoded, so that they must never have had an effect."""
    data = encoded(".png", drawing(40, 30))
    before = decode(data, LIMITS, WHOLE_PX).bgr
    for name, content in ((b"gAMA", (10_000).to_bytes(4, "big")), (b"sRGB", b"\0"), (b"tRNS", bytes(6))):
        extended = data[:33] + png_chunk(name, content) + data[33:]
        np.testing.assert_array_equal(decode(extended, LIMITS, WHOLE_PX).bgr, before)
        np.testing.assert_array_equal(cv2.imdecode(np.frombuffer(extended, np.uint8), cv2.IMREAD_COLOR), before)


ARITHMETIC = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABALDA4MChAODQ4SERATGCgaGBYWGDEjJR0oOjM9PDkzODdASFxOQERXRTc4UG1RV19i"
    "Z2hnPk1xeXBkeFxlZ2P/2wBDARESEhgVGC8aGi9jQjhCY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2Nj"
    "Y2NjY2NjY2P/yQARCAARABgDASIAAhEBAxEB/8wACgAQEAUBEBEF/9oADAMBAAIRAxEAPwD9H0bQ2w7XqByxavoloheTRZE/V+9x"
    "vRaPvX3ptzn0Nn6mYOdrt1/eEcQ5gRK4oAz0RUj/2Q=="
)
"""`jpegtran -arithmetic` of a drawing at quality 50: arithmetic coding in place of Huffman's (T.81, annex D)."""


def test_an_arithmetically_coded_jpeg_is_the_very_same_picture() -> None:
    plain = encoded(".jpg", drawing(24, 17), cv2.IMWRITE_JPEG_QUALITY, 50)
    assert b"\xff\xc9" in ARITHMETIC
    assert (
        np.abs(decode(ARITHMETIC, LIMITS, WHOLE_PX).bgr.astype(int) - decode(plain, LIMITS, WHOLE_PX).bgr).max() <= 12
    )


DOCUMENTED = re.compile(
    "is truncated: it ends|more pixels than its header gives|fail their checksum|is animated|less than a tenth"
)
"""Why jetsel alone refuses a file, as docs/protocol.md says."""


def size_in_pillow(data: bytes) -> tuple[int, int] | None:
    try:
        with warnings.catch_warnings(), Image.open(io.BytesIO(data)) as image:
            warnings.simplefilter("ignore")
            image.load()
            return image.size
    except Exception:  # it raises whatever its plugins meet
        return None


def is_read_by_opencv(data: bytes) -> bool:
    try:
        return cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR) is not None
    except cv2.error:
        return False


def refused_alone(data: bytes) -> str | None:
    """Why jetsel alone refuses a file, for no documented reason; None if it does not."""
    try:
        bgr = decode(data, LIMITS, WHOLE_PX).bgr
    except (BadImageError, ImageTooLargeError) as error:
        is_documented = isinstance(error, ImageTooLargeError) or DOCUMENTED.search(str(error))
        is_read = not is_documented and size_in_pillow(data) is not None and is_read_by_opencv(data)
        return str(error) if is_read else None
    size = size_in_pillow(data)
    return None if size is None or sorted(bgr.shape[:2]) == sorted(size) else f"{size} in Pillow, {bgr.shape} here"


@pytest.mark.parametrize(
    ("name", "count", "seed"),
    [(name, 40, 1) for name in MUTATED] + [pytest.param(name, 1500, 2, marks=pytest.mark.slow) for name in MUTATED],
)
def test_jetsel_alone_refuses_no_mutant(name: str, count: int, seed: int) -> None:
    assert [why for why in map(refused_alone, mutants(MUTATED[name], count, seed)) if why] == []
