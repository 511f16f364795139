"""Calibrations that were rolled back or fitted at the first start, and whether the daemon takes them up."""

import json
import shutil
from pathlib import Path

import msgspec
import pytest

from jetsel.artefact.calibration import ANSWERS, Calibration
from jetsel.artefact.coding import read
from jetsel.artefact.installed import install
from jetsel.zoo import STARTER
from tests.system.command import jetsel
from tests.system.daemons import Connect, Start
from tests.unit.calibrate.answered import answered
from tests.waiting import until


def calibration(model: str, temperature: float) -> Calibration:
    """One under which `model` answers, and divides its logits by `temperature`: its answers tell it from others."""
    shipped = read(STARTER / "calibration")
    return msgspec.structs.replace(
        shipped,
        default_policy=f"single:{model}",
        temperatures=dict.fromkeys(shipped.temperatures, temperature),
        because=f"{model} at {temperature}",
    )


@pytest.fixture
def owners(tmp_path: Path) -> Path:
    return tmp_path / "calibrations"


def test_the_daemon_answers_by_the_calibration_that_was_gone_back_to_unless_it_reads_another_folder_or_rejects_it(
    start: Start, connect: Connect, owners: Path, tmp_path: Path, jpeg: bytes
) -> None:
    daemon = start(f'[models]\ncalibrations = "{owners}"\n')
    peer = connect(daemon)
    alone = {}
    for model, temperature in (("xs", 0.5), ("s", 3.0)):
        install(calibration(model, temperature), owners, "starter")
        assert peer.ask({"type": "reload"})["changed"] == ["calibration of starter"]
        alone[model] = peer.classify(jpeg)["probability"]
    done = jetsel("calibration", "rollback", "--to", "1", "--config", daemon.config, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["reloaded"]
    reply = peer.classify(jpeg)
    assert (reply["model"], reply["probability"]) == ("xs", pytest.approx(alone["xs"], abs=1e-4))
    assert abs(peer.classify(jpeg, model="s")["probability"] - alone["s"]) > 0.01, "the temperatures went back, too"

    for model in ("xs", "s"):
        install(calibration(model, 2.0), tmp_path / "others", "starter")  # of the same numbers and date
    other = tmp_path / "other.toml"
    other.write_text(f'[models]\ncalibrations = "{tmp_path / "others"}"\n')
    rollback = ("calibration", "rollback", "--config", other, "--endpoint", daemon.endpoint)
    done = jetsel(*rollback)
    assert done.returncode == 0, done.stderr
    assert f"does not use number 1, of {calibration('xs', 1.0).created} in {tmp_path / 'others'}" in done.stdout
    daemon.config.write_text(daemon.config.read_text().replace("[models]", '[models]\nonly = ["huge"]'))
    done = jetsel(*rollback, "--to", "2")
    assert done.returncode == 1
    assert "now uses number 2, of " in done.stdout
    assert "the daemon was not reloaded" in done.stdout


def test_a_first_calibration_of_a_running_daemon_lets_deadlines_choose_models_that_have_not_run(
    start: Start, connect: Connect, owners: Path, tmp_path: Path, jpeg: bytes
) -> None:
    models = tmp_path / "models"
    shutil.copytree(STARTER, models, ignore=shutil.ignore_patterns("calibration"))
    daemon = start(f'[models]\nstarter = false\npaths = ["{models}"]\ncalibrations = "{owners}"\n')
    peer = connect(daemon)
    assert peer.classify(jpeg)["model"] == "xl", "the only one that has run"
    made = calibration("xl", 1.0)
    best = {"single:xs": {**made.figures["single:xs"], "top1": 0.999}}
    install(msgspec.structs.replace(made, figures=made.figures | best), owners, "starter")
    assert peer.ask({"type": "reload"})["changed"] == ["calibration of starter"]
    assert peer.classify(jpeg, deadline_ms=30_000)["model"] == "xs"


@pytest.mark.slow
def test_the_daemon_goes_on_with_its_own_times_and_a_second_start_does_nothing(
    start: Start, connect: Connect, tmp_path: Path
) -> None:
    models = tmp_path / "models"
    shutil.copytree(STARTER, models)
    shipped = read(models / "calibration")
    recording = answered(tuple(shipped.identities))
    (models / "calibration" / ANSWERS).write_bytes(recording.condense_answers(shipped.temperatures))
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
