"""A daemon whose models run in the engine host, which is killed, hangs, cannot start again or gets new engines."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.doubles.interpreter import make_interpreter
from tests.system.command import jetsel
from tests.system.daemons import Connect, Peer, Start, drawn, encoded
from tests.system.hosts import host_of, hosts_of, interpreter_after
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
def test_a_host_that_cannot_start_again_is_told_of_in_status_and_the_rest_serves(
    start: Start, connect: Connect, tmp_path: Path
) -> None:
    python = interpreter_after(tmp_path, f"[ -e {tmp_path}/gone ] && exit 9")
    daemon = start(f'{CONFIG}[host]\ninterpreter = "{python}"\n')
    peer = connect(daemon)
    assert model(peer, "xs")["state"] == "ready"
    (tmp_path / "gone").touch()
    os.kill(host_of(daemon), signal.SIGKILL)
    until(lambda: "exit status 9" in str(model(peer, "xs")["reason"]))
    assert model(peer, "xs")["state"] == "unavailable"
    failure = peer.classify(PICTURE, model="xs")
    assert (failure["code"], failure["retry"]) == ("engine-died", True)
    assert peer.classify(PICTURE, model="s")["type"] == "answer"
    (tmp_path / "gone").unlink()
    until(lambda: model(peer, "xs")["state"] == "ready")
    assert peer.classify(PICTURE, model="xs")["type"] == "answer"


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
