"""Reliability diagrams and calibration errors worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from jetsel.calibrate.reliability import bins, calibration_error, reliability
from tests.unit.calibrate.recorded import margin, of_two_classes


def test_the_calibration_error_by_hand() -> None:
    # Three photographs at 0.2, one of them right; one at 0.9, right. Gaps 2/15 and 0.1, weighed 3 and 1.
    assert calibration_error([(0.2, 1 / 3, 3), (0.9, 1.0, 1)]) == pytest.approx((3 * (1 / 3 - 0.2) + 0.1) / 4)


def test_bins_by_hand_leave_out_the_empty_ones() -> None:
    confidences = np.array([0.1, 0.3, 0.9, 1.0], np.float32)
    right = np.array([False, True, True, False])
    # Four bins: 0 to 0.25, 0.25 to 0.5, none from 0.5 to 0.75, and the last with 0.9 and 1.
    expected = [(0.1, 0.0, 1), (0.3, 1.0, 1), (0.95, 0.5, 2)]
    assert np.array(bins(confidences, right, 4)) == pytest.approx(np.array(expected))


def test_the_diagram_of_a_model_before_and_after_its_temperature() -> None:
    # Four times a probability of 0.8, three of them right. Odds of 4 become, at temperature 2, odds of 2.
    recording = of_two_classes([margin(0.8)] * 4, [margin(0.6)] * 4, classes=[0, 0, 0, 1])
    first, second = reliability(recording, "top1", {"s": 2.0, "m": 1.0})
    assert (first.model, first.temperature, second.model, second.temperature) == ("s", 2.0, "m", 1.0)
    assert first.before == [pytest.approx((0.8, 0.75, 4))]
    assert first.after == [pytest.approx((2 / 3, 0.75, 4))]
    assert (first.error_before, first.error_after) == pytest.approx((0.05, 0.75 - 2 / 3), abs=1e-6)
    assert second.before == second.after
    assert second.error_before == second.error_after == pytest.approx(0.15)
