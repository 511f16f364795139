"""A disk that is full, read-only or gone under a running daemon: it serves on, says why, and goes back to normal."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from jetsel.policies.coding import read
from jetsel.policies.installed import install
from jetsel.zoo import STARTER
from tests.system.command import jetsel
from tests.system.daemons import Connect, Peer, Start, wait_until_ready


class State:
    """A state directory on a small file system of its own, with a calibration of the owner's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self._mount("mount", "-t", "tmpfs", "-o", "size=4m,nr_inodes=64", "jetsel-test")
        install(read(STARTER / "calibration"), folder / "calibrations", "starter")

    def fill(self) -> None:
        """Leave not one byte."""
        found = os.statvfs(self.folder)
        with (self.folder / "filler").open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, found.f_bavail * found.f_frsize)

    def read_only(self, is_so: bool = True) -> None:
        self._mount("mount", "-o", f"remount,{'ro' if is_so else 'rw'}")

    def close(self) -> None:
        self._mount("umount")

    def _mount(self, *words: str) -> None:
        subprocess.run([*words, str(self.folder)], check=True, timeout=30)


@pytest.fixture
def state(tmp_path: Path, start: Start) -> Iterator[State]:
    """The daemons that `start` starts end before it is unmounted."""
    found = State(tmp_path / "state")
    yield found
    subprocess.run(["fuser", "-k", "-M", "-m", str(found.folder)], capture_output=True, timeout=30)
    found.close()


def owners(peer: Peer) -> bool:
    """Whether the family is served with the calibration in the state directory."""
    told = peer.status()["families"][0]["calibration"]
    return "number 1" in told and "refused" not in told


@pytest.mark.root
@pytest.mark.parametrize("fault", ["fill", "read_only"])
def test_a_state_directory_that_takes_nothing_more_stops_neither_start_nor_reload(
    state: State, start: Start, connect: Connect, jpeg: bytes, fault: str
) -> None:
    environment = {"STATE_DIRECTORY": str(state.folder)}
    daemon = start(env=environment)
    peer = connect(daemon)
    assert owners(peer)
    getattr(state, fault)()
    assert peer.classify(jpeg)["type"] == "answer"
    assert peer.ask({"type": "reload"})["type"] == "reloaded"
    assert owners(peer)
    assert daemon.stop() == 0
    wait_until_ready(again := start(env=environment, ready=False))
    assert owners(connect(again))
    if fault == "read_only":
        refused = jetsel("calibration", "rollback", env=environment)
        assert (refused.returncode, len(refused.stderr.splitlines())) == (1, 1)
        assert "Read-only file system" in refused.stderr
    assert connect(again).classify(jpeg)["type"] == "answer"


def test_a_log_that_cannot_be_written_costs_nothing_but_the_log(start: Start, connect: Connect, jpeg: bytes) -> None:
    onto_a_full_disk = ["/bin/sh", "-c", 'exec "$0" "$@" 2>/dev/full']
    daemon = start("[log]\nrequests = true\n", prefix=onto_a_full_disk)
    peer = connect(daemon)
    assert {peer.classify(jpeg)["type"] for _ in range(20)} == {"answer"}
    assert peer.ask({"type": "reload"})["type"] == "reloaded"
    assert daemon.stop() == 0


def test_a_model_whose_weights_are_gone_is_served_until_a_reload_and_again_when_they_are_back(
    start: Start, connect: Connect, jpeg: bytes, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(STARTER, tmp_path / "models"))
    weights, aside = folder / "s.onnx", tmp_path / "aside.onnx"
    peer = connect(start(f'[models]\nstarter = false\npaths = ["{folder}"]\n'))
    weights.rename(aside)
    assert peer.classify(jpeg, model="s")["type"] == "answer", "what is loaded needs no file"
    changed = peer.ask({"type": "reload"})["changed"]
    assert "model s removed" in changed
    assert any("s.json" in line and "there is no file s.onnx" in line for line in changed)
    assert "s.onnx" in peer.status()["broken"][0]
    assert peer.classify(jpeg, model="s")["code"] == "unknown-model"
    assert peer.classify(jpeg)["type"] == "answer"
    aside.rename(weights)
    assert peer.ask({"type": "reload"})["type"] == "reloaded"
    assert peer.classify(jpeg, model="s")["type"] == "answer"
