"""Limits of one client, pixels in flight, and a crowd that never reads."""

from __future__ import annotations

import struct
import time
from typing import Any

import pytest
import zmq

from tests.system.daemons import Connect, Peer, Start, drawn, encoded, free_port

LIMIT_S = 60.0
DEAF = 200
QUESTIONS = 80  # of each deaf client: their replies are more than a socket's buffer holds


def test_a_client_at_its_limit_is_told_so_and_is_served_again_when_it_was_answered(
    start: Start, connect: Connect, jpeg: bytes
) -> None:
    daemon = start("[server]\nclient_requests = 2\n")
    peer = connect(daemon)
    for number in range(60):
        peer.send({"type": "classify", "id": str(number), "model": "xl"}, jpeg)
    replies = [peer.receive() for _ in range(60)]
    refused = [reply for reply in replies if reply["type"] == "failure"]
    assert {(reply["code"], reply["retry"]) for reply in refused} == {("over-limit", True)}
    assert all("server.client_requests" in reply["message"] for reply in refused)
    assert 0 < len(refused) < 60
    assert peer.classify(jpeg)["type"] == "answer"
    assert peer.status()["requests"]["over-limit"] == len(refused)


def test_all_of_loopback_is_one_client(start: Start, connect: Connect, jpeg: bytes) -> None:
    port = free_port()
    daemon = start(f'[server]\ntcp = "tcp://127.0.0.1:{port}"\nclient_requests = 1\n')
    peers = [connect(f"tcp://127.0.0.1:{port}") for _ in range(2)]
    for peer in peers:
        for _ in range(30):
            peer.send({"type": "classify", "model": "xl"}, jpeg)
    replies = [peer.receive() for peer in peers for _ in range(30)]
    refused = [reply for reply in replies if reply["type"] == "failure"]
    assert refused
    assert all(reply["message"].startswith("loopback has 1 requests") for reply in refused)
    assert connect(daemon).classify(jpeg)["type"] == "answer"  # another client: this user's


def test_the_queue_is_bounded_in_pixels_too(start: Start, connect: Connect) -> None:
    peer = connect(start("[server]\nqueue_megapixels = 0.2\n"))
    reply = peer.classify(encoded(drawn(0, 500, 600), ".png"))
    assert (reply["code"], reply["retry"]) == ("busy", True)
    assert "server.queue_megapixels" in reply["message"]
    assert peer.classify(encoded(drawn(0, 300, 400), ".png"))["type"] == "answer"
    # A JPEG is decoded at a part of its size, and counts as that.
    assert peer.classify(encoded(drawn(0, 2000, 3000)))["type"] == "answer"


def test_a_bomb_takes_no_place_in_the_queue(start: Start, connect: Connect) -> None:
    peer = connect(start("[server]\nqueue_megapixels = 0.2\n"))  # a place would be refused as busy
    png = encoded(drawn(), ".png")
    bomb = png[:16] + struct.pack(">II", 100_000, 100_000) + png[24:]
    assert peer.classify(bomb)["code"] == "image-too-large"
    assert peer.classify(png[:20])["code"] == "bad-image"
    assert peer.classify(b"nothing of the kind")["code"] == "bad-image"


class Deaf:
    """A client that asks and never reads."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], endpoint: str) -> None:
        self._left = QUESTIONS
        self._socket = context.socket(zmq.DEALER)
        for option, value in ((zmq.LINGER, 0), (zmq.RCVHWM, 1), (zmq.RCVBUF, 4096)):
            self._socket.setsockopt(option, value)
        self._socket.connect(endpoint)

    def ask(self) -> bool:
        """Send as many questions as its socket takes; return whether any are left."""
        while self._left and self._socket.poll(0, zmq.POLLOUT):
            self._socket.send(b'{"v": 1, "id": "deaf", "type": "status"}')
            self._left -= 1
        return self._left > 0

    def classify(self, image: bytes) -> None:
        self._socket.send_multipart([b'{"v": 1, "id": "deaf", "type": "classify"}', image])

    def close(self) -> None:
        self._socket.close()


@pytest.mark.parametrize("kind", ["ipc", "tcp"])
def test_two_hundred_clients_that_never_read_hold_neither_places_nor_memory(
    start: Start, connect: Connect, jpeg: bytes, kind: str
) -> None:
    port = free_port()
    daemon = start(f'[server]\ntcp = "tcp://127.0.0.1:{port}"\n')
    other = connect(daemon)
    answered(other, jpeg)
    before_mb = other.status()["resident_mb"]
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    deaf = [Deaf(context, daemon.endpoint if kind == "ipc" else f"tcp://127.0.0.1:{port}") for _ in range(DEAF)]
    give_up = time.monotonic() + LIMIT_S
    asking = deaf
    while asking:
        assert time.monotonic() < give_up
        asking = [one for one in asking if one.ask()]
    for one in deaf:
        one.classify(jpeg)
    assert answered(other, jpeg)["type"] == "answer", "among them, another client is served"
    while (status := other.status())["in_queue"]:
        assert time.monotonic() < give_up, "their requests keep their places"
    # Their replies, of some 3 kB each, would be 48 MB: libzmq holds 8 of each client, and the daemon 1,024 in all.
    assert status["resident_mb"] < before_mb + 100
    if kind == "ipc":  # tcp's buffers grow with what is sent
        while other.status()["lost_replies"] == 0:
            assert time.monotonic() < give_up, "what nobody reads is kept"
    for one in deaf:
        one.close()
    context.term()
    assert answered(other, jpeg)["type"] == "answer"


def answered(peer: Peer, image: bytes) -> dict[str, Any]:
    """The reply to a client that sends again after `busy`, as ours do."""
    give_up = time.monotonic() + LIMIT_S
    while (reply := peer.classify(image)).get("code") == "busy" and time.monotonic() < give_up:
        time.sleep(0.05)
    return reply
