"""How a daemon stops: what is answered, what is refused, how long it takes, and where new clients wait meanwhile."""

import signal
from pathlib import Path

import pytest

from tests.system.daemons import Connect, Daemon, Peer, Start
from tests.system.endless import DARK, WHITE, put_endless_family
from tests.system.hosts import SLOW, interpreter
from tests.waiting import LIMIT_S, until

pytestmark = pytest.mark.slow
HANGING = '[server]\nworkers = 2\ndrain_s = {drain_s}\n[models]\nstarter = false\npaths = ["{folder}"]\n'


def slow_config(folder: Path, drain_s: float, run_s: float) -> str:
    """A daemon whose model runs, in its host, as long as the file `seconds` says: nothing at first."""
    seconds = folder / "seconds"
    seconds.write_text("0")
    python = interpreter(folder, SLOW.format(seconds=str(seconds)))
    (folder / "later").write_text(str(run_s))
    return (
        f'[server]\nworkers = 2\ndrain_s = {drain_s}\n[models]\nonly = ["xs"]\nbackend = "onnxruntime-hosted"\n'
        f'[host]\ninterpreter = "{python}"\n'
    )


def slow_down(folder: Path) -> None:
    (folder / "later").replace(folder / "seconds")


def until_queued(peer: Peer, count: int) -> None:
    until(lambda: sum(peer.status()["queue"][one] for one in ("waiting", "working")) >= count)


def test_what_is_in_flight_is_answered_and_what_comes_is_told_to_come_again(
    start: Start, connect: Connect, tmp_path: Path
) -> None:
    daemon = start(slow_config(tmp_path, drain_s=30, run_s=1.0))
    peer, other = connect(daemon), connect(daemon)
    assert peer.classify(DARK)["type"] == "answer"
    slow_down(tmp_path)
    for number in range(3):
        peer.send({"type": "classify", "id": str(number)}, DARK)
    until_queued(other, 3)
    daemon.process.send_signal(signal.SIGTERM)
    while other.status()["state"] != "stopping":
        assert daemon.process.poll() is None
    late = other.classify(DARK)
    assert (late["code"], late["retry"]) == ("shutting-down", True)
    newcomer = connect(daemon)
    assert newcomer.classify(DARK)["code"] == "shutting-down", "our own socket is open until the end"
    refused = other.ask({"type": "reload"})
    assert (refused["code"], refused["retry"]) == ("shutting-down", True)
    assert {reply["type"] for reply in (peer.receive() for _ in range(3))} == {"answer"}
    assert daemon.process.wait(LIMIT_S) == 0
    assert not list(tmp_path.glob("*.sock*"))


@pytest.mark.parametrize(("drain_s", "has_second_signal", "boxes"), [(0.5, False, 0), (0.5, False, 5), (3000, True, 0)])
def test_what_outlasts_the_limit_or_a_second_signal_is_told_so_and_the_exit_is_a_good_one(
    start: Start, connect: Connect, tmp_path: Path, drain_s: float, has_second_signal: bool, boxes: int
) -> None:
    folder = put_endless_family(tmp_path / "models")
    daemon = start(HANGING.format(drain_s=drain_s, folder=folder))
    peer, other = connect(daemon), connect(daemon)
    cut = {"boxes": {"unit": "pixels", "xywh": [[0, 0, 9, 9]] * boxes}} if boxes else {}  # the first of them hangs
    peer.send({"type": "classify", "id": "hangs", "model": "endless", **cut}, WHITE)
    until_queued(other, 1)
    daemon.process.send_signal(signal.SIGTERM)
    if has_second_signal:
        until(lambda: other.status()["state"] == "stopping")
        daemon.process.send_signal(signal.SIGINT)
    reply = peer.receive()
    assert reply["id"] == "hangs"
    told = [(one["code"], one["retry"]) for one in reply.get("answers", [reply])]
    assert told == [("shutting-down", True)] * (boxes or 1)
    assert daemon.process.wait(LIMIT_S) == 0
    assert not list(tmp_path.glob("*.sock*"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_at_any_moment_of_the_start_ends_it_well(start: Start, number: int) -> None:
    # From the first moment that code of ours runs, then later and later.
    moments = (
        lambda _: True,
        lambda daemon: daemon.path.exists(),
        lambda daemon: "[event=ready" in daemon.log.read_text(),
    )
    for step, has_come in enumerate(moments):
        daemon = start(ready=False, name=f"jetsel-{step}", start_new_session=True)
        until(lambda daemon=daemon: signal.SIGHUP in caught(daemon))
        until(lambda daemon=daemon, has_come=has_come: has_come(daemon))
        daemon.process.send_signal(number)
        assert daemon.process.wait(LIMIT_S) == 0, daemon.log.read_text()
        assert not list(daemon.path.parent.glob(f"jetsel-{step}.sock*"))


def caught(daemon: Daemon) -> set[int]:
    """The signals that the daemon handles by now (proc(5), SigCgt)."""
    lines = Path(f"/proc/{daemon.process.pid}/status").read_text().splitlines()
    mask = int(next(line.split()[1] for line in lines if line.startswith("SigCgt")), 16)
    return {number for number in range(1, 65) if mask >> (number - 1) & 1}
