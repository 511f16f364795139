"""The first start on a machine fits what came with the models to its times, beside the requests."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from jetsel.artefact.calibration import ANSWERS
from jetsel.artefact.coding import read
from jetsel.zoo import STARTER
from tests.system.daemons import Connect, Start
from tests.unit.calibrate.answered import answered
from tests.waiting import until


@pytest.mark.slow
def test_the_daemon_goes_on_with_its_own_times_and_a_second_start_does_nothing(
    start: Start, connect: Connect, tmp_path: Path
) -> None:
    models = tmp_path / "models"
    shutil.copytree(STARTER, models)
    shipped = read(models / "calibration")
    recording = answered(tuple(shipped.identities))
    (models / "calibration" / ANSWERS).write_bytes(recording.condensed(shipped.temperatures))
    config = f'[models]\nstarter = false\npaths = ["{models}"]\ncalibrations = "{tmp_path}/calibrations"\n'
    daemon = start(config)
    peer = connect(daemon)
    assert peer.status()["families"][0]["calibration"].startswith("shipped")
    until(lambda: peer.status()["families"][0]["calibration"].startswith("number 1"))
    until(lambda: "event=retimed" in daemon.log.read_text())
    assert daemon.stop() == 0
    again = start(config)
    assert connect(again).status()["families"][0]["calibration"].startswith("number 1")
    assert again.stop() == 0
    assert "retim" not in again.log.read_text()
