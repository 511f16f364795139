"""Temperatures by hand and by brute force."""

import dataclasses

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from jetsel.calibrate.fit.temperature import HIGHEST, LOWEST, PRECISION, fit_temperature, fit_temperatures
from tests.unit.calibrate.recorded import drawn, of_two_classes


def loss(logits: NDArray[np.float32], classes: NDArray[np.int64], temperature: float) -> float:
    """The mean negative log likelihood of the true classes."""
    scaled = logits.astype(np.float64) / temperature
    of_class = np.take_along_axis(scaled, classes[:, None], axis=1)[:, 0]
    return float((np.logaddexp.reduce(scaled, axis=1) - of_class).mean())


def test_two_answers_of_three_right_have_the_temperature_at_which_the_confidence_is_two_thirds() -> None:
    found = of_two_classes([3.0, 3.0, 3.0], classes=[0, 0, 1])
    assert fit_temperature(found.logits[0], found.classes) == pytest.approx(3 / np.log(2), rel=1e-3)


def test_large_logits_do_not_overflow() -> None:
    found = of_two_classes([30_000.0, 20_000.0, 100.0], classes=[0, 0, 1])
    assert fit_temperature(found.logits[0], found.classes) == pytest.approx(HIGHEST, rel=1e-3)


def test_the_ends_of_the_range_are_reached_where_the_best_lies_beyond() -> None:
    always = of_two_classes([1.0] * 5, classes=[0] * 5)
    assert fit_temperature(always.logits[0], always.classes) == pytest.approx(LOWEST, rel=1e-3)
    never = of_two_classes([1.0] * 5, classes=[1] * 5)
    assert fit_temperature(never.logits[0], never.classes) == pytest.approx(HIGHEST, rel=1e-3)


@given(st.integers(0, 1000), st.floats(0.2, 5.0))
@example(93, 0.21875)  # the best lies below the lowest
def test_no_temperature_of_a_fine_grid_is_better(seed: int, scale: float) -> None:
    found = drawn(seed)
    for logits in found.logits * np.float32(scale):
        fitted = fit_temperature(logits, found.classes)
        others = [loss(logits, found.classes, t) for t in np.geomspace(LOWEST, HIGHEST, 60)]
        # A best beyond the range is met within the search's precision: the end of the range is that near.
        near = np.clip([fitted, fitted * (1 - 2 * PRECISION), fitted * (1 + 2 * PRECISION)], LOWEST, HIGHEST)
        assert min(loss(logits, found.classes, t) for t in near) <= min(others) + 1e-5


def test_a_model_that_is_always_right_has_the_temperature_one() -> None:
    recording = drawn(3, photographs=60)
    agreed = dataclasses.replace(recording, classes=recording.logits[1].argmax(axis=1))
    temperatures = fit_temperatures(agreed)
    assert temperatures["m"] == 1.0
    assert temperatures["s"] != 1.0
