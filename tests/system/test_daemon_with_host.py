"""A daemon whose models run in the engine host, which is killed, hangs, cannot start again or gets new engines."""

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

CONFIG = """
[models]
only = ["xs", "s"]
backends = { xs = "onnxruntime-hosted" }
"""
PICTURE = encoded(drawn())


def model(peer: Peer, name: str) -> dict[str, Any]:
    models = {m["name"]: m for family in peer.status()["families"] for m in family["models"]}
    found: dict[str, Any] = models[name]
    return found


@pytest.mark.slow
def test_an_engine_that_was_built_again_is_taken_up_by_a_reload(start: Start, connect: Connect, tmp_path: Path) -> None:
    models = '[models]\nonly = ["xs", "s"]\nbackend = "tensorrt"\n'
    interpreter = make_interpreter(tmp_path / "interpreter", "8.2")
    config = f'{models}[host]\ninterpreter = "{interpreter}"\nengines = "{tmp_path / "engines"}"\n'
    (file := tmp_path / "build.toml").write_text(config)
    assert jetsel("models", "build", "--config", file).returncode == 0
    daemon = start(config)
    peer = connect(daemon)
    assert peer.classify(encoded(drawn()), model="xs")["type"] == "answer"
    assert jetsel("models", "build", "--config", daemon.config, "--force", "xs").returncode == 0
    assert peer.ask({"type": "reload"})["type"] == "reloaded"
    assert peer.classify(encoded(drawn()), model="xs")["type"] == "answer"
    (host,) = hosts_of(daemon)
    os.kill(host, signal.SIGKILL)
    until(lambda: hosts_of(daemon) not in ([], [host]))
    until(lambda: {model["state"] for model in peer.status()["families"][0]["models"]} == {"ready"})
