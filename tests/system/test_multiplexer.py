"""A multiplexer as an owner gets it: calibrated, served, and before an edge server."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from jetsel.policies.coding import save
from jetsel.policies.installed import current
from jetsel.policies.registry import CRITERIA
from jetsel.zoo import scan
from tests.system.command import jetsel
from tests.system.daemons import Connect, Start, drawn, encoded
from tests.system.gateway.gateways import launch
from tests.unit.daemon.families import SIDE_PX, calibration_of, put_family
from tests.unit.policies.animals import multiplexer
from tests.waiting import until

PICTURE = encoded(drawn())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Models s, m and l."""
    return put_family(tmp_path / "cats", "cats", "s", "m", "l")


def config(folder: Path, more: str = "") -> str:
    state = f'calibrations = "{folder.parent}/calibrations"\n'
    return f'[models]\nstarter = false\npaths = ["{folder}"]\ndefault_family = "cats"\n{state}{more}'


@pytest.mark.slow
def test_what_a_multiplexer_expects_to_be_wrong_here_is_sent_to_the_edge(
    start: Start, connect: Connect, folder: Path
) -> None:
    right = np.tile([False, False, True], (6, 1))  # so that nothing is worth keeping from an edge that has l
    best = {"mean_ms": 3.0, "mean_mj": None, "top1": 0.9, "runs": {"l": 1.0}}
    figures = {criterion: {"single:l": {criterion: 0.9, **best}} for criterion in CRITERIA}
    made = calibration_of(folder, "cats", right=dict.fromkeys(CRITERIA, right), figures=figures)
    part = multiplexer(np.full((6, 3), 0.5, np.float32), *CRITERIA, width=3 * SIDE_PX**2)
    save(replace(made, parts={**made.parts, "multiplexer": part}), folder / "calibration")
    there = start(config(folder), name="there")
    gateway = launch(there.endpoint)
    try:
        here = config(folder, 'only = ["s", "m"]\n')
        daemon = start(f'{here}[edge]\nurl = "{gateway.url}"\n[edge.models.l]\nremote = "cats.l"\n', name="here")
        peer = connect(daemon)
        until(lambda: peer.classify(PICTURE, policy="single:edge:l")["type"] == "answer")
        sent = peer.classify(PICTURE, policy="multiplexer-edge")
        assert [ran["model"] for ran in sent["ran"]] == ["s", "edge:l"]
        kept = peer.classify(PICTURE, policy="multiplexer-edge", on_device=True)
        assert kept["model"] in {"s", "m"}
        assert "may not leave the device" in kept["because"]
    finally:
        gateway.process.kill()
        gateway.process.communicate()
    failed = peer.classify(PICTURE, policy="multiplexer-edge")
    assert failed["model"] in {"s", "m"}


@pytest.mark.slow
def test_calibrate_fits_a_multiplexer_and_a_daemon_serves_it(
    start: Start, connect: Connect, folder: Path, tmp_path: Path
) -> None:
    wnids = scan([folder]).families["cats"].labels.wnids
    for number in range(60):
        place = tmp_path / "photos" / wnids[number % 3]
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{number}.jpg").write_bytes(encoded(drawn(number)))
    daemon = start(config(folder))
    options = ("--recording", tmp_path / "recording.sqlite", "--config", daemon.config)
    done = jetsel("calibrate", tmp_path / "photos", *options, "--policy", "multiplexer", "--json")
    assert done.returncode == 0, done.stderr
    assert (json.loads(done.stdout)["winner"], json.loads(done.stdout)["installed"]) == ("multiplexer", 1)
    entry = current(tmp_path / "calibrations", "cats")
    assert entry is not None
    made = entry.usable()
    assert made.figures["top1"]["multiplexer"]["runs"].keys() == {"s", "m", "l"}
    cheapest = next(iter(made.identities))  # as measured: models this small take about the same time
    answer = connect(daemon).classify(PICTURE)
    assert (answer["policy"], answer["ran"][0]["model"]) == ("multiplexer", cheapest)
    judged = jetsel("evaluate", tmp_path / "photos", *options, "--policy", "multiplexer", "--json")
    assert judged.returncode == 0, judged.stderr
    assert json.loads(judged.stdout)["policies"].keys() == {"multiplexer"}
