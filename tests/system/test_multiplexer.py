"""A family with a multiplexer: recorded, calibrated and served, and what a daemon does without it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from jetsel.policies.calibration import MultiplexerFacts
from jetsel.policies.cascade import Rung
from jetsel.policies.catalogue import CRITERIA
from jetsel.policies.coding import save
from jetsel.policies.installed import current
from jetsel.policies.kind import Part
from jetsel.policies.multiplexer import Priced
from jetsel.policies.multiplexer_cascade import Entered
from jetsel.zoo import scan
from tests.system.command import jetsel
from tests.system.daemons import Connect, Start, drawn, encoded
from tests.system.gateway.gateways import launch
from tests.unit.daemon.families import calibration_of, put_family, put_multiplexer
from tests.waiting import until

PICTURE = encoded(drawn())
RUNGS = (Rung("s", 0.999), Rung("l", 0.0))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Models s, m and l, and a multiplexer that is not equally sure of all photographs."""
    made = put_family(tmp_path / "cats", "cats", "s", "m", "l")
    put_multiplexer(made, "cats", np.random.default_rng(1).normal(size=(48, 3)).astype(np.float32) / 4)
    return made


def config(folder: Path, more: str = "") -> str:
    state = f'calibrations = "{folder.parent}/calibrations"\n'
    return f'[models]\nstarter = false\npaths = ["{folder}"]\ndefault_family = "cats"\n{state}{more}'


@pytest.fixture
def calibrated(folder: Path) -> Path:
    """The same with a calibration whose policies ask the multiplexer."""
    mux = scan([folder]).families["cats"].multiplexer
    assert mux is not None
    facts = MultiplexerFacts(
        name="mux", identity=mux.manifest.identity, models=("s", "m", "l"), loss="right", cost_ms=0.5
    )
    right = np.tile([False, False, True], (6, 1))  # so that nothing is worth keeping from an edge that has l
    changes = {"multiplexer": facts, "default_policy": dict.fromkeys(CRITERIA, "multiplexer")}
    figures = {criterion: {"single:l": {criterion: 0.9, "mean_ms": 3.0, "top1": 0.9}} for criterion in CRITERIA}
    made = calibration_of(folder, "cats", right=dict.fromkeys(CRITERIA, right), figures=figures, **changes)
    chances = np.full((6, 3), 0.5, np.float32)
    parts = {
        "multiplexer-edge": Part(dict.fromkeys(CRITERIA, facts.models), {"chances": chances}),
        "multiplexer": Part(dict.fromkeys(CRITERIA, Priced(0.0))),
        "multiplexer-cascade": Part(dict.fromkeys(CRITERIA, Entered(RUNGS, 0.0))),
    }
    save(replace(made, parts={**made.parts, **parts}), folder / "calibration")
    return folder


def test_a_daemon_answers_by_what_its_multiplexer_says(
    start: Start, connect: Connect, calibrated: Path, tmp_path: Path
) -> None:
    daemon = start(config(calibrated))
    peer = connect(daemon)
    answer = peer.classify(PICTURE, explain=True)
    assert answer["policy"] == "multiplexer"
    chose, ran = answer["ran"]
    assert (chose["model"], chose["chooses"]) == ("mux", True)
    assert (ran["model"], ran["chooses"]) == (answer["model"], False)
    assert f"mux gives {answer['model']} a chance of" in answer["because"]
    assert [step.split(":")[0] for step in answer["explanation"]["steps"][:2]] == ["mux", answer["model"]]
    climbed = peer.classify(PICTURE, policy="multiplexer-cascade")
    assert climbed["ran"][0]["model"] == "mux"
    assert climbed["because"].startswith("entered at ")
    (tmp_path / "picture.jpg").write_bytes(PICTURE)
    told = jetsel("classify", "--explain", "--endpoint", daemon.endpoint, tmp_path / "picture.jpg").stdout
    assert "mux" in told
    assert answer["model"] in told
    (family,) = peer.status()["families"]
    assert [model["name"] for model in family["models"]] == ["s", "m", "l"]
    assert (family["multiplexer"]["state"], family["multiplexer"]["runs"]) == ("ready", 3)
    assert family["escalated"] <= 1, "the multiplexer is no model that answers"
    assert "mux (chooses)" in jetsel("status", "--endpoint", daemon.endpoint).stdout


def test_a_multiplexer_that_is_damaged_runs_on_and_after_a_restart_the_policies_do_without(
    start: Start, connect: Connect, calibrated: Path
) -> None:
    daemon = start(config(calibrated))
    (calibrated / "mux.onnx").write_bytes(b"damaged")
    changed = connect(daemon).ask({"type": "reload"})["changed"]
    assert any("weights of mux are damaged" in line for line in changed)
    assert connect(daemon).classify(PICTURE)["ran"][0]["model"] == "mux"
    daemon.stop()
    peer = connect(start(config(calibrated)))
    answer = peer.classify(PICTURE)
    assert (answer["policy"], answer["model"]) == ("multiplexer", "l")
    assert "mux is unavailable" in answer["because"]
    climbed = peer.classify(PICTURE, policy="multiplexer-cascade")
    assert [ran["model"] for ran in climbed["ran"]] == ["s", "l"]
    (family,) = peer.status()["families"]
    assert family["multiplexer"]["state"] == "unavailable"
    assert peer.classify(PICTURE, model="mux")["code"] == "unknown-model"


def test_what_a_multiplexer_expects_to_be_wrong_here_is_sent_to_the_edge(
    start: Start, connect: Connect, calibrated: Path
) -> None:
    there = start(config(calibrated), name="there")
    gateway = launch(there.endpoint)
    try:
        here = config(calibrated, 'only = ["s", "m", "mux"]\n')
        daemon = start(f'{here}[edge]\nurl = "{gateway.url}"\n[edge.models.l]\nremote = "cats.l"\n', name="here")
        peer = connect(daemon)
        until(lambda: peer.classify(PICTURE, policy="single:edge:l")["type"] == "answer")
        sent = peer.classify(PICTURE, policy="multiplexer-edge")
        assert [ran["model"] for ran in sent["ran"]] == ["mux", "edge:l"]
        kept = peer.classify(PICTURE, policy="multiplexer-edge", on_device=True)
        assert kept["model"] in {"s", "m"}
        assert "may not leave the device" in kept["because"]
    finally:
        gateway.process.kill()
        gateway.process.communicate()
    failed = peer.classify(PICTURE, policy="multiplexer-edge")
    assert failed["model"] in {"s", "m"}
    assert "edge:l did not answer" in failed["because"]


@pytest.mark.slow
def test_calibrate_fits_its_policies_and_a_daemon_serves_them(
    start: Start, connect: Connect, folder: Path, tmp_path: Path
) -> None:
    wnids = scan([folder]).families["cats"].labels.wnids
    for number in range(60):
        place = tmp_path / "photos" / wnids[number % 3]
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{number}.jpg").write_bytes(encoded(drawn(number)))
    daemon = start(config(folder))
    options = ("--recording", tmp_path / "recording.sqlite", "--config", daemon.config)
    done = jetsel("calibrate", tmp_path / "photos", *options, "--policy", "multiplexer-cascade", "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert (said["winner"], said["installed"]) == ("multiplexer-cascade", 1)
    entry = current(tmp_path / "calibrations", "cats")
    assert entry is not None
    made = entry.usable()
    assert made.multiplexer is not None
    assert (made.multiplexer.name, made.multiplexer.cost_ms > 0) == ("mux", True)
    assert {"multiplexer", "multiplexer-ensemble", "multiplexer-cascade", "multiplexer-edge"} <= made.parts.keys()
    assert made.figures["top1"]["multiplexer"]["runs"].keys() == {"s", "m", "l"}
    answer = connect(daemon).classify(PICTURE)
    assert (answer["policy"], answer["ran"][0]["model"]) == ("multiplexer-cascade", "mux")
    judged = jetsel("evaluate", tmp_path / "photos", *options, "--policy", "multiplexer", "--json")
    assert judged.returncode == 0, judged.stderr
    assert json.loads(judged.stdout)["policies"].keys() == {"multiplexer"}
    without = (tmp_path / "jetsel.toml").read_text().replace("[models]\n", '[models]\nonly = ["s", "m", "mux"]\n')
    (tmp_path / "other.toml").write_text(without)
    options = ("--recording", tmp_path / "other.sqlite", "--config", tmp_path / "other.toml")
    done = jetsel("calibrate", tmp_path / "photos", *options)
    assert "mux is offered: [models] only leaves out l" in " ".join(done.stderr.split())
