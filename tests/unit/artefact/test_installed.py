"""The owner's calibrations: what is in use is always whole, and the way back leads to what was in use before."""

import shutil
from pathlib import Path

import msgspec
import pytest

from jetsel.artefact.calibration import Calibration
from jetsel.artefact.installed import Installed, current, history, install, rollback
from jetsel.base.errors import CalibrationError


def put(calibration: Calibration, folder: Path, created: str) -> Installed:
    return install(msgspec.structs.replace(calibration, created=created), folder, "animals")


def test_one_that_is_gone_has_a_reason_is_listed_and_gives_its_number_to_no_other(
    calibration: Calibration, tmp_path: Path
) -> None:
    for created in ("April", "May"):
        put(calibration, tmp_path, created)
    shutil.rmtree(tmp_path / "animals" / "2")
    gone = current(tmp_path, "animals")
    assert gone is not None
    assert gone.calibration is None
    assert "No such file" in str(gone.reason)
    with pytest.raises(CalibrationError, match="No such file"):
        gone.usable_calibration()
    assert [one.number for one in history(tmp_path, "animals")] == [2, 1], "the one in use is listed, gone or not"
    assert put(calibration, tmp_path, "June").number == 3, "no number is ever given twice"


@pytest.mark.parametrize("family", ["..", "a/b", "", ".hidden", "Animals"])
def test_no_name_of_a_family_leads_out_of_the_folder(calibration: Calibration, tmp_path: Path, family: str) -> None:
    with pytest.raises(CalibrationError, match="is not a valid family name"):
        install(msgspec.structs.replace(calibration, family=family or "x"), tmp_path, family)
    assert list(tmp_path.iterdir()) == []


def test_a_calibration_of_another_family_is_refused(calibration: Calibration, tmp_path: Path) -> None:
    with pytest.raises(CalibrationError, match="of family animals, not plants: calibrate plants"):
        install(calibration, tmp_path, "plants")
    assert list(tmp_path.iterdir()) == []


def test_a_number_that_is_not_there_is_told_with_those_that_are(calibration: Calibration, tmp_path: Path) -> None:
    put(calibration, tmp_path, "May")
    with pytest.raises(CalibrationError, match="no calibration number 7: there are 0, 1"):
        rollback(tmp_path, "animals", 7, {})
