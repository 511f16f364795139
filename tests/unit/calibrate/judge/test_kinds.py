"""Which kinds of images the chain tells apart, in words, on a recording of a bright and a dark half."""

import numpy as np
import pytest

from jetsel.calibrate.fit.chain import Lift, Reading
from jetsel.calibrate.judge.findings import FittedChain, ImageKind
from jetsel.calibrate.judge.results import describe_image_kinds
from jetsel.calibrate.judge.words import premodel_in_words
from jetsel.calibrate.record.recording import Recording
from jetsel.calibrate.record.replay import PolicyReplay

IMAGES = 200
DRAW = np.random.default_rng(1)
NAMES = ("avg_perceived_brightness", "contrast", "hue1")


def recorded(dark: np.ndarray) -> Recording:
    features = DRAW.random((IMAGES, 3)).astype(np.float32)
    features[:, 0] = np.where(dark, 20, 120) + 10 * features[:, 0]
    logits = np.zeros((2, IMAGES, 3), np.float32)
    return Recording(
        ("m", "m-night"), logits, np.zeros(IMAGES, int), features, {"m": 1.0, "m-night": 1.0}, feature_names=NAMES
    )


def begins_with(night: np.ndarray) -> PolicyReplay:
    ran = np.stack([~night, night], axis=1)
    nothing = np.zeros(IMAGES, bool)
    return PolicyReplay(np.zeros(IMAGES, int), nothing, np.ones(IMAGES), ran, nothing, 0.1, NAMES)


def test_each_models_images_are_described_by_the_feature_that_tells_them_best() -> None:
    dark = np.arange(IMAGES) % 4 == 0
    assert describe_image_kinds(recorded(dark), begins_with(dark)) == [
        ImageKind("m", 0.75, "bright"),
        ImageKind("m-night", 0.25, "dark"),
    ]


@pytest.mark.parametrize("night", [np.arange(IMAGES) % 2 == 0, np.zeros(IMAGES, bool), np.arange(IMAGES) < 2])
def test_images_that_no_feature_tells_and_all_and_few_are_no_kind(night: np.ndarray) -> None:
    assert describe_image_kinds(recorded(np.arange(IMAGES) % 4 == 0), begins_with(night)) == []


def test_the_report_says_which_kinds_were_found() -> None:
    lift = Lift(Reading(("noise",), 101), 4.8, 0.3, adds=True)
    chain = FittedChain(lift, True, 0.2, kinds=[ImageKind("m-night", 0.12, "dark")])
    assert premodel_in_words(chain).endswith(
        " 12 % of the images are dark: these go to m-night first. The other 88 % go to other models first; no single "
        "feature describes them."
    )
