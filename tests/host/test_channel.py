"""Under each Python the host survives how bytes arrive, and leaves with a reason when they are none of the protocol."""

from __future__ import annotations

import json
import signal

import pytest

from jetsel.engines.hosting.link import HEADER, MAX_MESSAGE_BYTES
from tests.host.started import StartedHost

PING = json.dumps({"id": 7, "do": "ping"}).encode()


def test_a_message_that_arrives_byte_by_byte_is_answered(fresh: StartedHost) -> None:
    for byte in HEADER.pack(len(PING)) + PING:
        fresh.send_raw(bytes([byte]))
    assert fresh.receive() == {"id": 7, "ok": True}


def test_messages_that_arrive_at_once_are_answered_in_turn(fresh: StartedHost) -> None:
    fresh.send_raw(b"".join(HEADER.pack(len(PING)) + PING for _ in range(3)))
    assert [fresh.receive() for _ in range(3)] == [{"id": 7, "ok": True}] * 3


def test_the_longest_message_is_read(fresh: StartedHost) -> None:
    fresh.send_body(PING + b" " * (MAX_MESSAGE_BYTES - len(PING)))
    assert fresh.receive() == {"id": 7, "ok": True}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        pytest.param(HEADER.pack(MAX_MESSAGE_BYTES + 1), "of 65537 bytes", id="too long"),
        pytest.param(HEADER.pack(0xFFFFFFFF), "of 4294967295 bytes", id="the longest that can be said"),
        pytest.param(HEADER.pack(0), "of 0 bytes", id="empty"),
        pytest.param(HEADER.pack(1) + b"7", "of 1 bytes", id="too short"),
        pytest.param(HEADER.pack(4) + b"{{{{", "not JSON", id="garbage"),
        pytest.param(HEADER.pack(4) + b"\xff\xfe\xfd\xfc", "not JSON", id="no text"),
        pytest.param(HEADER.pack(60_000) + b"[" * 60_000, "not JSON", id="deeper than can be read"),
        pytest.param(HEADER.pack(4) + b"[42]", "no JSON object", id="a list"),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", "of 1195725856 bytes", id="another protocol"),
    ],
)
def test_a_peer_that_does_not_speak_the_protocol_is_left(fresh: StartedHost, content: bytes, says: str) -> None:
    fresh.send_raw(content)
    status, said = fresh.ended()
    assert status == 1
    assert said.startswith(f"jetsel host {fresh.process.pid}: leaving: a message ")
    assert says in said
    assert len(said.splitlines()) == 1, said


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(HEADER.pack(len(PING))[:2], id="in the length"),
        pytest.param(HEADER.pack(len(PING)), id="after the length"),
        pytest.param(HEADER.pack(len(PING)) + PING[:-1], id="before the last byte"),
    ],
)
def test_a_peer_that_closes_in_the_middle_of_a_message_is_no_quiet_end(fresh: StartedHost, content: bytes) -> None:
    fresh.send_raw(content)
    fresh.hang_up()
    status, said = fresh.ended()
    assert status == 1
    assert said == f"jetsel host {fresh.process.pid}: leaving: the peer closed in the middle of a message\n"


def test_a_peer_that_closes_before_the_answer_ends_it(fresh: StartedHost) -> None:
    fresh.process.send_signal(signal.SIGSTOP)
    fresh.send_body(PING)
    fresh.hang_up()
    fresh.process.send_signal(signal.SIGCONT)
    status, said = fresh.ended()
    assert (status, said.count("\n")) == (1, 1), said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_whole_group_leaves_it_to_the_daemon(fresh: StartedHost, number: signal.Signals) -> None:
    assert fresh.ask("ping")["ok"]
    fresh.process.send_signal(number)
    assert fresh.ask("ping")["ok"]
    assert fresh.ask("quit")["ok"]
    assert fresh.ended() == (0, "")
