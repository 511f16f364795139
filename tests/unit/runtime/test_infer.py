"""From logits to probabilities and a confidence, worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from jetsel.runtime.infer import predict


def test_a_temperature_divides_the_logits() -> None:
    seen = predict("m", np.log(np.array([1, 4, 16], np.float32)), 2.0)
    # Square roots: 1, 2 and 4 of 7.
    np.testing.assert_allclose(seen.probabilities, [1 / 7, 2 / 7, 4 / 7], rtol=1e-6)
    assert seen.confidence == pytest.approx(4 / 7)
    assert seen.label == 2


def test_large_logits_do_not_overflow() -> None:
    seen = predict("m", np.array([1e4, -1e4, 0], np.float32), 0.5)
    assert seen.probabilities.tolist() == [1, 0, 0]
    assert seen.confidence == 1


def test_the_logits_stay_as_they_are() -> None:
    logits = np.array([3, 1], np.float32)
    predict("m", logits, 1.0)
    assert logits.tolist() == [3, 1]
