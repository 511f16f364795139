"""Fitting from a calibration, and choices for photographs that the chain was not fitted on, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from jetsel.errors import CalibrationError
from jetsel.premodel import (
    Calibration,
    chain_from,
    cross_validated_choices,
    fit_chain,
    held_out_choices,
)


def test_a_calibrations_chain_takes_unscaled_features(calibration: Calibration) -> None:
    # (3, -1) scales to (0.1, 0): rows 1, 0, 2. Optimum by cost: small, small, middle.
    x = np.array([3, -1], np.float32)
    choice = chain_from(calibration, "top1", "optimum").choose(x)
    assert (choice.model, choice.votes) == ("small", (2, 1, 0))
    assert choice.distance == pytest.approx((0 + 0.1 + 0.1) / 3)
    choice = chain_from(calibration, "top1", "right").choose(x)
    assert (choice.model, choice.votes) == ("small", (2, 2, 2))
    # (12, 1) scales to (1, 1): row 3, which no model gets right under top1, then 2 (middle) and 1 (small)
    far = np.array([12, 1], np.float32)
    assert chain_from(calibration, "top1", "optimum").choose(far).model is None
    assert chain_from(calibration, "top1", "right").choose(far).model == "middle"
    assert chain_from(calibration, "top5", "optimum").choose(far).votes == (1, 1, 1)


def test_a_criterion_that_was_not_fitted_is_refused(calibration: Calibration) -> None:
    with pytest.raises(CalibrationError, match="knows top1, top5, not 'top3': recalibrate"):
        chain_from(calibration, "top3", "right")


def test_a_photograph_does_not_vote_on_itself() -> None:
    # Pairs of twins: rows 0 and 1 at 0, rows 2 and 3 at 10. Held out with its twin in, each takes the twin's vote.
    features = np.array([[0], [0], [10], [10]], np.float32)
    right = np.array([[1, 0], [0, 1], [0, 0], [1, 1]], bool)
    fold_of = np.array([0, 1, 0, 1])
    assert held_out_choices(features, right, [1, 2], 1, fold_of, "optimum").tolist() == [1, 0, 0, -1]
    assert held_out_choices(features, right, [1, 2], 1, fold_of, "right").tolist() == [1, 0, 0, -1]
    # Held out together with its twin, each takes the vote of the other pair's first row
    together = np.array([0, 0, 1, 1])
    assert held_out_choices(features, right, [1, 2], 1, together, "optimum").tolist() == [-1, -1, 0, 0]


def test_each_fold_is_scaled_by_the_others_alone() -> None:
    # Row 3 holds the largest first feature. With it in the scaling, 0.9 would lie at 0.09 of the range; without, at 0.9
    features = np.array([[0, 0], [1, 0.5], [0.9, 0], [10, 0.5]], np.float32)
    right = np.array([[1, 0], [0, 1], [0, 0], [0, 0]], bool)
    fold_of = np.array([0, 0, 1, 1])
    chosen = held_out_choices(features, right, [1, 2], 1, fold_of, "optimum")
    # Row 2 scales to (0.9, 0): 0.9 from row 0 at (0, 0), about 1.005 from row 1 at (1, 1)
    assert chosen[2:].tolist() == [0, 1]


def test_cross_validation_is_dealt_by_the_seed_and_equals_fitting_on_the_other_folds() -> None:
    random = np.random.default_rng(3)
    features = random.random((60, 3), dtype=np.float32)
    right = random.random((60, 3)) < 0.7
    chosen = cross_validated_choices(features, right, [1, 2, 3], 5, 10, 7, "right")
    assert chosen.tolist() == cross_validated_choices(features, right, [1, 2, 3], 5, 10, 7, "right").tolist()
    assert chosen.tolist() != cross_validated_choices(features, right, [1, 2, 3], 5, 10, 8, "right").tolist()
    assert set(chosen.tolist()) <= {-1, 0, 1, 2}
    # As many folds as photographs: leave one out, whatever the seed
    alone = cross_validated_choices(features, right, [1, 2, 3], 5, 60, 0, "right")
    for i in (0, 17, 59):
        rest = np.arange(60) != i
        chain = fit_chain(("0", "1", "2"), features[rest], right[rest], [1, 2, 3], 5, "right")
        model = chain.choose(features[i]).model
        assert alone[i] == (-1 if model is None else int(model))


@pytest.mark.parametrize("folds", [1, 5])
def test_folds_that_cannot_be_dealt_are_refused(folds: int) -> None:
    with pytest.raises(ValueError, match=f"folds is {folds}"):
        cross_validated_choices(np.zeros((4, 1), np.float32), np.ones((4, 2), bool), [1, 2], 1, folds, 0, "right")
