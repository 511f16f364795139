"""The table of features and what holds for all of them, whatever the photograph."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jetsel.features import KINDS, NAMES, PAPER_NAMES, extract, table, table_hash

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
