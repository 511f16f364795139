"""What a service manager hears of a daemon's life: loading, ready, reloading, why not, stopping."""

from __future__ import annotations

import os
import signal
import time

from tests.system.daemons import Connect, Start
from tests.system.endless import DARK
from tests.system.manager import Manager


def test_ready_is_said_when_the_models_are_there_and_what_is_loaded_before(
    start: Start, connect: Connect, manager: Manager
) -> None:
    daemon = start(ready=False, env=manager.environment)
    word = manager.wait_for(READY="1")
    assert word["STATUS"] == "ready"
    assert connect(daemon).status()["state"] == "ready"
    before = manager.heard[:-1]
    assert [word["STATUS"] for word in before] == [f"loading {number} of 5" for number in range(1, 6)]
    assert all(int(word["EXTEND_TIMEOUT_USEC"]) >= 60e6 for word in before)
    assert daemon.stop() == 0
    word = manager.wait_for(STOPPING="1")
    assert word["STATUS"].startswith("stopping")
    assert int(word["EXTEND_TIMEOUT_USEC"]) > 10e6, "the drain and more"


def test_a_reload_is_over_for_the_service_manager_before_it_is_answered(
    start: Start, connect: Connect, manager: Manager
) -> None:
    daemon = start('[policy]\ndefault = "single:xs"\n', env=manager.environment)
    peer = connect(daemon)
    manager.wait_for(READY="1")
    assert peer.ask({"type": "reload"})["type"] == "reloaded"
    words = manager.hear_all()
    assert words[0]["RELOADING"] == "1"
    assert int(words[0]["MONOTONIC_USEC"]) <= time.monotonic_ns() // 1000
    assert words[-1] == {"READY": "1", "STATUS": "ready"}
    daemon.config.write_text(daemon.config.read_text().replace("single:xs", "single:giant"))
    assert peer.ask({"type": "reload"})["code"] == "reload-failed"
    words = manager.hear_all()
    assert words[0]["RELOADING"] == "1"
    assert words[-1]["READY"] == "1", "it serves what it served"
    assert "the last reload was rejected" in words[-1]["STATUS"]
    assert "giant" in words[-1]["STATUS"]
    daemon.config.write_text(daemon.config.read_text().replace("single:giant", "single:m"))
    os.kill(daemon.process.pid, signal.SIGHUP)
    manager.wait_for(RELOADING="1")
    assert manager.wait_for(READY="1")["STATUS"] == "ready"
    assert peer.classify(DARK)["model"] == "m"
