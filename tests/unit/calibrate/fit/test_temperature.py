"""Temperatures against numbers worked out by hand and a search by brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetsel.calibrate.fit.assemble import HIGHEST, LOWEST, fit_temperature, negative_log_likelihood
from tests.unit.calibrate.recorded import drawn, of_two_classes


def test_the_likelihood_by_hand() -> None:
    logits = np.log(np.array([[3, 1], [1, 4]], np.float32))
    assert negative_log_likelihood(logits, np.array([0, 0]), 1.0) == pytest.approx(-np.log([3 / 4, 1 / 5]).mean())
    # At half the temperature the odds are squared: 9 to 1 and 1 to 16.
    assert negative_log_likelihood(logits, np.array([0, 0]), 0.5) == pytest.approx(-np.log([9 / 10, 1 / 17]).mean())


def test_large_logits_do_not_overflow() -> None:
    logits = np.array([[30_000.0, 0.0]], np.float32)
    assert negative_log_likelihood(logits, np.array([0]), 0.05) == 0.0
    assert negative_log_likelihood(logits, np.array([1]), 1.0) == pytest.approx(30_000)


def test_the_ends_of_the_range_are_reached_where_the_best_lies_beyond() -> None:
    always = of_two_classes([1.0] * 5, classes=[0] * 5)
    assert fit_temperature(always.logits[0], always.classes) == pytest.approx(LOWEST, rel=1e-3)
    never = of_two_classes([1.0] * 5, classes=[1] * 5)
    assert fit_temperature(never.logits[0], never.classes) == pytest.approx(HIGHEST, rel=1e-3)


@given(st.integers(0, 1000), st.floats(0.2, 5.0))
def test_no_temperature_of_a_fine_grid_is_better(seed: int, scale: float) -> None:
    found = drawn(seed)
    for logits in found.logits * np.float32(scale):
        fitted = fit_temperature(logits, found.classes)
        loss = negative_log_likelihood(logits, found.classes, fitted)
        others = [negative_log_likelihood(logits, found.classes, t) for t in np.geomspace(LOWEST, HIGHEST, 60)]
        assert loss <= min(others) + 1e-5  # a best beyond the range is met within the search's precision
