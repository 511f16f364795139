"""Which models a calibration may serve, each difference named; and the models of the policy that answers now."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jetsel.base.config import Config, PolicySettings
from jetsel.base.errors import CalibrationError
from jetsel.site.calibration_in_use import check_fits
from jetsel.site.site import FamilyCalibrations
from jetsel.zoo import STARTER, scan
from tests.unit.policies.animals import animals


def served(labels_sha256: str, decode_px: int) -> Any:
    return SimpleNamespace(labels=SimpleNamespace(sha256=labels_sha256), decode_px=decode_px)


def test_every_difference_is_named_with_the_repair() -> None:
    with pytest.raises(CalibrationError) as raised:
        check_fits(animals(), served("b" * 64, 96), {"small": "1" * 64, "middle": "7" * 64})
    message = str(raised.value)
    assert "made for other models: other labels" in message
    assert "another version of the features" in message
    assert "model middle has changed" in message
    assert "model large is neither served here" in message
    assert "images decoded for 64 px, now for 96" in message
    assert "model small" not in message
    assert "Run `jetsel calibrate" in message


FAMILY = scan([STARTER]).families["starter"]


def in_use(folder: Path, default: str | None) -> frozenset[str]:
    config = Config(policy=PolicySettings(default=default))
    return FamilyCalibrations("starter", folder, config, FAMILY, True, {}).incumbent().models


def test_the_models_in_use_are_those_of_the_default_policy(tmp_path: Path) -> None:
    calibration = FamilyCalibrations("starter", tmp_path, Config(), FAMILY, True, {}).incumbent().calibration
    assert calibration is not None
    assert in_use(tmp_path, "single:m") == {"m"}
    shipped = in_use(tmp_path, None)
    assert shipped
    assert shipped <= calibration.identities.keys()
