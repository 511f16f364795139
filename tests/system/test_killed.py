"""Kills at any moment, reloads under load and a short soak: nothing is lost, left behind or counted wrongly."""

import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.reloads import reload_under_load
from tests.faults.soak import soak
from tests.faults.upsets import UPSETS
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


pytestmark = pytest.mark.slow


def test_whatever_is_asked_is_answered_and_counted_once_and_rightly(start: Start, connect: Connect) -> None:
    daemon = start()
    found = soak(daemon, requests=2000, clients=16)
    assert found.wrong == []
    assert found.asked == found.answered >= 2000
    ended: Counter[str] = Counter()
    for of, count in found.outcomes.items():
        kind, _, outcome = of.rpartition(": ")
        ended[outcome] += count if kind != "status" else 0
    told = connect(daemon).status()
    assert told["requests"] == ended
    assert sum(told["answers"]["stages"]["total"]["counts"]) == ended["ok"] == told["families"][0]["answers"]
    assert (told["queue"]["waiting"], told["queue"]["working"], told["queue"]["bytes"]) == (0, 0, 0)


def test_no_valid_request_fails_whatever_lies_on_the_disk_at_a_reload(tmp_path: Path) -> None:
    found = reload_under_load(tmp_path, len(UPSETS))
    assert found.wrong == []
    assert set(found.requests) == {"ok"}
