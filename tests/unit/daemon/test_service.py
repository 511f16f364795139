"""What the crew is given next: the daemon's own request has a place of its own, however many wait."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
import pytest
import zmq

from jetsel.config import Config, Models, Power
from jetsel.daemon import service as service_module
from jetsel.daemon.generation import build
from jetsel.daemon.metering.metering import Metering
from jetsel.daemon.notify import Notifier
from jetsel.daemon.port import Port
from jetsel.daemon.service import Service
from jetsel.engines import Backends
from jetsel.wire import PROTOCOL_VERSION
from tests.unit.daemon.families import put_family
from tests.unit.daemon.ports import Connect

WAITING = 5


@pytest.fixture
def service(tmp_path: Path, port: Port) -> Iterator[Service]:
    """A daemon without its threads: a test does their work."""
    folder = put_family(tmp_path / "cats", "cats", "cat-s")
    config = Config(models=Models(starter=False, paths=[str(folder)]), power=Power(sensor="none"))
    generation = build(config)
    backends, metering = Backends(config.host), Metering(config.power)
    generation.load(backends)
    metering.serve(generation.families, config.power)
    yield Service(config, generation, port, backends, metering, lambda: config, Notifier())
    metering.stop()
    backends.close()


def photograph(request_id: str) -> list[bytes]:
    """A request to classify one of a few pixels."""
    image = cv2.imencode(".png", np.zeros((4, 4, 3), np.uint8))[1].tobytes()
    return [json.dumps({"v": PROTOCOL_VERSION, "type": "classify", "id": request_id}).encode(), image]


def take_in(service: Service, count: int) -> None:
    """Have the service take in so many messages."""
    sleep = service.waiter()
    while count > 0:
        taken = service.receive()
        count -= taken
        if not taken:
            sleep()


def test_the_daemon_s_own_request_comes_before_all_that_wait(service: Service, connect: Connect) -> None:
    peer = connect()
    for number in range(WAITING):
        peer.send_multipart(photograph(str(number)))
    take_in(service, WAITING)
    probe = service._probe
    assert probe.ask() is not None, "it has only begun"
    piece = service.next_piece()
    assert piece is not None
    piece()
    assert not probe.is_waiting
    assert probe.ask() is None, "it is answered, and nobody else"
    assert peer.poll(0) == 0
    while (piece := service.next_piece()) is not None:
        piece()
    replies = [json.loads(peer.recv_multipart()[-1]) for _ in range(WAITING)]
    assert [(reply["type"], reply["id"]) for reply in replies] == [("answer", str(n)) for n in range(WAITING)]


def ask(connect: Connect, request_id: str) -> zmq.Socket[bytes]:
    """Send a photograph; return the socket that its reply comes to."""
    peer = connect()
    peer.send_multipart(photograph(request_id))
    return peer


def test_want_of_memory_while_a_request_is_taken_from_the_queue_leaves_it_there(
    service: Service, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer = ask(connect, "r")
    take_in(service, 1)
    with monkeypatch.context() as wanting:
        wanting.setattr(service_module.functools, "partial", raise_memory_error)
        with pytest.raises(MemoryError):
            service.next_piece()
    piece = service.next_piece()
    assert piece is not None
    piece()
    assert json.loads(peer.recv_multipart()[-1])["type"] == "answer"


def test_want_of_memory_before_a_request_is_begun_is_told_to_its_sender(
    service: Service, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer = ask(connect, "r")
    take_in(service, 1)
    piece = service.next_piece()
    assert piece is not None
    with monkeypatch.context() as wanting:
        wanting.setattr(service_module, "run_about", raise_memory_error)
        piece()
    reply = json.loads(peer.recv_multipart()[-1])
    assert (reply["id"], reply["code"], reply["retry"]) == ("r", "busy", True)
    assert service.is_drained


def raise_memory_error(*_: object) -> None:
    raise MemoryError
