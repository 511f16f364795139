"""Replies find their way back through whatever real ZeroMQ sockets put before a request."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq

import jetsel
from tests.system.daemons import Daemon, drawn

LIMIT_MS = 60_000


@pytest.fixture
def proxy(shared_daemon: Daemon, tmp_path: Path) -> Iterator[str]:
    """A ROUTER-DEALER proxy in front of the daemon; yields the endpoint of its clients."""
    endpoint = f"ipc://{tmp_path}/proxy.sock"
    context = zmq.Context()
    front, back, control = (context.socket(kind) for kind in (zmq.ROUTER, zmq.DEALER, zmq.PAIR))
    front.bind(endpoint)
    back.connect(shared_daemon.endpoint)
    control.bind("inproc://control")
    thread = threading.Thread(target=zmq.proxy_steerable, args=(front, back, None, control))
    thread.start()
    yield endpoint
    with context.socket(zmq.PAIR) as steering:
        steering.connect("inproc://control")
        steering.send(b"TERMINATE")
        thread.join(LIMIT_MS / 1e3)
        assert not thread.is_alive()
    for each in (front, back, control):
        each.close(linger=0)
    context.term()


def test_req_with_correlation_is_answered(shared_daemon: Daemon, jpeg: bytes) -> None:
    with zmq.Context() as context, context.socket(zmq.REQ) as req:
        for option, value in ((zmq.REQ_CORRELATE, 1), (zmq.REQ_RELAXED, 1), (zmq.RCVTIMEO, LIMIT_MS), (zmq.LINGER, 0)):
            req.setsockopt(option, value)
        req.connect(shared_daemon.endpoint)
        for number in range(3):
            req.send_multipart([b'{"v": 1, "type": "classify", "id": "%d"}' % number, jpeg])
            assert json.loads(req.recv())["id"] == str(number)


@pytest.mark.parametrize("kind", [zmq.REQ, zmq.DEALER])
def test_clients_behind_a_proxy_are_answered(proxy: str, jpeg: bytes, kind: int) -> None:
    with zmq.Context() as context:
        peers = [context.socket(kind) for _ in range(3)]
        delimiter = [b""] if kind == zmq.DEALER else []
        for number, peer in enumerate(peers):
            peer.setsockopt(zmq.RCVTIMEO, LIMIT_MS)
            peer.connect(proxy)
            peer.send_multipart([*delimiter, b'{"v": 1, "type": "classify", "id": "%d"}' % number, jpeg])
        for number, peer in enumerate(peers):
            *before, reply = peer.recv_multipart()
            assert (before, json.loads(reply)["id"]) == (delimiter, str(number))
            peer.close(linger=0)


def test_our_client_behind_a_proxy_is_answered(proxy: str) -> None:
    with jetsel.Client(proxy) as client:
        assert client.classify(drawn()).label
