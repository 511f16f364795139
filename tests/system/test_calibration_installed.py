"""Calibrations rolled back by the command, and the daemon that takes them up, or does not."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import msgspec
import pytest

from jetsel.artefact.calibration import Calibration
from jetsel.artefact.coding import read
from jetsel.artefact.installed import install
from jetsel.zoo import STARTER
from tests.system.command import jetsel
from tests.system.daemons import Connect, Start


def calibration(model: str, temperature: float) -> Calibration:
    """One under which `model` answers, and divides its logits by `temperature`: its answers tell it from others."""
    shipped = read(STARTER / "calibration")
    return msgspec.structs.replace(
        shipped,
        default_policy=dict.fromkeys(shipped.default_policy, f"single:{model}"),
        temperatures=dict.fromkeys(shipped.temperatures, temperature),
        because=f"{model} at {temperature}",
    )


@pytest.fixture
def owners(tmp_path: Path) -> Path:
    return tmp_path / "calibrations"


def test_the_daemon_answers_by_the_calibration_that_was_gone_back_to(
    start: Start, connect: Connect, owners: Path, jpeg: bytes
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


def test_a_first_calibration_of_a_running_daemon_lets_deadlines_choose_models_that_have_not_run(
    start: Start, connect: Connect, owners: Path, tmp_path: Path, jpeg: bytes
) -> None:
    models = tmp_path / "models"
    shutil.copytree(STARTER, models, ignore=shutil.ignore_patterns("calibration"))
    daemon = start(f'[models]\nstarter = false\npaths = ["{models}"]\ncalibrations = "{owners}"\n')
    peer = connect(daemon)
    assert peer.classify(jpeg)["model"] == "xl", "the only one that has run"
    made = calibration("xl", 1.0)
    best = {"single:xs": {**made.figures["top1"]["single:xs"], "top1": 0.999}}
    install(msgspec.structs.replace(made, figures={"top1": made.figures["top1"] | best}), owners, "starter")
    assert peer.ask({"type": "reload"})["changed"] == ["calibration of starter"]
    assert peer.classify(jpeg, deadline_ms=30_000)["model"] == "xs"


def test_a_daemon_that_reads_another_folder_or_does_not_reload_is_noticed_and_the_way_back_is_taken(
    start: Start, owners: Path, tmp_path: Path
) -> None:
    daemon = start()
    for model in ("xs", "s"):
        install(calibration(model, 1.0), owners, "starter")
    other = tmp_path / "other.toml"
    other.write_text(f'[models]\ncalibrations = "{owners}"\n')
    rollback = ("calibration", "rollback", "--config", other, "--endpoint", daemon.endpoint)
    done = jetsel(*rollback)
    assert done.returncode == 0, done.stderr
    assert "with this calibration: shipped with the models" in done.stdout
    assert f"does not use number 1, of {calibration('xs', 1.0).created} in {owners}" in done.stdout
    daemon.config.write_text(daemon.config.read_text() + '[models]\nonly = ["huge"]\n')
    done = jetsel(*rollback, "--to", "2")
    assert done.returncode == 1
    assert "now uses number 2, of " in done.stdout
    assert "the daemon was not reloaded" in done.stdout


def test_the_same_number_and_date_in_another_folder_is_not_taken_for_what_is_served(
    start: Start, owners: Path, tmp_path: Path
) -> None:
    daemon = start(f'[models]\ncalibrations = "{owners}"\n')
    install(calibration("xs", 1.0), owners, "starter")
    for model in ("s", "xs"):
        install(calibration(model, 2.0), tmp_path / "others", "starter")
    other = tmp_path / "other.toml"
    other.write_text(f'[models]\ncalibrations = "{tmp_path / "others"}"\n')
    done = jetsel("calibration", "rollback", "--config", other, "--endpoint", daemon.endpoint)
    assert done.returncode == 0, done.stderr
    assert "The daemon does not use number 1, of " in done.stdout
