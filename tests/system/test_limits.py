"""Bounded in the daemon: the queue by requests and pixels, bombs, and the time between two models."""

from __future__ import annotations

import struct

from tests.system.daemons import Connect, Start, drawn, encoded


def test_past_the_queue_requests_are_told_busy_at_once(start: Start, connect: Connect, jpeg: bytes) -> None:
    daemon = start("[server]\nqueue_requests = 4\n")
    peer = connect(daemon)
    for number in range(100):
        peer.send({"type": "classify", "id": str(number), "model": "xl"}, jpeg)
    replies = [peer.receive() for _ in range(100)]
    assert {reply["id"] for reply in replies} == {str(number) for number in range(100)}
    busy = [reply for reply in replies if reply["type"] == "failure"]
    assert {reply["code"] for reply in busy} == {"busy"}
    assert all(reply["retry"] is True for reply in busy)
    assert 0 < len(busy) < 100
    status = peer.status()
    assert status["requests"]["busy"] == len(busy)
    assert (status["in_queue"], status["queued_bytes"]) == (0, 0)


def test_a_bomb_takes_no_place_in_the_queue(start: Start, connect: Connect) -> None:
    peer = connect(start("[server]\nqueue_megapixels = 0.2\n"))  # a place would be refused as busy
    png = encoded(drawn(), ".png")
    bomb = png[:16] + struct.pack(">II", 100_000, 100_000) + png[24:]
    assert peer.classify(bomb)["code"] == "image-too-large"
    assert peer.classify(png[:20])["code"] == "bad-image"
    assert peer.classify(b"nothing of the kind")["code"] == "bad-image"
