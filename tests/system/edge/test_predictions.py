"""The times of a real way to an edge server, and what the papers' simulation makes of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import jetsel
from calibration.papers.mdinference.predict import POLICIES, predicted
from calibration.papers.mdinference.trace import traced
from jetsel.cli.app import app
from tests.system.daemons import Daemon, drawn, encoded
from tests.system.edge.test_daemon_with_edge import settings
from tests.system.gateway.gateways import opened

NO_SENSOR = '[power]\nsensor = "none"\n'


def labelled(daemon: Daemon, folder: Path, count: int) -> None:
    """Write images into folders named by what xl answers to them."""
    with jetsel.Client(daemon.endpoint) as client:
        for seed in range(count):
            content = encoded(drawn(seed, 300, 400))
            of_class = folder / client.classify(content, model="xl").wnid
            of_class.mkdir(parents=True, exist_ok=True)
            (of_class / f"{seed}.jpg").write_bytes(content)


@pytest.mark.slow
def test_the_times_of_the_way_to_an_edge_server_predict_what_it_gives(shared_daemon: Daemon, tmp_path: Path) -> None:
    configuration, whole = tmp_path / "jetsel.toml", tmp_path / "whole.toml"
    link, recording = tmp_path / "link.txt", tmp_path / "r.sqlite"
    labelled(shared_daemon, tmp_path / "photos", 3)
    photo = next((tmp_path / "photos").glob("*/*"))
    with opened(shared_daemon.endpoint) as gateway:
        configuration.write_text(settings(gateway.url) + NO_SENSOR)
        times = list(traced(photo, configuration, 8, 0.0))
    assert all(0 < took_ms <= 2000 for took_ms, _ in times)
    assert [sent for _, sent in times] == [len(photo.read_bytes())] * 8, "it is decoded too small to be reduced"
    link.write_text("".join(f"{took_ms} {sent}\n" for took_ms, sent in times))
    whole.write_text(NO_SENSOR)
    command = ["evaluate", str(tmp_path / "photos"), "--recording", str(recording), "--config", str(whole)]
    assert CliRunner().invoke(app, command).exit_code == 0
    rows = predicted(recording, configuration, [str(link)], [100_000.0], POLICIES)
    assert {(row["policy"], row["models"]) for row in rows} == {
        (policy, models) for policy in POLICIES for models in ("device alone", "with the edge server")
    }
    assert all(row["on_time"] == 1.0 for row in rows)
