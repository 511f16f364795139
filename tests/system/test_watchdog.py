"""A real daemon under a service manager: what it hears of the daemon's life, and when a sign of life is withheld."""

import os
import signal
import time
from pathlib import Path

import pytest

from tests.system.daemons import Connect, Start
from tests.system.endless import DARK, WHITE, put_endless_family
from tests.system.manager import Manager
from tests.waiting import LIMIT_S, until


def test_the_service_manager_is_told_of_the_start_of_each_reload_before_its_answer_and_of_the_stop(
    start: Start, connect: Connect, manager: Manager
) -> None:
    daemon = start('[policy]\ndefault = "single:xs"\n', ready=False, env=manager.environment)
    word = manager.wait_for(READY="1")
    assert word["STATUS"] == "ready"
    peer = connect(daemon)
    assert peer.status()["state"] == "ready"
    before = manager.heard[:-1]
    assert [word["STATUS"] for word in before] == [f"loading {number} of 7" for number in range(1, 8)]
    assert all(int(word["EXTEND_TIMEOUT_USEC"]) >= 60e6 for word in before)

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

    assert daemon.stop() == 0
    word = manager.wait_for(STOPPING="1")
    assert word["STATUS"].startswith("stopping")
    assert int(word["EXTEND_TIMEOUT_USEC"]) > 10e6, "the drain and more"


PERIOD_S = 1.0
WATCHDOG = {"WATCHDOG_USEC": str(round(PERIOD_S * 1e6))}


@pytest.mark.slow
def test_a_model_that_hangs_in_the_daemon_s_own_process_starves_it(
    start: Start, connect: Connect, manager: Manager, tmp_path: Path
) -> None:
    folder = put_endless_family(tmp_path / "models")
    text = f'[server]\nworkers = 2\n[models]\nstarter = false\npaths = ["{folder}"]\n'
    daemon = start(text, env={**manager.environment, **WATCHDOG})
    peer, other = connect(daemon), connect(daemon)
    manager.wait_for_feedings(1)
    peer.send({"type": "classify", "model": "endless"}, WHITE)
    until(lambda: "the watchdog is not fed" in daemon.log.read_text())
    manager.hear_all()
    assert manager.hear(3 * PERIOD_S) is None
    assert "on one task" in daemon.log.read_text()
    answer = other.classify(DARK, model="plain")
    assert answer["type"] == "answer", "the other worker is well, and that is not enough"
    assert other.status()["state"] == "ready"
    daemon.process.send_signal(signal.SIGABRT)  # what the service manager does then (WatchdogSignal=)
    # Python writes where each thread is, and may stumble over one that runs meanwhile: it ends either way.
    assert daemon.process.wait(LIMIT_S) in (-signal.SIGABRT, -signal.SIGSEGV)
    assert "engines/onnx.py" in daemon.log.read_text(), "where each thread was"
