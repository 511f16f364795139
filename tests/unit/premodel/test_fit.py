"""Chains from a calibration, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from jetsel.errors import CalibrationError
from jetsel.premodel import Calibration, chain_from


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
