"""What decoding a photograph will take, by its header alone: agreed with by decoding, and cheap for hostile files."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from jetsel.base.errors import BadImageError
from jetsel.image import Limits, decode, measure
from tests.unit.image.files import LIMITS, drawing, encoded, flat_jpeg, jpeg_segment

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
    assert seen.header is not None
    with pytest.raises(BadImageError, match="another size"):
        decode(data, LIMITS, 48, seen._replace(header=seen.header._replace(width=63)))


def test_segments_and_filling_before_a_picture_are_read_up_to_a_bound() -> None:
    jpeg = encoded(".jpg", drawing(64, 48))
    for before in (jpeg_segment(0xE2, b"") * 1000, b"\xff" * 1000, bytes(1_000_000)):
        assert measured(jpeg[:2] + before + jpeg[2:]) == 64 * 48
    for before in (jpeg_segment(0xE2, b"") * 10_000, b"\xff" * 3_900_000, bytes(1_100_000)):
        with pytest.raises(BadImageError):
            measured(jpeg[:2] + before + jpeg[2:])
