"""Calibrations installed, broken and rolled back under a stream of requests: each answer comes whole from one."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from jetsel.policies.calibration import Calibration
from jetsel.policies.coding import read
from jetsel.policies.installed import install
from jetsel.zoo import STARTER
from tests.system.command import jetsel
from tests.system.daemons import Connect, Daemon, Peer, Start
from tests.waiting import until

PEERS = 3


def calibration(model: str, temperature: float) -> Calibration:
    """One under which `model` answers, and divides its logits by `temperature`: its answers tell it from others."""
    shipped = read(STARTER / "calibration")
    return msgspec.structs.replace(
        shipped,
        default_policy=dict.fromkeys(shipped.default_policy, f"single:{model}"),
        temperatures=dict.fromkeys(shipped.temperatures, temperature),
        because=f"{model} at {temperature}",
    )


@pytest.fixture
def owners(tmp_path: Path) -> Path:
    return tmp_path / "calibrations"


@pytest.fixture
def daemon(start: Start, owners: Path) -> Daemon:
    return start(f'[models]\ncalibrations = "{owners}"\n')


class Stream:
    """What a stream of requests was answered with: (model, probability) of each, and every failure."""

    def __init__(self) -> None:
        self.answers: list[tuple[str, float]] = []
        self.failures: list[dict[str, Any]] = []

    def see(self, reply: dict[str, Any]) -> None:
        if reply["type"] == "answer":
            self.answers.append((reply["model"], reply["probability"]))
        else:
            self.failures.append(reply)

    def wait_for(self, model: str, count: int) -> None:
        """Wait until so many answers more have come of this model."""
        began = len(self.answers)
        until(lambda: sum(answer[0] == model for answer in self.answers[began:]) >= count)


@contextmanager
def streaming(daemon: Daemon, jpeg: bytes) -> Iterator[Stream]:
    """Send requests from several peers at once, several from each, until the block ends."""
    stream, stop = Stream(), threading.Event()

    def ask() -> None:
        peer = Peer(daemon.endpoint)
        try:
            for _ in range(4):
                peer.send({"type": "classify"}, jpeg)
            while not stop.is_set():
                stream.see(peer.receive())
                peer.send({"type": "classify"}, jpeg)
            for _ in range(4):
                stream.see(peer.receive())
        finally:
            peer.close()

    threads = [threading.Thread(target=ask) for _ in range(PEERS)]
    for thread in threads:
        thread.start()
    try:
        yield stream
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)


def truncate(directory: Path) -> None:
    (directory / "arrays.npz").write_bytes((directory / "arrays.npz").read_bytes()[:-100])


@pytest.mark.slow
def test_under_load_no_request_fails_and_each_answer_comes_whole_from_one_calibration(
    daemon: Daemon, connect: Connect, owners: Path, jpeg: bytes
) -> None:
    admin = connect(daemon)
    whole: dict[str, float] = {}  # model -> its probability, as the only calibration under which it answers gives it
    pinned: list[dict[str, float]] = []
    for model, temperature in (("xs", 0.5), ("s", 3.0)):
        install(calibration(model, temperature), owners, "starter")
        assert admin.ask({"type": "reload"})["changed"] == ["calibration of starter"]
        reply = admin.classify(jpeg)
        assert reply["model"] == model
        whole[model] = reply["probability"]
        pinned.append({name: admin.classify(jpeg, model=name)["probability"] for name in ("xs", "s")})
    assert abs(whole["xs"] - pinned[1]["xs"]) > 0.01, "an answer of one's policy and the other's temperature shows"
    assert abs(whole["s"] - pinned[0]["s"]) > 0.01
    with streaming(daemon, jpeg) as stream:
        stream.wait_for("s", 10)
        for _ in range(3):
            assert back(daemon, "--to", "1")["reloaded"]
            stream.wait_for("xs", 10)
            install(calibration("s", 3.0), owners, "starter")
            assert admin.ask({"type": "reload"})["changed"] == ["calibration of starter"]
            stream.wait_for("s", 10)
        made = install(calibration("m", 1.0), owners, "starter")
        truncate(made.directory)
        (said,) = admin.ask({"type": "reload"})["changed"]
        assert f"refused: number {made.number}: " in said
        assert f"calibration of starter ({used(admin)})" == said
        stream.wait_for("s", 10)
        assert back(daemon, "--to", "1")["reloaded"]
        stream.wait_for("xs", 10)
    assert stream.failures == []
    assert {model for model, _ in stream.answers} == {"xs", "s"}
    for model, probability in stream.answers:
        assert probability == pytest.approx(whole[model], abs=1e-4)
    assert "calibration of family starter is not used: number 6: " in daemon.log.read_text()
    assert daemon.stop() == 0


def used(peer: Peer) -> str:
    families: list[dict[str, Any]] = peer.status()["families"]
    return str(families[0]["calibration"])


def back(daemon: Daemon, *options: str) -> dict[str, Any]:
    """Roll back by the command, as the owner does; return what it says."""
    done = jetsel("calibration", "rollback", *options, "--config", daemon.config, "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_daemon_that_reads_another_folder_is_noticed(start: Start, owners: Path, tmp_path: Path) -> None:
    daemon = start()
    for model in ("xs", "s"):
        install(calibration(model, 1.0), owners, "starter")
    other = tmp_path / "other.toml"
    other.write_text(f'[models]\ncalibrations = "{owners}"\n')
    done = jetsel("calibration", "rollback", "--config", other, "--endpoint", daemon.endpoint)
    assert done.returncode == 0, done.stderr
    assert "with this calibration: shipped with the models" in done.stdout
    assert f"That is not number 1, of {calibration('xs', 1.0).created}" in done.stdout


def test_a_daemon_that_does_not_reload_is_told_of_and_the_way_back_is_taken(daemon: Daemon, owners: Path) -> None:
    for model in ("xs", "s"):
        install(calibration(model, 1.0), owners, "starter")
    text = daemon.config.read_text()
    broken, own = text.replace("[models]", '[models]\nonly = ["huge"]'), daemon.config.with_name("own.toml")
    own.write_text(text)
    daemon.config.write_text(broken)
    done: subprocess.CompletedProcess[str] = jetsel("calibration", "rollback", "--config", own)
    assert done.returncode == 1
    assert "now uses number 1, of " in done.stdout
    assert "the daemon was not reloaded" in done.stdout
