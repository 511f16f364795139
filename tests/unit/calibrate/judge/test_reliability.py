"""Calibration errors worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from jetsel.calibrate.judge.comparing import calibration_error, reliability
from tests.unit.calibrate.recorded import margin, of_two_classes


def test_the_calibration_error_by_hand() -> None:
    # Four bins: 0 to 0.25, 0.25 to 0.5, none from 0.5 to 0.75, and the last with 0.9 and 1. Gaps 0.1, 0.7 and 0.45.
    confidences, right = np.array([0.1, 0.3, 0.9, 1.0], np.float32), np.array([False, True, True, False])
    assert calibration_error(confidences, right, 4) == pytest.approx((0.1 + 0.7 + 2 * 0.45) / 4)


def test_the_error_of_a_model_before_and_after_its_temperature() -> None:
    # Four times a probability of 0.8, three of them right. Odds of 4 become, at temperature 2, odds of 2.
    recording = of_two_classes([margin(0.8)] * 4, [margin(0.6)] * 4, classes=[0, 0, 0, 1])
    first, second = reliability(recording, "top1", {"s": 2.0, "m": 1.0})
    assert (first.model, first.temperature, second.model, second.temperature) == ("s", 2.0, "m", 1.0)
    assert (first.error_before, first.error_after) == pytest.approx((0.05, 0.75 - 2 / 3), abs=1e-6)
    assert second.error_before == second.error_after == pytest.approx(0.15)
