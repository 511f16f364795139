"""The strongest reader of features, on images whose difficulty a feature tells, and on images that it does not."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from calibration.measures import best_mix
from calibration.papers.taylor.selection import lift_of, time_price
from calibration.papers.taylor.trials import Seen, Trial, at_price, within
from calibration.papers.taylor.ways import single, strongest
from jetsel.calibrate.record.recording import Recording
from jetsel.features import NAMES

CLASSES = 10
FEATURES_MS = 0.1


def recording(seed: int, *, told: bool) -> Recording:
    """Of 600 images the small model is right on the dark half, the large one on 9 of 10; brightness may tell."""
    draw = np.random.default_rng(seed)
    features = draw.random((600, len(NAMES)), np.float32)
    dark = features[:, NAMES.index("avg_brightness")] < 0.5 if told else draw.random(600) < 0.5
    right = np.stack([dark, draw.random(600) < 0.9])
    classes = draw.integers(0, CLASSES, 600)
    answers = np.where(right, classes, (classes + 1) % CLASSES)
    logits = np.eye(CLASSES, dtype=np.float32)[answers]
    return Recording(("small", "large"), logits, classes, features, {"small": 1.0, "large": 9.0})


def seen(*, told: bool) -> tuple[Seen, NDArray[np.bool_]]:
    """What the strongest reader gives on images held out, at the price of time, and who is right on them."""
    fit, other = (recording(seed, told=told) for seed in (1, 2))
    rows = np.arange(600)
    folds = [(rows[rows % 5 == f], fit.take(rows[rows % 5 != f]), fit.take(rows[rows % 5 == f])) for f in range(5)]
    right = fit.right
    trial = Trial(strongest(FEATURES_MS), fit, folds, other)
    return trial.held_out(at_price(time_price(right, fit.costs("time")))), right


def test_a_reader_beats_every_mix_of_models_where_a_feature_tells() -> None:
    found, right = seen(told=True)
    mix = best_mix(np.array([1.0, 9.0]), right.mean(axis=0), float(found.time_ms.mean()))
    assert mix is not None
    assert found.correct.mean() > mix + 0.15


def test_a_reader_that_cannot_know_adds_nothing_on_images_held_out() -> None:
    found, right = seen(told=False)
    added = lift_of(found.column, right)
    assert abs(added.mean()) < 3 * added.std() / len(added) ** 0.5 + 1e-9


@pytest.mark.parametrize(("mean_ms", "model"), [(9.0, "large"), (5.0, "small"), (0.5, "small")])
def test_a_limit_takes_the_most_accurate_within_it_or_else_the_fastest(mean_ms: float, model: str) -> None:
    fit = recording(1, told=True)
    rows = np.arange(600)
    folds = [(rows[rows % 2 == f], fit.take(rows[rows % 2 != f]), fit.take(rows[rows % 2 == f])) for f in range(2)]
    assert Trial(single(), fit, folds, fit).on_others(within(mean_ms, "")).points == (model,)
