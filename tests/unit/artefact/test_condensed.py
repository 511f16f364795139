"""What ships of a recording stands for the whole of it: who was right, how sure, and the thresholds that follow."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from jetsel.artefact.calibration import ANSWERS
from jetsel.artefact.condensed import read_condensed
from jetsel.base.errors import CalibrationError
from jetsel.calibrate.fit.assemble import fit_temperatures
from jetsel.calibrate.record.recording import Recording
from jetsel.features import NAMES
from jetsel.policies.registry import CRITERIA

MODELS = ("small", "large")
PHOTOGRAPHS, CLASSES = 300, 400


@pytest.fixture(scope="module")
def whole() -> Recording:
    draw = np.random.default_rng(5)
    classes = draw.integers(0, CLASSES, PHOTOGRAPHS)
    logits = draw.normal(0, 1.5, (2, PHOTOGRAPHS, CLASSES)).astype(np.float32)
    logits[:, np.arange(PHOTOGRAPHS), classes] += np.array([[4.0], [6.0]], np.float32)
    features = draw.random((PHOTOGRAPHS, len(NAMES)), dtype=np.float32)
    return Recording(MODELS, logits, classes, features, {"small": 1.0, "large": 5.0})


def test_confidences_and_who_is_right_are_those_of_the_whole(whole: Recording, tmp_path: Path) -> None:
    temperatures = fit_temperatures(whole)
    (tmp_path / ANSWERS).write_bytes(whole.condensed(temperatures))
    assert (tmp_path / ANSWERS).stat().st_size < whole.logits.nbytes / 5
    found = Recording.of_answers(read_condensed(tmp_path, {"small": 2.0, "large": 3.0}))
    assert (found.models, found.costs_ms, found.is_scaled) == (MODELS, {"small": 2.0, "large": 3.0}, True)
    assert fit_temperatures(found) == {"small": 1.0, "large": 1.0}
    assert np.array_equal(found.features, whole.features)
    for criterion in CRITERIA:
        assert (found.right(criterion) != whole.right(criterion)).mean() < 0.01
        sure = found.confidences(criterion, {"small": 1.0, "large": 1.0})
        assert sure == pytest.approx(whole.confidences(criterion, temperatures), abs=0.02)
    (alone,) = read_condensed(tmp_path, {"large": 3.0}).logits
    assert np.array_equal(alone, found.logits[1])


def test_what_is_missing_or_damaged_is_said(whole: Recording, tmp_path: Path) -> None:
    with pytest.raises(CalibrationError, match=r"answers.npz: cannot be read: .*; install jetsel again"):
        read_condensed(tmp_path, {"small": 1.0})
    (tmp_path / ANSWERS).write_bytes(whole.condensed(fit_temperatures(whole))[:-9])
    with pytest.raises(CalibrationError, match="install jetsel again"):
        read_condensed(tmp_path, {"small": 1.0})
