"""Bounded everywhere: floods, giants, bombs, and peers that do not read."""

from __future__ import annotations

import numpy as np
import zmq

from tests.system.daemons import Connect, Peer, Start, drawn, encoded
from tests.waiting import until


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


def test_the_queue_is_bounded_in_bytes_too(start: Start, connect: Connect) -> None:
    peer = connect(start("[server]\nqueue_mb = 1.0\n"))
    large = encoded(np.random.default_rng(0).integers(0, 255, (600, 600, 3), dtype=np.uint8), ".bmp")
    assert len(large) > 1_000_000
    assert peer.classify(large)["code"] == "busy"


def test_a_message_past_the_limit_disconnects_its_peer_alone(start: Start, connect: Connect, jpeg: bytes) -> None:
    daemon = start("[server]\nmax_image_mb = 1.0\n")
    good, giant = connect(daemon), connect(daemon)
    giant.send({"type": "classify"}, b"\0" * 3_000_000)
    assert not giant.socket.poll(500), "libzmq drops the connection without a word"
    assert good.classify(jpeg)["type"] == "answer"
    assert connect(daemon).classify(b"\0" * 1_050_000)["code"] == "image-too-large"


def test_a_peer_that_does_not_read_hurts_itself_alone(start: Start, connect: Connect, jpeg: bytes) -> None:
    daemon = start("[server]\nqueue_requests = 100000\nqueue_mb = 1000\n")
    deaf, other = connect(daemon), connect(daemon)
    deaf.socket.setsockopt(zmq.RCVHWM, 1)
    head = b'{"v": 1, "id": "deaf", "type": "status"}'

    def is_lost() -> bool:
        for _ in range(500):
            if deaf.socket.poll(0, zmq.POLLOUT):
                deaf.socket.send(head)
        return other.status()["lost_replies"] > 0

    until(is_lost)
    assert other.classify(jpeg)["type"] == "answer"


def test_a_peer_that_leaves_before_its_answer_is_only_counted(start: Start, connect: Connect, jpeg: bytes) -> None:
    daemon = start()
    gone = Peer(daemon.endpoint)
    gone.socket.setsockopt(zmq.LINGER, 1000)
    for _ in range(8):
        gone.send({"type": "classify", "model": "xl"}, jpeg)
    other = connect(daemon)
    until(lambda: other.status()["in_queue"] or other.status()["requests"])
    gone.close()
    until(lambda: not other.status()["in_queue"])
    assert other.classify(jpeg)["type"] == "answer"


def test_time_that_runs_out_between_two_models_is_marked(start: Start, connect: Connect) -> None:
    # Thresholds that nothing reaches: every model runs, unless the time for the next has run out.
    config = '[policies.all]\nmodels = ["xs", "s", "m", "l", "xl"]\nthresholds = [1.0, 1.0, 1.0, 1.0]\n'
    peer = connect(start(config))
    picture = encoded(drawn(1))
    for _ in range(10):
        peer.classify(picture, policy="all")
    whole = peer.classify(picture, policy="all")
    assert [run["model"] for run in whole["ran"]] == ["xs", "s", "m", "l", "xl"]
    cut = []
    for deadline_ms in np.geomspace(0.5, 4 * whole["stages_ms"]["total"], 60):
        reply = peer.classify(picture, policy="all", deadline_ms=float(deadline_ms))
        if reply["type"] == "answer" and reply["cut_short"]:
            assert reply["model"] == reply["ran"][-1]["model"] != "xl"
            cut.append(deadline_ms)
    assert cut, "no deadline fell between two models"
