"""A real daemon that gets cheaper under load, and dear again after it."""

from __future__ import annotations

import pytest

from tests.system.daemons import Connect, Start
from tests.waiting import until

BURST = 100


@pytest.mark.slow
def test_a_burst_is_answered_at_cheaper_points_and_what_comes_after_it_is_not(
    start: Start, connect: Connect, jpeg: bytes
) -> None:
    peer = connect(start("[policy]\nlatency_target_ms = 400\n"))
    alone = peer.classify(jpeg)
    assert alone["operating_point"] == alone["policy"] == "cascade-averaged"
    pinned = peer.classify(jpeg, policy="cascade-averaged")
    assert pinned["operating_point"] is None, "what a request names is honoured"
    for number in range(BURST):
        peer.send({"type": "classify", "id": str(number)}, jpeg)
    replies = [peer.receive() for _ in range(BURST)]
    points = {reply["operating_point"] for reply in replies if reply["type"] == "answer"}
    assert points - {"cascade-averaged"}
    assert {reply.get("code", "busy") for reply in replies} == {"busy"}, "none fails, and what is refused is told so"
    until(lambda: peer.classify(jpeg)["operating_point"] == "cascade-averaged")
    (family,) = peer.status()["families"]
    assert {point["policy"] for point in family["front"]["points"] if point["answers"]} >= points


@pytest.mark.slow
def test_nothing_below_the_least_accuracy_answers(start: Start, connect: Connect, jpeg: bytes) -> None:
    daemon = start("[policy]\nlatency_target_ms = 100\nleast_accuracy = 0.66\n")
    peer = connect(daemon)
    for number in range(BURST):
        peer.send({"type": "classify", "id": str(number), "deadline_ms": 10_000 if number % 2 else None}, jpeg)
    replies = [peer.receive() for _ in range(BURST)]
    points = {reply["operating_point"] for reply in replies if reply["type"] == "answer"}
    assert points <= {"cascade-averaged", "cascade"}, "all others are right on fewer than 66 %"
    assert points


def test_a_default_below_the_least_accuracy_is_told_at_the_start(start: Start) -> None:
    daemon = start("[policy]\nlatency_target_ms = 100\nleast_accuracy = 0.99\n")
    assert "least_accuracy is 0.99" in daemon.log.read_text()
