"""The table of features, what holds for all of them, what tells kinds of images apart; and near-duplicates."""

import cv2
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jetsel.base.errors import CalibrationError
from jetsel.features import KINDS, NAMES, PAPER_NAMES, SIZE, extract, near_duplicates, table, table_hash
from jetsel.features.near_duplicates import assign_folds, groups, perceptual_hash
from tests.unit.calibrate.record.making import draw

# Table 2 of the paper, written out.
TABLE_2 = """
n_keypoints avg_brightness brightness_rms avg_perceived_brightness perceived_brightness_rms contrast
edge_length1 edge_length2 edge_length3 edge_length4 edge_length5 edge_length6 edge_length7
edge_angle1 edge_angle2 edge_angle3 edge_angle4 edge_angle5 edge_angle6 edge_angle7
area_by_perim aspect_ratio hue1 hue2 hue3 hue4 hue5 hue6 hue7
"""


def image_of(height, width, kind, seed):
    rng = np.random.default_rng(seed)
    if kind == "noise":
        return rng.integers(0, 256, (height, width, 3), np.uint8)
    if kind == "black or white":
        return (rng.integers(0, 2, (height, width, 1), np.uint8) * 255).repeat(3, axis=2)
    if kind == "blocks":
        cells = rng.integers(0, 256, (4, 4, 3), np.uint8)
        return cells[np.arange(height)[:, None] * 4 // height, np.arange(width) * 4 // width]
    return np.full((height, width, 3), rng.integers(0, 256, 3), np.uint8)


sides = st.integers(1, 81)
shapes = st.one_of(
    st.tuples(sides, sides), st.tuples(st.integers(1, 3), st.integers(1, 20000)), st.tuples(st.just(9000), sides)
)
images = st.builds(
    lambda shape, kind, seed: image_of(*shape, kind, seed),
    shapes,
    st.sampled_from(["noise", "black or white", "blocks", "flat"]),
    st.integers(0, 2**32 - 1),
)


def test_the_names_are_those_of_table_2_and_of_kinds():
    assert tuple(TABLE_2.split()) == PAPER_NAMES
    assert (*PAPER_NAMES, *KINDS) == NAMES
    assert len(set(NAMES)) == 29 + 6


@settings(deadline=None)
@given(images)
@example(np.zeros((1, 1, 3), np.uint8))
@example(np.full((1, 20000, 3), 255, np.uint8))
@example(np.full((20000, 1, 3), 9, np.uint8))
@example(image_of(1, 20000, "noise", 1))
def test_defined_for_every_photograph(image):
    before = image.copy()
    values = extract(image)
    assert values.shape == (len(NAMES),)
    assert values.dtype == np.float32
    assert np.isfinite(values).all()
    assert (values >= 0).all()
    assert np.array_equal(image, before)
    assert np.array_equal(extract(image.copy()), values)
    for share in ("edge_length", "edge_angle", "hue"):
        assert sum(value for name, value in zip(NAMES, values, strict=True) if name.startswith(share)) <= 1 + 1e-6


@settings(deadline=None)
@given(images, st.lists(st.sampled_from(NAMES), max_size=10))
def test_a_subset_equals_its_part_of_the_whole(image, names):
    whole = dict(zip(NAMES, extract(image), strict=True))
    values = extract(image, names)
    assert values.dtype == np.float32
    assert values.tolist() == [whole[name] for name in names]


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((4, 4), np.uint8),
        np.zeros((4, 4, 4), np.uint8),
        np.zeros((0, 4, 3), np.uint8),
        np.zeros((4, 4, 3), np.float32),
    ],
)
def test_another_kind_of_array_is_refused(array):
    with pytest.raises(ValueError, match=r"\(height, width, 3\) of uint8"):
        extract(array)


def test_the_hash_changes_with_the_version_the_names_and_the_units(monkeypatch):
    now = table_hash()
    assert len(now) == 64
    assert table_hash() == now
    seen = {now}
    first, *rest = table.FEATURES
    for changed in (
        {"VERSION": "another"},
        {"FEATURES": tuple(rest)},
        {"FEATURES": (*rest, first)},
        {"FEATURES": (table.Feature(first.name, "dozens", first.function), *rest)},
    ):
        with monkeypatch.context() as patch:
            for name, value in changed.items():
                patch.setattr(table, name, value)
            seen.add(table_hash())
    assert len(seen) == 5


DRAW = np.random.default_rng(4)
GRASS = cv2.GaussianBlur(DRAW.integers(0, 256, (256, 256, 3), np.uint8), (0, 0), 1.5)


def kind(bgr, name, original_px=None):
    return float(extract(bgr, (name,), original_px=original_px)[0])


def test_sizes_are_those_of_the_image_before_it_was_decoded_at_a_reduced_scale():
    assert extract(np.zeros((64, 128, 3), np.uint8), SIZE).tolist() == [7, 6, 13]
    assert extract(np.zeros((64, 128, 3), np.uint8), SIZE, original_px=(1024, 512)).tolist() == [10, 9, 19]


def test_grey_has_no_colour_and_a_mix_of_red_and_blue_much():
    halves = np.zeros((64, 64, 3), np.uint8)
    halves[:, :32, 2] = halves[:, 32:, 0] = 255
    assert kind(np.full((64, 64, 3), 99, np.uint8), "colourfulness") == 0
    # Red less green is 255 and 0, yellow less blue 127.5 and -255: means 127.5 and -63.75, deviations 127.5 and 191.25.
    assert kind(halves, "colourfulness") == pytest.approx(np.hypot(127.5, 191.25) + 0.3 * np.hypot(127.5, 63.75))


def test_detail_is_that_of_the_image_and_not_of_its_number_of_pixels():
    stripes = np.zeros((64, 64, 3), np.uint8)
    stripes[:, ::2] = 255
    doubled = stripes.repeat(2, axis=0).repeat(2, axis=1)
    assert kind(stripes, "detail") == 1
    assert kind(doubled, "detail") == 0
    assert kind(np.full((64, 64, 3), 7, np.uint8), "detail") == 0
    enlarged = cv2.resize(GRASS, None, fx=4, fy=4, interpolation=cv2.INTER_CUBIC)
    assert kind(enlarged, "detail") < 0.7 * kind(GRASS, "detail")


@pytest.mark.parametrize("deviation", [3, 10])
def test_noise_is_measured_in_grey_levels_and_hardly_moved_by_edges(deviation):
    scene = np.full((128, 128), 60.0)
    scene[40:90, 30:100] = 180
    noisy = scene + deviation * DRAW.standard_normal(scene.shape)
    bgr = np.repeat(np.clip(np.rint(noisy), 0, 255).astype(np.uint8)[:, :, None], 3, axis=2)
    assert kind(bgr, "noise") == pytest.approx(deviation, rel=0.25)
    assert kind(np.repeat(scene.astype(np.uint8)[:, :, None], 3, axis=2), "noise") < 1


def numbers(*hashes: int) -> np.ndarray:
    return np.array(hashes, np.int64)


def test_groups_by_hand() -> None:
    # 0b0011 and 0b0000 differ in 2 bits, 0b1111 and 0b0011 in 2, 0b1111 and 0b0000 in 4: joined by the middle one.
    chained = numbers(-1, 0b1111, 0b0000, 0b0011, -1)
    assert groups(chained, 2).tolist() == [0, 1, 1, 1, 0]
    assert groups(chained, 1).tolist() == [0, 1, 2, 3, 0]
    assert groups(numbers(), 2).tolist() == []
    assert groups(numbers(0, -1), 63).tolist() == [0, 1]
    assert groups(numbers(0, -1), 64).tolist() == [0, 0]


def test_groups_over_several_blocks_are_those_of_comparing_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(near_duplicates, "_ROWS", 7)
    chosen = np.random.default_rng(3).integers(0, 2**16, 60, dtype=np.int64)  # of 16 bits, so that many are close
    differing = np.array([[bin(int(a) ^ int(b)).count("1") for b in chosen] for a in chosen])
    reached = differing <= 2
    for _ in range(6):  # paths of up to 64 steps
        reached = (reached.astype(int) @ reached.astype(int)) > 0
    found = groups(chosen, 2)
    assert np.array_equal(found[:, None] == found[None, :], reached)
    assert 1 < len(set(found.tolist())) < 60


def test_the_same_photograph_saved_again_or_resized_is_near_and_others_are_not() -> None:
    photographs = [draw(seed) for seed in range(8)]
    changed = [
        cv2.imdecode(cv2.imencode(".jpg", cv2.resize(p, (192, 144)), [cv2.IMWRITE_JPEG_QUALITY, 50])[1], 1)
        for p in photographs
    ]
    hashes = numbers(*(perceptual_hash(p) for p in [*photographs, *changed]))
    assert groups(hashes).tolist() == [*range(8), *range(8)]


@given(st.lists(st.integers(0, 40), min_size=1, max_size=120), st.integers(1, 10), st.integers(0, 100))
def test_groups_stay_together_and_folds_are_even(drawn: list[int], folds: int, seed: int) -> None:
    of_groups = np.array(drawn)
    if len(set(drawn)) < folds:
        with pytest.raises(CalibrationError, match="too few"):
            assign_folds(of_groups, folds, seed)
        return
    fold_of = assign_folds(of_groups, folds, seed)
    for group in set(drawn):
        assert len(set(fold_of[of_groups == group].tolist())) == 1
    sizes = np.bincount(fold_of, minlength=folds)
    assert len(sizes) == folds
    assert sizes.min() > 0
    assert sizes.max() - sizes.min() <= np.bincount(of_groups).max()  # no more than one group apart
    assert fold_of.tolist() == assign_folds(of_groups, folds, seed).tolist()


@pytest.mark.parametrize("seed", range(8))
def test_a_large_group_has_a_fold_to_itself(seed: int) -> None:
    fold_of = assign_folds(np.array([0, 1, 9, 9, 9, 9, 2, 3]), 2, seed)
    assert set(fold_of[2:6].tolist()).isdisjoint(fold_of[[0, 1, 6, 7]].tolist())
