"""Of an animation one picture is read: the first frame of a WebP, on its canvas, and the default image of a PNG."""

from __future__ import annotations

import io
import struct

import cv2
import numpy as np
import pytest
from PIL import Image  # what scikit-image reads files with: a decoder that shares no code of ours

from jetsel.errors import BadImageError, ImageTooLargeError
from jetsel.image import Limits, decode
from tests.unit.image.animated import ANIMATED, EXIF, animation, frame
from tests.unit.image.files import LIMITS, encoded, noise, png_chunk, tiff, webp_chunk
from tests.unit.image.test_decode import ORIENTED

WHOLE = 1_000_000


def test_the_first_frame_of_a_webp_is_the_photograph():
    first, second = noise(40, 30), 255 - noise(40, 30)
    photograph = decode(animation(40, 30, frame(first), frame(second)), LIMITS, WHOLE)
    np.testing.assert_array_equal(photograph.bgr, first)
    assert (photograph.width_px, photograph.height_px) == (40, 30)


def test_a_frame_lies_where_it_says_and_the_canvas_around_it_is_black():
    photograph = decode(animation(40, 30, frame(noise(16, 9), left=8, top=20)), LIMITS, WHOLE)
    expected = np.zeros((30, 40, 3), np.uint8)
    expected[20:29, 8:24] = noise(16, 9)
    np.testing.assert_array_equal(photograph.bgr, expected)


@pytest.mark.parametrize("orientation", ORIENTED)
def test_the_canvas_is_turned_upright_and_not_the_frame(orientation):
    data = animation(40, 30, frame(noise(16, 9)), flags=ANIMATED | EXIF, after=webp_chunk(b"EXIF", tiff(orientation)))
    still = np.zeros((30, 40, 3), np.uint8)
    still[:9, :16] = noise(16, 9)
    np.testing.assert_array_equal(decode(data, LIMITS, WHOLE).bgr, ORIENTED[orientation](still))


def test_alpha_of_a_frame_is_dropped_as_that_of_a_still_picture():
    bgra = np.dstack([noise(16, 16), np.full((16, 16), 128, np.uint8)])
    np.testing.assert_array_equal(decode(animation(16, 16, frame(bgra)), LIMITS, WHOLE).bgr, bgra[:, :, :3])
    lossy = cv2.GaussianBlur(noise(16, 16), (0, 0), 3)
    data = encoded(".webp", lossy, cv2.IMWRITE_WEBP_QUALITY, 90)
    head = b"".join(number.to_bytes(3, "little") for number in (0, 0, 15, 15, 100)) + b"\0"
    alpha = webp_chunk(b"ALPH", b"\0" + bytes(256))
    whole = animation(16, 16, webp_chunk(b"ANMF", head + alpha + data[12:]))
    np.testing.assert_array_equal(decode(whole, LIMITS, WHOLE).bgr, decode(data, LIMITS, WHOLE).bgr)


@pytest.mark.parametrize("lossless", [True, False])
@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
def test_another_decoder_sees_the_same_first_frame(mode, lossless):
    y, x = np.mgrid[:30, :40]
    channels = [x * 5, y * 7, (x + y) * 3, np.where(x < 20, 255, 90)][: len(mode)]
    first = np.stack(channels, axis=2).astype(np.uint8)
    file = io.BytesIO()
    options = {"lossless": lossless, "exact": True, "quality": 90, "save_all": True, "duration": 100}
    Image.fromarray(first).save(file, "WEBP", append_images=[Image.fromarray(255 - first)], **options)
    with Image.open(file) as theirs:
        expected = np.asarray(theirs.convert("RGBA"))[:, :, 2::-1]
    assert b"ANMF" in file.getvalue()
    np.testing.assert_array_equal(decode(file.getvalue(), LIMITS, WHOLE).bgr, expected)


@pytest.mark.parametrize("is_first_frame", [True, False])
def test_the_default_image_of_an_animated_png_is_the_photograph(is_first_frame):
    frames = [Image.fromarray(noise(40, 30)[:, :, ::-1]), Image.fromarray(255 - noise(40, 30))]
    file = io.BytesIO()
    options = {"save_all": True, "default_image": not is_first_frame, "duration": 100}
    frames[0].save(file, "PNG", append_images=[frames[1], frames[0]], **options)
    assert b"acTL" in file.getvalue()
    np.testing.assert_array_equal(decode(file.getvalue(), LIMITS, WHOLE).bgr, noise(40, 30))


def test_a_bomb_of_a_canvas_is_refused():
    data = animation(1 << 14, 1 << 14, frame(noise(8, 8)))
    with pytest.raises(ImageTooLargeError, match="16384 x 16384"):
        decode(data, LIMITS, WHOLE)
    with pytest.raises(ImageTooLargeError, match="at most 63 are accepted"):
        decode(animation(8, 8, frame(noise(8, 8))), Limits(10**6, 63), WHOLE)


@pytest.mark.parametrize("picture", [noise(40, 30), cv2.GaussianBlur(noise(40, 30), (0, 0), 3)])
def test_an_animation_cut_anywhere_is_refused(picture):
    data = animation(40, 30, frame(picture), frame(noise(8, 8)))
    decode(data, LIMITS, WHOLE)
    for end in range(12, len(data)):
        with pytest.raises(BadImageError, match="is truncated"):
            decode(data[:end], LIMITS, WHOLE)


DAMAGED = {
    "no frame": (animation(8, 8), "no picture"),
    "a still picture in place of frames": (animation(8, 8, encoded(".webp", noise(8, 8))[12:]), "still one in"),
    "a frame that is too short": (animation(8, 8, webp_chunk(b"ANMF", bytes(15))), "first frame is too short"),
    "a frame without a picture": (animation(8, 8, webp_chunk(b"ANMF", bytes(16))), "first frame is|holds no picture"),
    "a frame past its canvas": (animation(8, 8, frame(noise(8, 8), left=2)), "outside of its canvas of 8 x 8"),
    "a frame of another size": (animation(8, 8, frame(noise(4, 4), width=6)), "says 6 x 4 pixels and its picture"),
    "a chunk past its frame": (
        animation(8, 8, frame(noise(8, 8), before=b"JUNK" + struct.pack("<I", 1 << 20))),
        "longer than the frame",
    ),
    "a frame of noise": (
        animation(8, 8, webp_chunk(b"ANMF", bytes((0, 0, 0, 0, 0, 0, 7, 0, 0, 7, 0, 0, 1, 0, 0, 0)) + b"VP8L"
        + struct.pack("<I", 20) + b"\x2f" + struct.pack("<I", 7 | 7 << 14) + b"\xff" * 15)),
        "cannot be decoded",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("data", "message"), DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_animation_is_refused_with_what_is_wrong(data, message):
    with pytest.raises(BadImageError, match=message):
        decode(data, LIMITS, WHOLE)


def test_chunks_of_an_animation_do_not_make_a_still_png_one():
    data = encoded(".png", noise(9, 7))
    control = png_chunk(b"fcTL", bytes(26)) + png_chunk(b"fdAT", b"\0\0\0\1junk")
    np.testing.assert_array_equal(decode(data[:33] + control + data[33:], LIMITS, WHOLE).bgr, noise(9, 7))
