"""Kills at any moment, of recordings too, reloads under load and a short soak: nothing is lost or counted wrongly."""

import os
import shutil
import signal
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import jetsel
from jetsel.base.errors import JetselError
from jetsel.calibrate.record import database
from jetsel.calibrate.record.recorder import loaded_models, record
from jetsel.calibrate.record.workers import Observer
from tests.faults.soak import soak
from tests.faults.upsets import UPSETS, Disk
from tests.processes import family_of, held
from tests.system.daemons import Connect, Daemon, Start, drawn, encoded, wait_until_ready
from tests.unit.calibrate.record.making import LABELS, TEN_TIMED, content, family, found, put, run
from tests.waiting import LIMIT_S, until

pytestmark = pytest.mark.slow

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


APART_S = 0.15  # between two reloads, so that requests are seen without one


def test_no_valid_request_fails_whatever_lies_on_the_disk_at_a_reload(
    start: Start, connect: Connect, tmp_path: Path
) -> None:
    disk, stop, ended, wrong = Disk(tmp_path), threading.Event(), Counter[str](), []
    daemon = start(disk.text)
    disk.launched(daemon.config)
    admin, pid = connect(daemon), daemon.process.pid

    def ask(**fields: str) -> None:
        """Ask one thing after another, never twice: what is refused counts, even if it may be tried again."""
        with jetsel.Client(daemon.endpoint, retry=False, timeout_ms=60_000) as client:
            while not stop.is_set():
                try:
                    client.classify(PICTURE, **fields)  # type: ignore[arg-type]
                    ended["ok"] += 1
                except JetselError as error:
                    ended[error.code] += 1

    assert admin.status()["state"] == "ready"
    before = held(pid)
    with ThreadPoolExecutor() as pool:
        askers = [pool.submit(ask), pool.submit(ask, model="xs")]
        try:
            for upset in UPSETS:
                upset.do(disk)
                reply = admin.ask({"type": "reload"})
                if (reply["type"] == "reloaded") != upset.taken:
                    wrong.append(f"{upset.name}: {reply}")
                stop.wait(APART_S)
                disk.restore()
            os.kill(pid, signal.SIGHUP)  # a reload whose end nobody is told
            stop.wait(APART_S)
        finally:
            stop.set()
    for asker in askers:
        asker.result()
    assert wrong == []
    assert set(ended) == {"ok"}
    until(lambda: held(pid).descriptors <= before.descriptors)
    assert daemon.stop() == 0, daemon.log.read_text()


KILLS = 8
PHOTOGRAPHS = 60


@pytest.fixture
def photographs(tmp_path: Path) -> Path:
    """Sixty photographs, a duplicate, a contradiction and two files that cannot be read."""
    folder = put(tmp_path / "photos", PHOTOGRAPHS, width=320)
    first, second, third = (folder / LABELS.wnids[number] for number in range(3))
    shutil.copy(first / "000.jpg", first / "twice.jpg")
    shutil.copy(first / "003.jpg", second / "otherwise.jpg")
    (third / "text.jpg").write_text("no picture")
    (third / "cut.jpg").write_bytes((third / "002.jpg").read_bytes()[:-100])
    return folder


def test_killed_recordings_end_as_one_that_was_not(
    photographs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A transaction takes a second, and this recording hardly lasts one: here it takes 10 ms, so that moments fall
    # between transactions and inside them.
    monkeypatch.setattr(database, "COMMIT_EVERY_S", 0.01)
    path, left = tmp_path / "recording.db", list[Path]()

    def leave(*_: object) -> None:
        folder = tmp_path / f"{len(left)}"
        folder.mkdir()
        for file in tmp_path.glob(f"{path.name}*"):
            shutil.copy(file, folder)
        left.append(folder / path.name)

    both = family("xs", "s")
    with loaded_models(both) as engines:
        record(path, both, engines, found(photographs), TEN_TIMED, Observer(leave))
        whole = content(path)
        assert (len(whole["photographs"]), len(whole["predictions"]), len(whole["timed"])) == (59, 118, 20)
        assert len(whole["skipped"]) == 5
        resumed = []
        for killed in left[:: len(left) // KILLS]:
            done = run(killed, both, engines, found(photographs), TEN_TIMED)
            assert done.finished
            assert content(killed) == whole
            resumed.append(done.due)
    assert any(0 < recorded < 59 for recorded in resumed), "some were killed while photographs were recorded"
