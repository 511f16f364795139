"""The models of what answers now, which a calibration always records to the end."""

from pathlib import Path

from jetsel.base.config import Config, PolicySettings
from jetsel.site.site import FamilyCalibrations
from jetsel.zoo import STARTER, scan

FAMILY = scan([STARTER]).families["starter"]


def in_use(folder: Path, default: str | None) -> frozenset[str]:
    config = Config(policy=PolicySettings(default=default))
    return FamilyCalibrations("starter", folder, config, FAMILY, True, {}).incumbent().models


def test_they_are_those_of_the_policy_that_answers_by_default(tmp_path: Path) -> None:
    calibration = FamilyCalibrations("starter", tmp_path, Config(), FAMILY, True, {}).incumbent().calibration
    assert calibration is not None
    assert in_use(tmp_path, "single:m") == {"m"}
    shipped = in_use(tmp_path, None)
    assert shipped
    assert shipped <= calibration.identities.keys()
