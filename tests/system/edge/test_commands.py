"""`jetsel edge` beside a real edge, and what `jetsel simulate` makes of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import jetsel
from jetsel.base.config import parse
from jetsel.cli.app import app
from tests.system.command import jetsel as run_jetsel
from tests.system.daemons import Daemon, drawn, encoded
from tests.system.edge.test_daemon_with_edge import settings
from tests.system.gateway.gateways import launch, token_file

NO_SENSOR = '[power]\nsensor = "none"\n'


@pytest.fixture(scope="module")
def configuration(shared_daemon: Daemon, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    gateway = launch(shared_daemon.endpoint)
    path = tmp_path_factory.mktemp("edge") / "jetsel.toml"
    path.write_text(settings(gateway.url) + NO_SENSOR)
    yield path
    gateway.process.kill()
    gateway.process.communicate()


def run(*arguments: str) -> str:
    ended = CliRunner().invoke(app, list(arguments))
    assert ended.exit_code == 0, ended.output
    return ended.stdout


def labelled(daemon: Daemon, folder: Path, count: int) -> None:
    """Write images into folders named by what xl answers to them."""
    with jetsel.Client(daemon.endpoint) as client:
        for seed in range(count):
            content = encoded(drawn(seed, 300, 400))
            of_class = folder / client.classify(content, model="xl").wnid
            of_class.mkdir(parents=True, exist_ok=True)
            (of_class / f"{seed}.jpg").write_bytes(content)


@pytest.mark.slow
def test_a_trace_has_the_times_of_the_way_and_the_simulation_reads_it(
    configuration: Path, shared_daemon: Daemon, tmp_path: Path
) -> None:
    link, recording = tmp_path / "link.txt", tmp_path / "r.sqlite"
    labelled(shared_daemon, tmp_path / "photos", 3)
    photo = next((tmp_path / "photos").glob("*/*"))
    link.write_text(run("edge", "trace", str(photo), "--count", "8", "--every-ms", "0", "--config", str(configuration)))
    rows = [line.split() for line in link.read_text().splitlines()]
    assert all(0 < float(took_ms) <= 2000 for took_ms, _ in rows)
    assert all(int(sent) > 0 for _, sent in rows)
    whole = tmp_path / "whole.toml"
    whole.write_text(NO_SENSOR)
    run("evaluate", str(tmp_path / "photos"), "--recording", str(recording), "--config", str(whole))
    command = ("simulate", "--recording", str(recording), "--config", str(configuration))
    told = json.loads(run(*command, "--network", str(link), "--sla-ms", "100000", "--json"))
    assert [(row["network"], row["models"]) for row in told["rows"]] == [
        (str(link), "device alone"),
        (str(link), "with the edge server"),
    ]
    assert all(row["on_time"] == 1.0 for row in told["rows"])
    assert "deadline:mdinference" in run(*command, "--policy", "deadline:mdinference")
    for options, words in (
        (("--network", "normal:1"), "examples: university"),
        (("--policy", "deadline:mdinferenc"), "did you mean deadline:mdinference?"),
    ):
        ended = CliRunner().invoke(app, [*command, *options])
        assert ended.exit_code == 2
        assert words in " ".join(ended.output.split())


def test_accuracy_is_measured_of_whole_and_reduced_photographs_and_can_be_configured(
    configuration: Path, shared_daemon: Daemon, tmp_path: Path
) -> None:
    labelled(shared_daemon, tmp_path, 6)
    said = run("edge", "measure", str(tmp_path), "--px", "32", "--config", str(configuration))
    models = parse(said).edge.models
    assert list(models) == ["m", "l", "xl"]
    assert models["xl"].accuracy == 1.0, "the folders are called by its own answers"
    assert all(list(model.accuracy_at_px) == ["32"] for model in models.values())
    assert "of 6 images" in said


def test_a_model_that_the_edge_has_not_got_is_told_before_anything_is_printed(
    configuration: Path, tmp_path: Path
) -> None:
    photo, other = tmp_path / "n01443537" / "a.jpg", tmp_path / "jetsel.toml"
    photo.parent.mkdir()
    photo.write_bytes(encoded(drawn(1)))
    other.write_text(configuration.read_text().replace("starter.m", "starter.mm"))
    for command in (["trace", str(photo), "--model", "m"], ["measure", str(tmp_path)]):
        ended = CliRunner().invoke(app, ["edge", *command, "--config", str(other)])
        assert (ended.exit_code, ended.stdout) == (1, "")
        assert "set edge.models.m.remote" in ended.stderr


def test_an_edge_that_wants_a_token_says_what_to_configure(shared_daemon: Daemon, tmp_path: Path) -> None:
    gateway = launch(shared_daemon.endpoint, "--token-file", str(token_file(tmp_path, "a-token-that-nobody-sends")))
    path, photo = tmp_path / "jetsel.toml", tmp_path / "a.jpg"
    path.write_text(settings(gateway.url) + NO_SENSOR)
    photo.write_bytes(encoded(drawn(1)))
    try:
        ended = run_jetsel("edge", "trace", photo, "--config", path)
    finally:
        gateway.process.kill()
        gateway.process.communicate()
    assert ended.returncode == 1
    assert ended.stderr.count("401: set edge.token_file") == 1


def test_without_an_edge_it_says_what_to_configure(tmp_path: Path) -> None:
    path = tmp_path / "jetsel.toml"
    path.write_text(NO_SENSOR)
    ended = CliRunner().invoke(app, ["edge", "trace", str(path), "--config", str(path)])
    assert ended.exit_code == 2
    assert "edge.url: set the address" in ended.output
