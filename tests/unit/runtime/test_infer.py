"""From logits to probabilities and a confidence, worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from jetsel.runtime.infer import predict


def test_a_temperature_divides_the_logits() -> None:
    seen = predict("m", np.log(np.array([1, 4, 16], np.float32)), 2.0, "top1")
    # Square roots: 1, 2 and 4 of 7.
    np.testing.assert_allclose(seen.probabilities, [1 / 7, 2 / 7, 4 / 7], rtol=1e-6)
    assert seen.confidence == pytest.approx(4 / 7)
    assert seen.label == 2


def test_the_confidence_of_top5_is_that_of_five_classes_together() -> None:
    seen = predict("m", np.log(np.array([1, 2, 3, 4, 5, 6, 7], np.float32)), 1.0, "top5")
    assert seen.confidence == pytest.approx((3 + 4 + 5 + 6 + 7) / 28)


@pytest.mark.parametrize("classes", [1, 2, 4, 5])
def test_of_five_classes_or_fewer_one_is_right_for_sure(classes: int) -> None:
    assert predict("m", np.arange(classes, dtype=np.float32), 1.0, "top5").confidence == pytest.approx(1)


def test_large_logits_do_not_overflow() -> None:
    seen = predict("m", np.array([1e4, -1e4, 0], np.float32), 0.5, "top1")
    assert seen.probabilities.tolist() == [1, 0, 0]
    assert seen.confidence == 1


def test_the_logits_stay_as_they_are() -> None:
    logits = np.array([3, 1], np.float32)
    predict("m", logits, 1.0, "top1")
    assert logits.tolist() == [3, 1]
