"""The arithmetic of resizing, cropping and normalising, by hand and against plain formulas."""

import re
import tracemalloc

import cv2
import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from jetsel.image import InputSpec, Photograph, model_input
from tests.unit.image.files import noise

SPEC = InputSpec(
    width_px=64,
    height_px=64,
    resize="shorter-side",
    interpolation="area",
    crop="center",
    channels="rgb",
    mean=(0.485, 0.456, 0.406),
    std=(0.229, 0.224, 0.225),
)
LEVELS = msgspec.structs.replace(SPEC, channels="bgr", mean=(0.0, 0.0, 0.0), std=(1 / 255, 1 / 255, 1 / 255))
"""Leaves each level as it is, so that geometry can be read off."""


def spec(base: InputSpec = LEVELS, **changes: object) -> InputSpec:
    return msgspec.structs.replace(base, **changes)


def photo(bgr: np.ndarray) -> Photograph:
    return Photograph(np.ascontiguousarray(bgr, dtype=np.uint8), bgr.shape[1], bgr.shape[0])


def grey(rows: list[list[int]]) -> Photograph:
    return photo(np.repeat(np.array(rows, np.uint8)[:, :, np.newaxis], 3, axis=2))


def plain(bgr: np.ndarray, of: InputSpec) -> np.ndarray:
    """(level / 255 - mean) / std, channel by channel, in double precision."""
    ordered = bgr[:, :, ::-1] if of.channels == "rgb" else bgr
    return ((ordered / 255 - np.array(of.mean)) / np.array(of.std)).transpose(2, 0, 1)[np.newaxis]


def test_one_pixel_by_hand():
    one = spec(SPEC, width_px=1, height_px=1)
    got = model_input(photo(np.array([[[0, 51, 255]]])), one)
    assert (got.shape, got.dtype) == ((1, 3, 1, 1), np.float32)
    # red 255 is 1, green 51 is 0.2, blue is 0
    np.testing.assert_allclose(got.ravel(), [(1 - 0.485) / 0.229, (0.2 - 0.456) / 0.224, -0.406 / 0.225], atol=1e-6)
    got = model_input(photo(np.array([[[0, 51, 255]]])), spec(one, channels="bgr"))
    np.testing.assert_allclose(got.ravel(), [-0.485 / 0.229, (0.2 - 0.456) / 0.224, (1 - 0.406) / 0.225], atol=1e-6)


def test_area_averages_what_a_pixel_covers():
    got = model_input(grey([[0, 10, 100, 110], [20, 30, 120, 130]]), spec(width_px=2, height_px=1))
    assert got[0, 0].round(3).tolist() == [[15, 115]]


def test_large_photographs_are_averaged_in_whole_levels_and_alike():
    bgr = cv2.GaussianBlur(noise(900, 600), (0, 0), 5)  # over 512 x 512
    got = model_input(photo(bgr), spec(SPEC, width_px=90, height_px=60))
    averages = bgr.reshape(60, 10, 90, 10, 3).mean(axis=(1, 3))
    assert np.abs(got - plain(averages, SPEC)).max() <= 0.51 / 255 / min(SPEC.std)


def test_enlarging_is_bilinear_where_the_rule_is_area():
    got = model_input(grey([[0, 100], [0, 100]]), spec(width_px=4, height_px=4))
    # centres of the four pixels lie at -0.25, 0.25, 0.75 and 1.25 of the source's
    np.testing.assert_allclose(got[0, 0], [[0, 25, 75, 100]] * 4, atol=1e-4)


def test_bicubic_overshoots_where_bilinear_does_not():
    source = grey([[50] * 4 + [200] * 4] * 8)
    smooth = model_input(source, spec(width_px=16, height_px=16, interpolation="bilinear"))
    sharp = model_input(source, spec(width_px=16, height_px=16, interpolation="bicubic"))
    assert (smooth.min(), smooth.max()) == (pytest.approx(50, abs=1e-3), pytest.approx(200, abs=1e-3))
    assert sharp.min() < 50
    assert sharp.max() > 200


def test_the_centre_is_kept_and_the_spare_pixel_left_over_at_the_right_and_the_bottom():
    row = [[1, 2, 3, 4, 5, 6, 7]]
    assert model_input(grey(row), spec(width_px=1, height_px=1))[0, 0].round(3).tolist() == [[4]]
    assert model_input(grey(row * 2), spec(width_px=2, height_px=2))[0, 0].round(3).tolist() == [[3, 4]] * 2
    column = [[value] * 2 for value in row[0]]
    got = model_input(grey(column), spec(width_px=2, height_px=2))
    assert got[0, 0].round(3).tolist() == [[3, 3], [4, 4]]


def test_a_wide_and_a_high_input_are_covered_and_cropped():
    # 4 x 4 to 4 x 2: the scale is 1, the two rows in the middle stay
    rows = [[10 * y + x for x in range(4)] for y in range(4)]
    for width_px, height_px, middle in ((4, 2, np.s_[1:3, :]), (2, 4, np.s_[:, 1:3])):
        got = model_input(grey(rows), spec(width_px=width_px, height_px=height_px))
        np.testing.assert_allclose(got[0, 0], np.array(rows)[middle], atol=1e-3)


@pytest.mark.parametrize("interpolation", ["area", "antialiased-bilinear"])
def test_the_shorter_side_is_scaled_to_more_than_the_input_and_the_centre_kept(interpolation):
    # 4 x 8 scaled to 4 x 8, of which the middle 2 x 2 stays: rows 1 and 2, columns 3 and 4
    rows = [[10 * y + x for x in range(8)] for y in range(4)]
    of = spec(width_px=2, height_px=2, resize_px=4, interpolation=interpolation)
    assert of.shorter_px == 4
    assert model_input(grey(rows), of)[0, 0].round(3).tolist() == [[13, 14], [23, 24]]
    # and to half of that: each of the middle four is the average of four pixels, in a ramp under either kernel
    of = spec(of, width_px=2, height_px=2, resize_px=2)
    rows = [[10 * y + 2 * x for x in range(8)] for y in range(4)]
    got = model_input(grey(rows), of)[0, 0]
    np.testing.assert_allclose(got[:, 1] - got[:, 0], 4, atol=0.01)


@given(
    st.integers(1, 90),
    st.integers(1, 90),
    st.integers(1, 40),
    st.integers(1, 40),
    st.sampled_from(["area", "bilinear", "bicubic", "antialiased-bilinear", "antialiased-bicubic"]),
    st.sampled_from([("shorter-side", "center"), ("stretch", "none"), ("stretch", "center")]),
    st.sampled_from(["rgb", "bgr"]),
)
def test_any_size_gives_the_shape_asked_for_and_a_flat_picture_stays_flat(
    width, height, to_width, to_height, how, rule, order
):
    of = spec(
        SPEC, width_px=to_width, height_px=to_height, interpolation=how, resize=rule[0], crop=rule[1], channels=order
    )
    flat = np.full((height, width, 3), (10, 120, 250), np.uint8)
    got = model_input(photo(flat), of)
    assert got.shape == (1, 3, to_height, to_width)
    assert got.dtype == np.float32
    assert got.flags.c_contiguous
    expected = np.broadcast_to(plain(flat[:1, :1], of), got.shape)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-4)  # averages of areas are added up in float32


@pytest.mark.parametrize("shape", [(1, 65_535), (65_535, 1)])
def test_extreme_shapes_take_little_memory(shape):
    source = photo(np.full((*shape, 3), 77, np.uint8))
    for rule, how in (("shorter-side", "area"), ("stretch", "bicubic"), ("stretch", "antialiased-bicubic")):
        of = spec(width_px=64, height_px=32, resize=rule, interpolation=how)
        tracemalloc.start()
        try:
            got = model_input(source, of)
            _, peak_bytes = tracemalloc.get_traced_memory()  # numpy's arrays, which OpenCV's results are
        finally:
            tracemalloc.stop()
        np.testing.assert_allclose(got, 77, atol=2e-3)  # averages of up to 1,024 levels, added up in float32
        assert peak_bytes < 30_000_000


@pytest.mark.parametrize(("width", "height", "levels"), [(500, 375, 1), (61, 1200, 1), (10, 2000, 2)])
def test_an_antialiased_input_is_pillows_or_of_a_tall_image_within_two_roundings(width, height, levels):
    bgr = noise(width, height)
    for interpolation, kernel in (
        ("antialiased-bilinear", Image.Resampling.BILINEAR),
        ("antialiased-bicubic", Image.Resampling.BICUBIC),
    ):
        of = spec(width_px=48, height_px=40, resize="stretch", interpolation=interpolation)
        expected = np.asarray(Image.fromarray(bgr).resize((48, 40), kernel))
        apart = np.abs(model_input(photo(bgr), of) - plain(expected, of)) * 255 * np.reshape(of.std, (3, 1, 1))
        assert apart.max() <= levels + 0.01  # the tall one is shortened before it is widened


def test_a_read_only_photograph_is_taken_as_it_is_and_the_result_is_the_callers_own():
    bgr = noise(125, 94)
    bgr.flags.writeable = False
    first = model_input(Photograph(bgr, 125, 94), SPEC)
    kept = first.copy()
    first += 1
    np.testing.assert_array_equal(model_input(photo(bgr), SPEC), kept)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"width_px": 0}, ">= 1 - at `$.width_px`"),
        ({"height_px": 4097}, "<= 4096 - at `$.height_px`"),
        ({"std": (0.2, 0.0, 0.2)}, "each must be over 0"),
        ({"crop": "none"}, 'crop is "none"'),
        ({"resize_px": 10**9}, "<= 4096 - at `$.resize_px`"),
        ({"resize_px": 63}, "resize_px is 63, which leaves too little for 64 x 64"),
        ({"resize_px": 80, "resize": "stretch"}, "resize_px is the shorter side before the crop"),
    ],
)
def test_a_spec_that_no_model_can_have_is_refused_where_it_is_read(changes, message):
    fields = msgspec.to_builtins(SPEC) | changes
    with pytest.raises(msgspec.ValidationError, match=re.escape(message)):
        msgspec.convert(fields, InputSpec)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(fields | {"widht_px": 64}, InputSpec)
    assert msgspec.convert(msgspec.to_builtins(SPEC), InputSpec) == SPEC
