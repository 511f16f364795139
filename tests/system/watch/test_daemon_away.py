"""A daemon that is killed, hangs, starts again or reloads is seen by `jetsel watch`, which goes on by itself."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

import jetsel
from tests.system.daemons import Connect, Start, drawn, encoded
from tests.system.watch.conftest import Open
from tests.waiting import until


@pytest.mark.slow
def test_it_begins_without_a_daemon_and_one_that_is_killed_is_waited_for(
    start: Start, watch: Open, tmp_path: Path
) -> None:
    folder = tmp_path / "pictures"
    folder.mkdir()
    watcher = watch(folder, f"ipc://{tmp_path}/jetsel.sock", "--stay", "1")
    assert watcher.wait_for("daemon")["state"] == "away"
    daemon = start()
    assert watcher.wait_for("daemon", 2)["state"] == "back", "seen without any question"
    (folder / "1.jpg").write_bytes(encoded(drawn(0)))
    watcher.wait_for("label")
    daemon.stop(signal.SIGKILL)
    assert watcher.wait_for("daemon", 3)["state"] == "away"
    for number in (1, 2):  # nobody can be asked about them; the newest is asked about when somebody can
        (folder / f"{number + 1}.png").write_bytes(encoded(drawn(number), ".png"))
    start()
    assert watcher.wait_for("daemon", 4)["reason"] == "it was restarted"
    with jetsel.Client(daemon.endpoint) as client:
        assert watcher.wait_for("label", 2)["label"] == client.classify(drawn(2)).label
    assert watcher.end()["label_changes"] == 2


@pytest.mark.slow
def test_a_daemon_that_hangs_is_away_until_it_answers(start: Start, watch: Open, tmp_path: Path) -> None:
    daemon = start()
    watcher = watch(tmp_path, daemon.endpoint)
    watcher.wait_for("daemon")
    daemon.process.send_signal(signal.SIGSTOP)
    assert watcher.wait_for("daemon", 2)["state"] == "away"
    daemon.process.send_signal(signal.SIGCONT)
    assert watcher.wait_for("daemon", 3)["state"] == "back"
    watcher.end()


@pytest.mark.slow
def test_a_reload_is_told_and_the_same_scene_is_asked_about_again(
    start: Start, connect: Connect, watch: Open, tmp_path: Path
) -> None:
    folder = tmp_path / "pictures"
    folder.mkdir()
    daemon = start()
    watcher = watch(folder, daemon.endpoint, "--stay", "1")
    (folder / "1.png").write_bytes(encoded(drawn(0), ".png"))
    watcher.wait_for("label")
    daemon.config.write_text(daemon.config.read_text() + '[models]\nonly = ["xs", "s"]\n')
    assert connect(daemon).ask({"type": "reload"})["type"] == "reloaded"
    reloaded = watcher.wait_for("daemon", 2)
    assert reloaded["state"] == "reloaded"
    (folder / "2.png").write_bytes(encoded(drawn(0), ".png"))
    until(lambda: connect(daemon).status()["requests"].get("ok") == 2)
    assert watcher.end()["frames_skipped"] == 0
