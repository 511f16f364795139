"""A chain is offered where kinds of images differ, and nowhere else: drawn families of a hard half and of no halves."""

import numpy as np
import pytest

from jetsel.calibrate.fit.chain import Lift, choose_reading, try_readings
from jetsel.calibrate.fit.temperature import fit_temperatures
from jetsel.calibrate.record.recording import Recording
from jetsel.features.near_duplicates import assign_folds
from jetsel.policies.chain import ChainKind
from jetsel.policies.kind import Table, TriedPoint

NAMES = ("avg_perceived_brightness", "contrast", "hue1")
COSTS_MS = {"s": 1.0, "m": 3.0, "l": 10.0}
CLASSES, FOLDS = 10, 10
FEATURES_MS = 0.05


def family(images: int, seed: int, *, depends: bool, names: tuple[str, ...] = NAMES) -> Table:
    """Three models, as sure of wrong answers as of right ones; `s` is often wrong if the first feature is low."""
    draw = np.random.default_rng(seed)
    features = draw.random((images, len(names)), np.float32)
    dark = features[:, 0] < 0.5 if depends else draw.random(images) < 0.5
    true = draw.integers(0, CLASSES, images)
    logits = np.zeros((3, images, CLASSES), np.float32)
    for said, on_dark in zip(logits, (0.4, 0.6, 0.9), strict=True):
        right = draw.random(images) < np.where(dark, on_dark, 0.9)
        answer = np.where(right, true, (true + draw.integers(1, CLASSES, images)) % CLASSES)
        said[np.arange(images), answer] = draw.uniform(1, 5, images)
    recording = Recording(tuple(COSTS_MS), logits, true, features, COSTS_MS, feature_names=names)
    return recording.table(fit_temperatures(recording))


def lift_of(table: Table) -> Lift:
    """What neighbours add in ten folds, as calibration asks."""
    images = len(table.classes)
    fold_of = assign_folds(np.arange(images), FOLDS, 0)
    rows_of = [np.flatnonzero(fold_of == fold) for fold in range(FOLDS)]
    tried = []
    for rows in rows_of:
        learned = ChainKind().learn(table.take(np.setdiff1d(np.arange(images), rows)))
        assert learned is not None
        tried.append(try_readings(learned, table.take(rows)))
    order = np.argsort(np.concatenate(rows_of))
    readings = {reading: TriedPoint.joined([part[reading] for part in tried], order) for reading in tried[0]}
    lift = choose_reading(readings, table.costs, dict.fromkeys(readings, FEATURES_MS))
    assert lift is not None
    return lift


@pytest.mark.parametrize("images", [300, 1000, pytest.param(8000, marks=pytest.mark.slow)])
def test_a_family_whose_difficulty_depends_on_brightness_gets_a_chain(images: int) -> None:
    assert lift_of(family(images, 5, depends=True)).adds


@pytest.mark.parametrize("images", [300, 1000, pytest.param(8000, marks=pytest.mark.slow)])
def test_a_family_in_which_nothing_depends_on_features_gets_none(images: int) -> None:
    assert not lift_of(family(images, 5, depends=False)).adds


@pytest.mark.parametrize("names", [("colourfulness", "avg_brightness", "noise"), ("avg_brightness", "hue1", "noise")])
def test_a_feature_that_separates_kinds_alone_is_read_alone(names: tuple[str, ...]) -> None:
    assert lift_of(family(1000, 5, depends=True, names=names)).reading.features == names[:1]
