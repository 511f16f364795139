"""A daemon whose models run in the engine host, which is killed, hangs, or cannot start again."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.system.daemons import Connect, Daemon, Peer, Start, drawn, encoded
from tests.system.hosts import host_of, interpreter_after
from tests.waiting import LIMIT_S, until

CONFIG = """
[models]
only = ["xs", "s"]
backends = { xs = "onnxruntime-hosted" }
[policies.both]
models = ["xs", "s"]
thresholds = [0.99]
"""


def hang_under_a_request(daemon: Daemon, peer: Peer, other: Peer, **fields: Any) -> int:
    """Stop the host, have the peer ask its model, and return the host once the daemon holds that request."""
    host = host_of(daemon)
    os.kill(host, signal.SIGSTOP)
    peer.send({"type": "classify", "model": "xs", **fields}, PICTURES[0])
    until(lambda: other.status()["in_queue"] == 1)
    return host


def model(peer: Peer, name: str) -> dict[str, Any]:
    models = {m["name"]: m for family in peer.status()["families"] for m in family["models"]}
    found: dict[str, Any] = models[name]
    return found


PICTURES = [encoded(drawn(seed)) for seed in range(4)]


@pytest.fixture
def daemon(start: Start) -> Daemon:
    return start(CONFIG)


def test_a_request_in_flight_at_a_death_is_answered_by_the_next_host(daemon: Daemon, connect: Connect) -> None:
    peer, other = connect(daemon), connect(daemon)
    host = hang_under_a_request(daemon, peer, other)
    os.kill(host, signal.SIGKILL)
    reply = peer.receive()
    assert reply["type"] == "answer"
    assert [run["model"] for run in reply["ran"]] == ["xs"]
    assert host_of(daemon) != host
    (told,) = other.status()["hosts"]
    assert (told["state"], told["pid"], told["restarts"]) == ("running", host_of(daemon), 1)
    assert "SIGKILL" in told["last_end"]
    assert 0 <= told["last_end_ago_s"] < LIMIT_S


@pytest.mark.slow
def test_a_deadline_that_a_restart_would_overrun_is_refused_without_waiting_for_it(
    start: Start, connect: Connect, tmp_path: Path
) -> None:
    python = interpreter_after(tmp_path, f"[ -e {tmp_path}/slow ] && sleep 40")
    daemon = start(f'{CONFIG}[host]\ninterpreter = "{python}"\n')
    peer, other = connect(daemon), connect(daemon)
    (tmp_path / "slow").touch()
    host = hang_under_a_request(daemon, peer, other, deadline_ms=1000)
    os.kill(host, signal.SIGKILL)
    reply = peer.receive()
    assert (reply["code"], reply["retry"]) in {("engine-died", True), ("deadline", False)}


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
    failure = peer.classify(PICTURES[0], model="xs")
    assert (failure["code"], failure["retry"]) == ("engine-died", True)
    assert peer.classify(PICTURES[0], model="s")["type"] == "answer"
    assert peer.classify(PICTURES[0], policy="both")["type"] == "answer"
    (tmp_path / "gone").unlink()
    until(lambda: model(peer, "xs")["state"] == "ready")
    assert peer.classify(PICTURES[0], model="xs")["type"] == "answer"
