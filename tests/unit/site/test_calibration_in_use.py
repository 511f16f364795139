"""A calibration serves the models, labels, features and pixels that it was made for; every difference is named."""

import pytest

from jetsel.artefact.calibration import Calibration
from jetsel.base.errors import CalibrationError
from jetsel.site.calibration_in_use import check
from tests.unit.policies.animals import animals


@pytest.fixture
def calibration() -> Calibration:
    return animals()


def test_what_it_was_made_for_is_accepted_and_more_models_too(calibration: Calibration) -> None:
    check(calibration, "a" * 64, calibration.identities, "f" * 64, 64)
    check(calibration, "a" * 64, calibration.identities | {"extra": "9" * 64}, "f" * 64, 64)


def test_every_difference_is_named_with_the_repair(calibration: Calibration) -> None:
    with pytest.raises(CalibrationError) as raised:
        check(calibration, "b" * 64, {"small": "1" * 64, "middle": "7" * 64}, "e" * 64, 96)
    message = str(raised.value)
    assert "made for other models: other labels" in message
    assert "another version of the features" in message
    assert "model middle has changed" in message
    assert "model large is neither served here" in message
    assert "images decoded for 64 px, now for 96" in message
    assert "model small" not in message
    assert "Run `jetsel calibrate" in message
