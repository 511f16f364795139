"""A daemon that serves by engines of a simulated TensorRT: built, and built again."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.doubles.interpreter import make_interpreter
from tests.system.command import jetsel
from tests.system.daemons import Connect, Peer, Start, drawn, encoded
from tests.system.hosts import hosts_of
from tests.waiting import until


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_interpreter(tmp_path_factory.mktemp("interpreter"), "8.2")


def config(python: Path, folder: Path) -> str:
    models = '[models]\nonly = ["xs", "s"]\nbackend = "tensorrt"\n'
    host = f'[host]\ninterpreter = "{python}"\nengines = "{folder / "engines"}"\n'
    return models + host


def models(peer: Peer) -> dict[str, dict[str, Any]]:
    return {m["name"]: m for family in peer.status()["families"] for m in family["models"]}


@pytest.mark.slow
def test_an_engine_that_was_built_again_is_taken_up_by_a_reload(
    start: Start, connect: Connect, python: Path, tmp_path: Path
) -> None:
    (file := tmp_path / "build.toml").write_text(config(python, tmp_path))
    assert jetsel("models", "build", "--config", file).returncode == 0
    daemon = start(config(python, tmp_path))
    peer = connect(daemon)
    assert peer.classify(encoded(drawn()), model="xs")["type"] == "answer"
    assert jetsel("models", "build", "--config", daemon.config, "--force", "xs").returncode == 0
    assert peer.ask({"type": "reload"})["type"] == "reloaded"
    assert peer.classify(encoded(drawn()), model="xs")["type"] == "answer"
    (host,) = hosts_of(daemon)
    os.kill(host, signal.SIGKILL)
    until(lambda: hosts_of(daemon) not in ([], [host]))
    until(lambda: {m["state"] for m in models(peer).values()} == {"ready"})
