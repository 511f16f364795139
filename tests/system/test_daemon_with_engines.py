"""A daemon that serves by engines of a simulated TensorRT: built at its start, built again, and of another version."""

from __future__ import annotations

import json
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


def config(python: Path, folder: Path, *, at_start: bool = True) -> str:
    models = '[models]\nonly = ["xs", "s"]\nbackend = "tensorrt"\n'
    host = f'[host]\ninterpreter = "{python}"\nengines = "{folder / "engines"}"\n'
    return models + host + f"build_at_start = {str(at_start).lower()}\n"


def connected(connect: Connect, path: Path) -> Peer:
    until(path.exists)
    return connect(f"ipc://{path}")


def models(peer: Peer) -> dict[str, dict[str, Any]]:
    return {m["name"]: m for family in peer.status()["families"] for m in family["models"]}


def test_while_it_builds_it_says_how_far_that_is_and_then_it_serves(
    start: Start, connect: Connect, python: Path, tmp_path: Path
) -> None:
    board = {"build_ms": 1000}
    daemon = start(config(python, tmp_path), ready=False, env={"JETSEL_DOUBLE": json.dumps(board)})
    peer = connected(connect, daemon.path)
    said: list[str | None] = []

    def is_ready() -> bool:
        reply = peer.status()
        if reply["progress"] not in said:
            said.append(reply["progress"])
        return bool(reply["state"] == "ready")

    until(lambda: peer.status()["progress"] == "building 1 of 2")
    early = peer.classify(encoded(drawn()), model="xs")
    assert (early["code"], early["retry"]) == ("loading", True)
    assert "building" in early["message"]
    until(is_ready)
    assert "building 2 of 2" in said
    answer = peer.classify(encoded(drawn()), model="xs")
    assert answer["type"] == "answer"
    assert answer["ran"][0]["device_ms"] is not None


@pytest.mark.slow
def test_an_engine_that_was_built_again_is_taken_up_by_a_reload(
    start: Start, connect: Connect, python: Path, tmp_path: Path
) -> None:
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
