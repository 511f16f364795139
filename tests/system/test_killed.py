"""SIGKILL at any moment of a life leaves nothing that stops the next start, and nothing that runs on."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.processes import family_of
from tests.system.daemons import Connect, Daemon, Start, drawn, encoded, wait_until_ready
from tests.waiting import LIMIT_S, until

HOSTED = '[models]\nonly = ["xs", "s"]\nbackends = { xs = "onnxruntime-hosted" }\n'
PICTURE = encoded(drawn())


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def loads(daemon: Daemon, _: Connect) -> None:
    until(daemon.path.exists)


def serves(daemon: Daemon, connect: Connect) -> None:
    wait_until_ready(daemon)
    connect(daemon).send({"type": "classify", "model": "xs"}, PICTURE)


def reloads(daemon: Daemon, connect: Connect) -> None:
    wait_until_ready(daemon)
    connect(daemon).send({"type": "reload"})


def drains(daemon: Daemon, connect: Connect) -> None:
    wait_until_ready(daemon)
    peer = connect(daemon)
    for number in range(50):
        peer.send({"type": "classify", "id": str(number)}, PICTURE)
    daemon.process.send_signal(signal.SIGTERM)


MOMENTS: tuple[Callable[[Daemon, Connect], None], ...] = (loads, serves, reloads, drains)


@pytest.mark.slow
def test_after_any_kill_it_starts_again_without_any_help(start: Start, connect: Connect, tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    shared = set(Path("/dev/shm").iterdir())
    for moment in MOMENTS:
        daemon = start(HOSTED, ready=False, env={"STATE_DIRECTORY": str(state)})
        moment(daemon, connect)
        children = family_of(daemon.process.pid)[1:]
        daemon.process.kill()
        daemon.process.wait(LIMIT_S)
        until(lambda children=children: not any(map(is_running, children)))
    last = start(HOSTED, env={"STATE_DIRECTORY": str(state)})
    assert connect(last).classify(PICTURE, model="xs")["type"] == "answer", "the engine host's model"
    assert last.stop() == 0, last.log.read_text()
    assert set(Path("/dev/shm").iterdir()) <= shared
    assert list(state.rglob("*")) == []
    assert not list(tmp_path.glob("*.sock*"))
