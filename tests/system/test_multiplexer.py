"""A multiplexer as an owner gets it: fitted on request, and served."""

import json
from pathlib import Path

import pytest

from jetsel.artefact.installed import current
from jetsel.zoo import scan
from tests.system.command import jetsel
from tests.system.daemons import Connect, Start, drawn, encoded
from tests.unit.daemon.families import put_family

PICTURE = encoded(drawn())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Models s, m and l."""
    return put_family(tmp_path / "cats", "cats", "s", "m", "l")


def config(folder: Path, more: str = "") -> str:
    state = f'calibrations = "{folder.parent}/calibrations"\n'
    return f'[models]\nstarter = false\npaths = ["{folder}"]\ndefault_family = "cats"\n{state}{more}'


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
    done = jetsel(
        "calibrate", tmp_path / "photos", *options, "--policy", "multiplexer", "--with", "multiplexer", "--json"
    )
    assert done.returncode == 0, done.stderr
    assert (json.loads(done.stdout)["calibration"]["default_policy"], json.loads(done.stdout)["installed"]) == (
        "multiplexer",
        1,
    )
    entry = current(tmp_path / "calibrations", "cats")
    made = entry.usable()
    assert made.figures["multiplexer"]["runs"].keys() == {"s", "m", "l"}
    cheapest = next(iter(made.identities))  # as measured: models this small take about the same time
    answer = connect(daemon).classify(PICTURE)
    assert (answer["policy"], answer["ran"][0]["model"]) == ("multiplexer", cheapest)
    judged = jetsel("evaluate", tmp_path / "photos", *options, "--policy", "multiplexer", "--json")
    assert judged.returncode == 0, judged.stderr
    assert json.loads(judged.stdout)["policies"].keys() == {"multiplexer"}
