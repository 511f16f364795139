"""What a real daemon logs: changes of state, each once; nothing for a request unless asked; no line that is forged."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from jetsel.daemon.logs import spells
from tests.system import hosts
from tests.system.daemons import Connect, Daemon, Start, drawn, encoded
from tests.system.hosts import host_of, hosts_of

LIMIT_S = 60.0
LINE = re.compile(
    r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (debug|info|warning|error|critical) +\S.* \[event=([a-z-]+)"
)
HOSTED = '[models]\nonly = ["xs", "s"]\nbackends = { xs = "onnxruntime-hosted" }\n'


def until(met: Callable[[], bool], daemon: Daemon) -> None:
    give_up = time.monotonic() + LIMIT_S
    while not met():
        assert time.monotonic() < give_up, daemon.log.read_text()
        time.sleep(0.02)


def events(daemon: Daemon) -> list[str]:
    """The events of every line; fails where a line is none of the log's."""
    found = []
    for line in daemon.log.read_text().splitlines():
        if not line.startswith("    | "):
            matched = LINE.match(line)
            assert matched, line
            found.append(matched[2])
    return found


def lines(daemon: Daemon, event: str) -> list[str]:
    return [line for line in daemon.log.read_text().splitlines() if f"[event={event}" in line]


def test_a_life_is_a_handful_of_lines_and_requests_add_none(start: Start, connect: Connect, jpeg: bytes) -> None:
    daemon = start()
    peer = connect(daemon)
    for number in range(50):
        assert peer.classify(jpeg, id=f"fine-{number}")["type"] == "answer"
        assert peer.classify(b"no image", id=f"bad-{number}")["code"] == "bad-image"
        assert peer.ask(b"{", jpeg)["code"] == "bad-request"
    peer.close()
    assert daemon.stop() == 0
    assert events(daemon) == ["starting", "ready", "shutting-down", "drained", "stopped"]


def test_each_request_is_a_line_where_that_is_asked_for_and_a_reload_asks(
    start: Start, connect: Connect, jpeg: bytes
) -> None:
    daemon = start()
    peer = connect(daemon)
    peer.classify(jpeg, id="before")
    daemon.config.write_text(daemon.config.read_text() + "[log]\nrequests = true\n")
    peer.ask({"type": "reload", "id": "on"})
    answer = peer.classify(jpeg, id="fine")
    peer.classify(b"no image", id="bad")
    peer.ask({"type": "classify", "id": "none"})
    told = lines(daemon, "request")
    assert len(told) == 3
    assert re.search(rf"request_id=fine outcome=ok client=\"uid {os.getuid()}\" family=starter policy=\S+ ", told[0])
    assert f"by {answer['model']} " in told[0]
    assert all(f"{stage}_ms=" in told[0] for stage in ("queue", "decode", "choice", "waiting", "inference", "total"))
    assert re.search(r"request_id=bad outcome=bad-image", told[1])
    assert re.search(r"request_id=none outcome=bad-request", told[2])
    assert "request_id=on" in lines(daemon, "reloaded")[0]


def test_a_daemon_without_a_stderr_serves(start: Start, connect: Connect, jpeg: bytes) -> None:
    daemon = start(prefix=["sh", "-c", 'exec "$@" 2>&-', "sh"])
    assert connect(daemon).classify(jpeg)["type"] == "answer"
    assert daemon.stop() == 0


def test_a_daemon_started_without_standard_descriptors_gives_their_numbers_to_no_file_of_its_own(
    start: Start, connect: Connect, jpeg: bytes
) -> None:
    daemon = start(prefix=["sh", "-c", 'exec "$@" 0<&- 1>&- 2>&-', "sh"])
    peer = connect(daemon)
    assert peer.classify(jpeg)["type"] == "answer"
    numbers = Path(f"/proc/{daemon.process.pid}/fd")
    opened = [str((numbers / str(number)).readlink()) for number in range(3)]
    assert opened[:2] == ["/dev/null", "/dev/null"]
    assert opened[2].startswith("pipe:"), "what libraries print becomes lines of the log"
    assert daemon.stop() == 0


def test_the_level_changes_with_a_reload(start: Start, connect: Connect) -> None:
    daemon = start("[log]\nlevel = 'error'\n")
    peer = connect(daemon)
    assert events(daemon) == []
    daemon.config.write_text(daemon.config.read_text().replace("'error'", "'info'"))
    peer.ask({"type": "reload"})
    assert events(daemon) == ["reloaded"]


def test_a_reload_that_is_refused_says_why_once_and_for_whom(start: Start, connect: Connect) -> None:
    daemon = start()
    peer = connect(daemon)
    good = daemon.config.read_text()
    daemon.config.write_text(good + "[log]\nlevle = 'info'\n")
    assert peer.ask({"type": "reload", "id": "who"})["code"] == "reload-failed"
    (line,) = lines(daemon, "reload-refused")
    assert "log.levle: there is no such key" in line
    assert "request_id=who" in line


@pytest.mark.parametrize(
    "evil",
    [
        "x\n2026-11-21T23:03:33.113Z info     ready on nothing [event=ready]",
        "\x1b[2J\x1b]0;owned\x07",
        '"] event=ready [event="crashed',
        "\u202e\u2028\x85\x9b31m",
    ],
)
def test_no_id_model_or_image_of_a_client_forges_a_line_or_reaches_a_terminal(
    start: Start, connect: Connect, jpeg: bytes, evil: str
) -> None:
    daemon = start("[log]\nrequests = true\n")
    peer = connect(daemon)
    peer.classify(jpeg, id=evil)
    peer.classify(jpeg, id=evil, model=evil)
    peer.classify(jpeg, id=evil, policy=evil, family=evil)
    peer.classify(evil.encode("utf-8"), id=evil)
    peer.ask({"type": evil, "id": evil})
    peer.ask({"type": "classify", "id": evil, evil: 1}, jpeg)
    assert daemon.stop() == 0
    text = daemon.log.read_text()
    assert all(line.isprintable() for line in text.splitlines())
    assert events(daemon) == ["starting", "ready", *["request"] * 6, "shutting-down", "drained", "stopped"]
    assert text.count("[event=ready") == 1
    values = re.findall(r'request_id=("(?:[^"\\]|\\.)*")(?= outcome=)', text)
    assert len(values) == 6, "each id stands in its own quotes"


def test_a_full_queue_is_told_as_it_begins_and_as_it_ends(start: Start, connect: Connect) -> None:
    daemon = start("[server]\nworkers = 1\nqueue_requests = 2\n")
    peer = connect(daemon)
    big = encoded(drawn(height=1500, width=2000))
    codes = []
    for _ in range(5):
        for _ in range(8):
            peer.send({"type": "classify"}, big)
        codes += [peer.receive().get("code") for _ in range(8)]
    refused = codes.count("busy")
    assert refused > 5
    until(lambda: bool(lines(daemon, "queue-free")), daemon)
    (begun,), (over,) = lines(daemon, "queue-full"), lines(daemon, "queue-free")
    assert "requests are refused: the queue is full" in begun
    assert f" {refused} were in " in over
    assert spells.QUIET_S > 1, "five bursts one after the other are one spell"


def test_lost_replies_are_told_likewise(start: Start, connect: Connect) -> None:
    daemon = start()
    big = encoded(drawn(height=1500, width=2000))
    for _ in range(5):
        leaver = connect(daemon)
        for _ in range(4):
            leaver.send({"type": "classify"}, big)
        until(lambda: connect(daemon).status()["in_queue"] > 0, daemon)
        leaver.socket.close()
    until(lambda: bool(lines(daemon, "replies-kept")), daemon)
    assert len(lines(daemon, "replies-lost")) == len(lines(daemon, "replies-kept")) == 1


def test_the_end_of_an_engine_host_names_the_requests_that_it_had(start: Start, connect: Connect, jpeg: bytes) -> None:
    daemon = start(HOSTED)
    peer, other = connect(daemon), connect(daemon)
    host = host_of(daemon)
    os.kill(host, signal.SIGSTOP)
    peer.send({"type": "classify", "model": "xs", "id": "cam3-000417"}, jpeg)
    until(lambda: other.status()["in_queue"] == 1, daemon)
    time.sleep(0.2)  # so that it has left the lane for the host
    os.kill(host, signal.SIGKILL)
    assert peer.receive()["type"] == "answer"
    (died,) = lines(daemon, "host-died")
    assert f"engine host {host} ended while running xs" in died
    assert "request_id=cam3-000417" in died
    assert any("models loaded: 1" in line and " warning " in line for line in lines(daemon, "host-started"))
    assert len(lines(daemon, "model-back")) == 1


def test_under_load_the_end_of_a_host_names_the_whole_batch_and_no_other(
    start: Start, connect: Connect, jpeg: bytes
) -> None:
    daemon = start(HOSTED)
    peer = connect(daemon)
    host = host_of(daemon)
    os.kill(host, signal.SIGSTOP)
    asked = {f"b-{number}" for number in range(30)}
    for name in sorted(asked):
        peer.send({"type": "classify", "model": "xs", "id": name}, jpeg)
    time.sleep(0.5)
    os.kill(host, signal.SIGKILL)
    replies = [peer.receive() for _ in asked]
    assert {reply["id"] for reply in replies} == asked
    (died,) = lines(daemon, "host-died")
    found = re.search(r"request_id=([\w,-]+)", died)
    assert found
    assert set(found[1].split(",")) <= asked


def test_what_a_host_prints_is_told_in_its_name(start: Start, tmp_path: Path) -> None:
    change = 'sys.stderr.write("a library\\x1b[2J complains\\n"); os.write(1, b"and prints")\n'
    python = hosts.interpreter(tmp_path, change)
    daemon = start(f'{HOSTED}[host]\ninterpreter = "{python}"\n')
    pid = host_of(daemon)
    assert daemon.stop() == 0
    said = lines(daemon, "host-output")
    assert len(said) == 2
    assert all(f"engine host {pid} says: " in line for line in said)
    assert "a library\\x1b[2J complains" in said[0]
    assert "and prints" in said[1]
    assert all(line.isprintable() for line in daemon.log.read_text().splitlines())


def test_a_model_that_fails_in_every_request_does_not_flood(
    start: Start, connect: Connect, jpeg: bytes, tmp_path: Path
) -> None:
    change = (
        "def broken(self, batch, shared):\n"
        "    if os.path.exists({flag!r}):\n"
        '        raise host.Refusal("bad-input", "a broken kernel")\n'
        "    return run(self, batch, shared)\n"
    ).format(flag=str(tmp_path / "broken"))
    python = hosts.interpreter(tmp_path, f"run = host.OnnxModel.run\n{change}host.OnnxModel.run = broken\n")
    daemon = start(f'{HOSTED}[host]\ninterpreter = "{python}"\n')
    peer = connect(daemon)
    (tmp_path / "broken").touch()
    for number in range(100):
        assert peer.classify(jpeg, model="xs", id=f"r-{number}")["code"] == "model-unavailable"
    assert len(lines(daemon, "model-failed")) <= 6
    assert "request_id=r-0" in lines(daemon, "model-failed")[0]
    until(lambda: "more like it in the last 10 s" in daemon.log.read_text(), daemon)
    assert hosts_of(daemon)
