"""What a real daemon logs: changes of state, each once; nothing for a request unless asked; no line that is forged."""

import os
import re
import signal
from pathlib import Path

import pytest

from tests.system.daemons import Connect, Daemon, Start, drawn, encoded
from tests.system.hosts import ON_INFER, host_of, interpreter
from tests.waiting import LIMIT_S, until

LINE = re.compile(
    r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (debug|info|warning|error|critical) +\S.* \[event=([a-z-]+)"
)
HOSTED = '[models]\nonly = ["xs", "s"]\nbackends = { xs = "onnxruntime-hosted" }\n'


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
    for number in range(20):
        assert peer.classify(jpeg, id=f"fine-{number}")["type"] == "answer"
        assert peer.classify(b"no image", id=f"bad-{number}")["code"] == "bad-image"
        assert peer.ask(b"{", jpeg)["code"] == "bad-request"
    peer.close()
    assert daemon.stop() == 0
    assert events(daemon) == ["starting", "starter-answers", "ready", "shutting-down", "drained", "stopped"]


def test_a_reload_asks_for_a_line_for_each_request_and_for_another_level(
    start: Start, connect: Connect, jpeg: bytes
) -> None:
    daemon = start("[log]\nlevel = 'error'\n")
    peer = connect(daemon)
    peer.classify(jpeg, id="before")
    assert events(daemon) == []
    daemon.config.write_text(daemon.config.read_text().replace("'error'", "'info'\nrequests = true"))
    peer.ask({"type": "reload", "id": "on"})
    answer = peer.classify(jpeg, id="fine")
    peer.classify(b"no image", id="bad")
    peer.ask({"type": "classify", "id": "none"})
    fine, bad, none = lines(daemon, "request")
    assert re.search(rf"request_id=fine outcome=ok client=\"uid {os.getuid()}\" family=starter policy=\S+ ", fine)
    assert f"by {answer['model']} " in fine
    assert all(f"{stage}_ms=" in fine for stage in ("queue", "decode", "choice", "waiting", "inference", "total"))
    assert "request_id=bad outcome=bad-image" in bad
    assert "request_id=none outcome=bad-request" in none
    assert "request_id=on" in lines(daemon, "reloaded")[0]


@pytest.mark.slow
def test_a_full_queue_and_lost_replies_are_told_and_not_for_each_request(
    start: Start, connect: Connect, jpeg: bytes
) -> None:
    daemon = start(f"[server]\nqueue_requests = 2\n{HOSTED}")
    peer = connect(daemon)
    refused: list[object] = []

    def is_told_less_often_than_it_happens() -> bool:
        os.kill(host_of(daemon), signal.SIGSTOP)  # nothing leaves the queue until the daemon has another host
        for _ in range(20):
            peer.send({"type": "classify", "model": "xs"}, jpeg)
        refused.extend(code for _ in range(20) if (code := peer.receive().get("code")) == "busy")
        return 0 < len(lines(daemon, "queue-full")) < len(refused)

    until(is_told_less_often_than_it_happens)

    def leaves_before_its_reply() -> list[str]:
        leaver = connect(daemon)
        leaver.send({"type": "classify"}, encoded(drawn(height=1500, width=2000)))
        leaver.socket.close(linger=60_000)  # once the request is written
        return lines(daemon, "replies-lost")

    until(leaves_before_its_reply)


def test_the_end_of_an_engine_host_is_told_with_the_requests_that_it_had_and_the_next_one_answers_them(
    start: Start, connect: Connect, jpeg: bytes, tmp_path: Path
) -> None:
    lives = tmp_path / "lives"
    lives.touch()  # while the models are loaded; without it, the host ends at the next request
    change = ON_INFER.format(once=str(lives), body="os.kill(os.getpid(), signal.SIGKILL)")
    daemon = start(f'{HOSTED}[host]\ninterpreter = "{interpreter(tmp_path, change)}"\n')
    peer, other = connect(daemon), connect(daemon)
    host = host_of(daemon)
    lives.unlink()
    asked = {f"cam3-{number}" for number in range(10)}
    for name in sorted(asked):
        peer.send({"type": "classify", "model": "xs", "id": name}, jpeg)
    replies = {reply["id"]: reply for reply in (peer.receive() for _ in asked)}
    assert set(replies) == asked
    until(lambda: other.status()["hosts"][0]["state"] == "running")
    (told,) = other.status()["hosts"]
    assert (told["state"], told["pid"], told["restarts"]) == ("running", host_of(daemon), 1)
    assert told["pid"] != host
    assert "SIGKILL" in told["last_end"]
    assert 0 <= told["last_end_ago_s"] < LIMIT_S
    (died,) = lines(daemon, "host-died")
    assert f"engine host {host} ended" in died
    found = re.search(r"request_id=([\w,-]+)", died)
    assert found
    had = found[1].split(",")
    assert {replies[name]["type"] for name in had} == {"answer"}
    others = [replies[name] for name in asked.difference(had)]
    assert all(reply.get("code", "engine-died") == "engine-died" for reply in others), "what came while there was none"
    until(lambda: any(" warning " in line for line in lines(daemon, "host-started")))
    assert len(lines(daemon, "model-back")) == 1
