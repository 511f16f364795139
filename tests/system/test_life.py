"""Starting, stopping, reloading, and the socket's file."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

from jetsel.zoo import STARTER
from tests.system.daemons import Connect, Start, wait_until_ready
from tests.waiting import until


def test_ready_then_stopped_leaves_nothing_behind(start: Start) -> None:
    daemon = start()
    assert stat.S_IMODE(daemon.path.stat().st_mode) == 0o660
    assert daemon.stop() == 0
    assert not list(daemon.path.parent.glob("*.sock*")), daemon.log.read_text()


def test_classify_while_the_models_load_is_told_to_retry(start: Start, connect: Connect, jpeg: bytes) -> None:
    daemon = start(ready=False)
    until(daemon.path.exists)
    peer = connect(daemon)
    seen = []
    while not seen or seen[-1] != "answer":
        reply = peer.classify(jpeg)
        seen.append(reply["type"] if reply["type"] == "answer" else reply["code"])
        assert reply["type"] == "answer" or reply["retry"] is True
    assert seen[0] == "loading"
    assert set(seen) == {"loading", "answer"}


def test_a_second_daemon_on_the_path_refuses_and_harms_nothing(start: Start, connect: Connect, jpeg: bytes) -> None:
    daemon = start()
    second = subprocess.run(
        [sys.executable, "-m", "jetsel", "serve", "--config", str(daemon.config)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert second.returncode == 2
    assert f"process {daemon.process.pid}" in second.stderr
    assert len(second.stderr.splitlines()) == 1
    assert connect(daemon).classify(jpeg)["type"] == "answer"


def test_killed_it_starts_again_at_once(start: Start, connect: Connect, jpeg: bytes) -> None:
    daemon = start()
    daemon.stop(signal.SIGKILL)
    assert daemon.path.exists(), "a killed process cannot tidy up"
    wait_until_ready(again := start(ready=False))
    assert connect(again).classify(jpeg)["type"] == "answer"


def test_a_file_that_is_no_socket_is_never_removed(start: Start, tmp_path: Path) -> None:
    precious = tmp_path / "jetsel.sock"
    precious.write_text("dear diary")
    daemon = start(ready=False)
    assert daemon.process.wait(60) == 2
    assert "no socket" in daemon.log.read_text()
    assert precious.read_text() == "dear diary"


def test_a_wrong_configuration_stops_the_start_with_one_line(start: Start) -> None:
    daemon = start("[server]\nworkes = 2\n", ready=False)
    assert daemon.process.wait(60) == 2
    lines = daemon.log.read_text().splitlines()
    assert len(lines) == 1
    assert "server.workes" in lines[0]
    assert "example" in lines[0]
    assert not daemon.path.exists()


def copy_family(folder: Path, family: str, label: str) -> None:
    """A family of one model: the starter's `s`, under other labels and another name."""
    folder.mkdir()
    labels = (STARTER / "labels.tsv").read_text().splitlines()
    labels[0] = f"n00000000\t{label}"
    (folder / "labels.tsv").write_text("\n".join(labels) + "\n")
    shutil.copy(STARTER / "s.onnx", folder / f"{family}-s.onnx")
    manifest = (STARTER / "s.json").read_text()
    for before, after in (
        ('"starter"', f'"{family}"'),
        ('"name": "s"', f'"name": "{family}-s"'),
        ('"s.onnx"', f'"{family}-s.onnx"'),
    ):
        assert before in manifest
        manifest = manifest.replace(before, after)
    (folder / f"{family}-s.json").write_text(manifest)


def test_two_families_are_served_side_by_side(start: Start, connect: Connect, jpeg: bytes, tmp_path: Path) -> None:
    other = tmp_path / "other"
    copy_family(other, "other", label="a thing of another kind")
    peer = connect(start(f'[models]\npaths = ["{other}"]\ndefault_family = "starter"\n'))
    assert peer.classify(jpeg)["family"] == "starter"
    assert peer.classify(jpeg, family="other")["model"] == "other-s"
    assert peer.classify(jpeg, family="starter", model="other-s")["code"] == "unknown-model"


def damaged_copy(folder: Path, *broken: str) -> Path:
    """The starter family with the weights of some models cut short."""
    shutil.copytree(STARTER, folder)
    for name in broken:
        path = folder / f"{name}.onnx"
        path.write_bytes(path.read_bytes()[:-100])
    return folder


def test_a_damaged_model_is_unavailable_and_the_rest_serve(
    start: Start, connect: Connect, jpeg: bytes, tmp_path: Path
) -> None:
    folder = damaged_copy(tmp_path / "models", "xs")
    peer = connect(start(f'[models]\nstarter = false\npaths = ["{folder}"]\n'))
    states = {model["name"]: model for model in peer.status()["families"][0]["models"]}
    assert states["xs"]["state"] == "unavailable"
    assert "sha256" in states["xs"]["reason"]
    assert states["xl"]["state"] == "ready"
    assert peer.classify(jpeg, model="xs")["code"] == "model-unavailable"
    assert peer.classify(jpeg, policy="cascade")["type"] == "answer"


# One worker stands still from its first turn on; the others serve.
STUCK = """
import pathlib, sys, threading
from jetsel.daemon.dispatcher import Dispatcher
turned = Dispatcher.turned
def stuck(self):
    if threading.current_thread().name == "worker-0":
        threading.Event().wait()
    turned(self)
Dispatcher.turned = stuck
from jetsel.cli.serve import serve
serve(pathlib.Path(sys.argv[1]))
"""


def test_a_start_that_fails_with_a_thread_at_work_says_why_and_ends(start: Start, tmp_path: Path) -> None:
    names = [path.stem for path in STARTER.glob("*.onnx")]
    folder = damaged_copy(tmp_path / "models", *names)
    config = f'[models]\nstarter = false\npaths = ["{folder}"]\n'
    daemon = start(config, ready=False, prefix=["sh", "-c", 'exec "$1" -c "$0" "$6"', STUCK])
    assert daemon.process.wait(60) == 2
    told = daemon.log.read_text()
    assert "no model of the default family" in told
    assert "left behind" in told
    assert not daemon.path.exists()


def test_sighup_reloads_too(start: Start, connect: Connect, jpeg: bytes) -> None:
    daemon = start('[policy]\ndefault = "single:xs"\n')
    peer = connect(daemon)
    daemon.config.write_text(daemon.config.read_text().replace("single:xs", "single:m"))
    os.kill(daemon.process.pid, signal.SIGHUP)
    until(lambda: peer.classify(jpeg)["model"] == "m")
