"""A small calibration that the tests of the artefact share, in memory and saved."""

from pathlib import Path

import pytest

from jetsel.artefact.calibration import Calibration
from jetsel.artefact.coding import save
from tests.unit.policies.animals import animals


@pytest.fixture
def calibration() -> Calibration:
    """That of `animals`."""
    return animals()


@pytest.fixture
def saved(calibration: Calibration, tmp_path: Path) -> Path:
    """The directory that holds the calibration, alone in its parent."""
    save(calibration, tmp_path / "animals")
    return tmp_path / "animals"
