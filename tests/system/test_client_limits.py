"""Limits of one client, and of pixels in flight."""

from __future__ import annotations

import struct

from tests.system.daemons import Connect, Start, drawn, encoded


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
