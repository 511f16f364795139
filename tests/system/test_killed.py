"""SIGKILL at any moment of a life leaves nothing that stops the next start, and nothing that runs on."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.processes import family_of
from tests.system.boards import Board
from tests.system.daemons import Connect, Daemon, Peer, Start, drawn, encoded, wait_until_ready

KILLS = 30
LIMIT_S = 60.0
PICTURE = encoded(drawn())

MEMORY = "/dev/shm"  # what is looked at, and not written to


@pytest.fixture
def config(board: Board) -> str:
    """A daemon with all that a daemon may have: an engine host and power sensors."""
    models = '[models]\nonly = ["xs", "s"]\nbackends = { xs = "onnxruntime-hosted" }\n'
    return f'{models}[power]\nsysfs = "{board.sysfs}"\n'


def name_of(pid: int) -> str:
    """Which of the daemon's programs that is, as its command line tells."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return ""
    return next((Path(word).name for word in words if word.endswith("/engines/host")), "")


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def serve_some(peer: Peer, seconds: float) -> None:
    """Ask for `seconds`, reloading now and then; what is lost with the daemon is lost."""
    give_up = time.monotonic() + seconds
    number = 0
    while time.monotonic() < give_up:
        number += 1
        peer.send({"type": "reload"} if number % 5 == 0 else {"type": "classify", "policy": "cascade"}, PICTURE)
        if not peer.socket.poll(1000):
            return
        peer.socket.recv_multipart()


def in_start(daemon: Daemon, _: Connect, draw: random.Random) -> None:
    time.sleep(draw.uniform(0.0, 1.0))


def in_loading(daemon: Daemon, _: Connect, draw: random.Random) -> None:
    give_up = time.monotonic() + LIMIT_S
    while not daemon.path.exists():
        assert daemon.process.poll() is None, daemon.log.read_text()
        assert time.monotonic() < give_up
    time.sleep(draw.uniform(0.0, 0.6))


def in_serving(daemon: Daemon, connect: Connect, draw: random.Random) -> None:
    wait_until_ready(daemon)
    serve_some(connect(daemon), draw.uniform(0.0, 0.3))


def in_reload(daemon: Daemon, connect: Connect, draw: random.Random) -> None:
    wait_until_ready(daemon)
    connect(daemon).send({"type": "reload"})
    time.sleep(draw.uniform(0.0, 0.1))


def in_draining(daemon: Daemon, connect: Connect, draw: random.Random) -> None:
    wait_until_ready(daemon)
    peer = connect(daemon)
    for number in range(50):
        peer.send({"type": "classify", "id": str(number)}, PICTURE)
    daemon.process.send_signal(signal.SIGTERM)
    time.sleep(draw.uniform(0.0, 0.2))


MOMENTS: list[Callable[[Daemon, Connect, random.Random], None]] = [
    in_start,
    in_loading,
    in_serving,
    in_reload,
    in_draining,
]


def test_after_any_kill_it_starts_again_without_any_help(
    start: Start, connect: Connect, config: str, tmp_path: Path
) -> None:
    draw = random.Random(20261107)
    state = tmp_path / "state"
    state.mkdir()
    shared, seen = set(Path(MEMORY).iterdir()), set[str]()
    for number in range(KILLS):
        daemon = start(config, ready=False, env={"STATE_DIRECTORY": str(state)})
        MOMENTS[number % len(MOMENTS)](daemon, connect, draw)
        children = family_of(daemon.process.pid)[1:]
        seen |= {name_of(child) for child in children}
        daemon.process.kill()
        daemon.process.wait(LIMIT_S)
        give_up = time.monotonic() + LIMIT_S
        while any(is_running(child) for child in children):
            assert time.monotonic() < give_up, "a process outlived the daemon"
            time.sleep(0.01)
    assert "host" in seen, "nothing was there to outlive it"
    last = start(config, env={"STATE_DIRECTORY": str(state)})
    answer = connect(last).classify(PICTURE, model="xs")
    assert answer["type"] == "answer", "the engine host's model"
    assert last.stop() == 0, last.log.read_text()
    assert set(Path(MEMORY).iterdir()) <= shared
    assert list(state.rglob("*")) == []
    assert not list(tmp_path.glob("*.sock*"))
