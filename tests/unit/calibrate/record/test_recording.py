"""What a recording says: who was right, how sure, and the same predictions that the driver makes."""

import numpy as np
import pytest

from jetsel.calibrate.record.recording import Recording
from jetsel.runtime.model_queue import predict
from tests.unit.calibrate.recorded import drawn

TEMPERATURES = {"s": 0.7, "m": 1.0, "l": 2.5}


def recording(logits: list[list[list[float]]], classes: list[int]) -> Recording:
    stacked = np.array(logits, np.float32)
    models = ("s", "m", "l")[: len(stacked)]
    return Recording(
        models, stacked, np.array(classes), np.zeros((len(classes), 1), np.float32), dict.fromkeys(models, 1.0)
    )


def test_right_by_hand() -> None:
    found = recording(
        [
            [[9, 1, 2, 3, 4, 5], [9, 1, 2, 3, 4, 5], [9, 1, 2, 3, 4, 5]],
            [[0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 1], [5, 4, 3, 2, 1, 0]],
        ],
        [0, 1, 5],
    )
    assert found.right.tolist() == [[True, False], [False, False], [False, False]]
    assert found.is_among_best(5).tolist() == [[True, True], [False, True], [True, False]]


def test_of_equal_logits_the_lower_class_stands_first_as_in_answers() -> None:
    found = recording([[[1, 1, 0]] * 3 + [[2, 2, 2]]], [0, 1, 2, 2])
    assert found.right[:, 0].tolist() == [True, False, False, False]
    six = recording([[[1] * 6, [1] * 6]], [4, 5])
    assert six.is_among_best(5)[:, 0].tolist() == [True, False]


def test_confidences_are_the_driver_s() -> None:
    found = drawn(2)
    table = found.confidences(TEMPERATURES)
    assert table.shape == (30, 3)
    for i in range(30):
        for column, model in enumerate(found.models):
            said = predict(model, found.logits[column, i], TEMPERATURES[model])
            assert table[i, column] == pytest.approx(said.confidence, abs=1e-6)
            again = found.prediction(model, i, TEMPERATURES[model])
            assert (again.model, again.confidence) == (model, said.confidence)
            assert np.array_equal(again.probabilities, said.probabilities)
