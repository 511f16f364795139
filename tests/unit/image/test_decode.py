"""Every format that is read, the pixels that come out, and the scale they come out at."""

import io
import struct

import cv2
import numpy as np
import pytest
from PIL import Image

from jetsel.base.errors import BadImageError
from jetsel.image import Limits, Photograph, decode, measure, to_area
from tests.unit.image.files import (
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

WHOLE = 1_000_000  # a family that needs this many pixels gets every photograph at full size


def assert_is(photograph: Photograph, bgr: np.ndarray) -> None:
    assert photograph.bgr.dtype == np.uint8
    assert photograph.bgr.flags.c_contiguous
    assert (photograph.width_px, photograph.height_px) == (bgr.shape[1], bgr.shape[0])
    np.testing.assert_array_equal(photograph.bgr, bgr)


@pytest.mark.parametrize("is_first_frame", [True, False])
def test_the_default_image_of_an_animated_png_is_the_photograph(is_first_frame):
    frames = [Image.fromarray(noise(40, 30)[:, :, ::-1]), Image.fromarray(255 - noise(40, 30))]
    file = io.BytesIO()
    options = {"save_all": True, "default_image": not is_first_frame, "duration": 100}
    frames[0].save(file, "PNG", append_images=[frames[1], frames[0]], **options)
    assert b"acTL" in file.getvalue()
    np.testing.assert_array_equal(decode(file.getvalue(), LIMITS, WHOLE).bgr, noise(40, 30))


ORIENTED = {
    1: lambda bgr: bgr,
    2: lambda bgr: bgr[:, ::-1],
    3: lambda bgr: bgr[::-1, ::-1],
    4: lambda bgr: bgr[::-1],
    5: lambda bgr: bgr.transpose(1, 0, 2),
    6: lambda bgr: bgr.transpose(1, 0, 2)[:, ::-1],
    7: lambda bgr: bgr.transpose(1, 0, 2)[::-1, ::-1],
    8: lambda bgr: bgr.transpose(1, 0, 2)[::-1],
}


@pytest.mark.parametrize("orientation", ORIENTED)
def test_exif_orientation_is_applied_to_every_format_that_has_it(orientation):
    bgr, block = noise(6, 4), tiff(orientation, "<" if orientation % 2 else ">")
    rgb_rows = b"".join(b"\0" + row[:, ::-1].tobytes() for row in bgr)
    webp = encoded(".webp", bgr)[12:]
    files = (
        png(6, 4, 8, 2, rgb_rows, before=png_chunk(b"eXIf", block)),
        png(6, 4, 8, 2, rgb_rows, after=png_chunk(b"eXIf", block)),
        riff(canvas(6, 4, flags=8) + webp + webp_chunk(b"EXIF", block)),
        riff(canvas(6, 4, flags=8) + webp + webp_chunk(b"EXIF", b"Exif\0\0" + block)),
    )
    for data in files:
        assert_is(decode(data, LIMITS, WHOLE), ORIENTED[orientation](bgr))


@pytest.mark.parametrize("needed_px", [WHOLE, 40])
def test_a_jpeg_is_turned_at_full_and_at_reduced_scale_as_its_first_exif_block_says(needed_px):
    second = with_app1(encoded(".jpg", drawing(161, 120)), b"Exif\0\0" + tiff(1))
    exif = with_app1(second, b"Exif\0\0" + tiff(5))
    data = with_app1(exif, b"http://ns.adobe.com/xap/1.0/\0<x tiff:Orientation='6'/>")  # XMP, which turns nothing
    photograph = decode(data, LIMITS, needed_px)
    flag = cv2.IMREAD_COLOR if needed_px == WHOLE else cv2.IMREAD_REDUCED_COLOR_2
    stored = cv2.imdecode(np.frombuffer(data, np.uint8), flag | cv2.IMREAD_IGNORE_ORIENTATION)
    np.testing.assert_array_equal(photograph.bgr, ORIENTED[5](stored))
    assert (photograph.width_px, photograph.height_px) == (120, 161)


@pytest.mark.parametrize("code", [0xE1, 0xDB, 0xC0, 0xC4, 0xDA], ids=["EXIF", "DQT", "SOF", "DHT", "SOS"])
def test_bytes_between_the_segments_of_a_jpeg_are_passed_over_in_silence(code, capfd):
    data = with_app1(encoded(".jpg", drawing(161, 120)), b"Exif\0\0" + tiff(6))
    at, upright = data.index(bytes((0xFF, code))), decode(data, LIMITS, WHOLE).bgr
    for junk in (
        b"\0",
        bytes(70_000),
        b"\xff" * 7,
        b"\xff\0",
        b"\xff\xd0",
        b"\xff\xfe\0\1",
        b"\xff\xee\0\2",
        b"no marker",
    ):
        np.testing.assert_array_equal(decode(data[:at] + junk + data[at:], LIMITS, WHOLE).bgr, upright)
    assert capfd.readouterr() == ("", "")


def sixteen_bits(*levels, bits=None):
    """A PNG of one row of grey levels of 16 bits, of which sBIT states some."""
    stated = b"" if bits is None else png_chunk(b"sBIT", bytes((bits,)))
    return png(len(levels), 1, 16, 0, b"\0" + struct.pack(f">{len(levels)}H", *levels), before=stated)


@pytest.mark.parametrize(
    ("data", "levels"),
    [
        (sixteen_bits(0, 6554, 65_535), [0, 26, 255]),  # 6554 / 257 = 25.5
        (sixteen_bits(0, 16_383), [0, 64]),  # 14 bits, which use a quarter
        (sixteen_bits(0, 1365, 4095, bits=12), [0, 85, 255]),
        (sixteen_bits(5, 5, bits=12), [0, 0]),  # 5 / 4095 of 255
        (sixteen_bits(0, 65_520, bits=12), [0, 255]),  # scaled by the writer, as the format demands
        (sixteen_bits(0, 6560, bits=14), [0, 26]),
    ],
)
def test_16_bits_become_8_over_their_full_range_or_that_of_the_bits_stated(data, levels):
    assert decode(data, LIMITS, WHOLE).bgr[0, :, 0].tolist() == levels


def test_16_bits_that_use_less_than_a_tenth_are_refused_with_the_repair():
    """12 bits in 16 would be nearly black, and temperatures all of one grey."""
    for levels, bits in (
        ((0, 4095), None),
        ((29_000, 35_000), None),
        ((0, 0), 12),
        ((65_535, 65_535), None),
        ((0, 4080), 12),
    ):
        with pytest.raises(BadImageError, match=f"from {levels[0]} to {levels[1]} only.*scale them to the full range"):
            decode(sixteen_bits(*levels, bits=bits), LIMITS, WHOLE)


def test_exif_in_a_text_of_a_png_counts_unless_it_is_broken_and_xmp_never():
    plain, block = encoded(".png", drawing(30, 20)), b"Exif\0\0" + tiff(6)
    text = b"Raw profile type exif\0\nexif\n      %d\n" % len(block)
    lines = b"\n".join(block.hex().encode()[at : at + 7] for at in range(0, 2 * len(block), 7))  # odd: 72 is as usual
    for content, is_turned in (
        (text + lines, True),
        (text + lines + b"\n0", True),
        (text.replace(b"exif\0", b"APP1\0\n\n") + lines.upper(), True),
        (text + b"?" + lines, False),
        (text[:30], False),
        (b"XML:com.adobe.xmp\0<x tiff:Orientation='6'/>", False),
    ):
        data = plain[:33] + png_chunk(b"tEXt", content) + plain[33:]
        assert decode(data, LIMITS, WHOLE).bgr.shape[:2] == ((30, 20) if is_turned else (20, 30)), content


@pytest.mark.parametrize(
    ("needed_px", "shape"),
    # 161 x 120: halves 81 x 60, quarters 41 x 30, eighths 21 x 15 (libjpeg rounds up)
    [(1, (15, 21)), (15, (15, 21)), (16, (30, 41)), (31, (60, 81)), (61, (120, 161))],
)
def test_a_jpeg_is_reduced_as_far_as_its_shorter_side_allows(needed_px, shape):
    data = encoded(".jpg", drawing(161, 120))
    photograph = decode(data, LIMITS, needed_px)
    assert photograph.bgr.shape == (*shape, 3)
    assert (photograph.width_px, photograph.height_px) == (161, 120)


@pytest.mark.parametrize(
    ("area_px", "shape"), [(300, (15, 21)), (316, (30, 41)), (10_000, (120, 161)), (WHOLE, (120, 161))]
)
def test_a_photograph_of_fewer_pixels_than_are_wanted_is_decoded_anew(area_px, shape):
    data = encoded(".jpg", drawing(161, 120))
    small = decode(data, LIMITS, 15)
    found = to_area(small, data, LIMITS, area_px)
    assert found.bgr.shape == (*shape, 3)
    assert (found is small) == (shape == (15, 21))


KINDS = (".jpg", ".png", ".webp")


def measured(data: bytes, needed_px: int = 10_000, limits: Limits = LIMITS) -> int:
    return measure(memoryview(data), None, limits, needed_px).pixels


def test_a_jpeg_that_is_decoded_small_counts_small_and_one_that_is_held_whole_counts_whole() -> None:
    data = encoded(".jpg", drawing(643, 481))
    for needed_px in (1, 60, 61, 121, 241, 481):
        bgr = decode(data, LIMITS, needed_px).bgr
        assert measured(data, needed_px) == bgr.shape[0] * bgr.shape[1]
    assert measured(encoded(".jpg", drawing(640, 480), cv2.IMWRITE_JPEG_PROGRESSIVE, 1), 60) == 640 * 480
    flat = flat_jpeg(3, 64, 64)
    one_by_one = jpeg_segment(0xDA, bytes((1, 1, 0)) + b"\0\x3f\0")  # a scan of the first component alone
    assert measured(flat[: flat.index(b"\xff\xda")] + one_by_one + flat[-3:], 8) == 64 * 64


@pytest.mark.parametrize("kind", [".jpg", ".png"])
def test_a_header_alone_is_enough_and_a_cut_one_is_refused(kind: str) -> None:
    whole = encoded(kind, drawing(640, 480))
    half = whole[: len(whole) // 2]
    assert measured(half) == 640 * 480
    with pytest.raises(BadImageError):
        decode(half, LIMITS, 10_000)
    for length in range(15):
        with pytest.raises(BadImageError):
            measured(whole[:length])


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_measured_is_not_read_again(kind: str) -> None:
    data = encoded(kind, drawing(64, 48))
    seen = measure(memoryview(data), None, LIMITS, 48)
    assert np.array_equal(decode(data, LIMITS, 48, seen).bgr, decode(data, LIMITS, 48).bgr)
    with pytest.raises(BadImageError, match="another size"):
        decode(data, LIMITS, 48, seen._replace(header=seen.header._replace(width=63)))
