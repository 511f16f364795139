"""What a worker is given next: the daemon's own request has a place of its own, however many wait."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
import pytest

from jetsel.config import Config, Models, Power, host_settings
from jetsel.daemon.dispatcher import Dispatcher
from jetsel.daemon.loading import load
from jetsel.daemon.metering.metering import Metering
from jetsel.daemon.notify import Notifier
from jetsel.daemon.port import Port
from jetsel.daemon.snapshot import read_snapshot
from jetsel.engines import Backends
from jetsel.wire import PROTOCOL_VERSION
from tests.unit.daemon.families import put_family
from tests.unit.daemon.ports import Connect

WAITING = 5


@pytest.fixture
def dispatcher(tmp_path: Path, port: Port) -> Iterator[Dispatcher]:
    """A daemon without its threads: a test does their work."""
    folder = put_family(tmp_path / "cats", "cats", "cat-s")
    config = Config(models=Models(starter=False, paths=[str(folder)]), power=Power(sensor="none"))
    snapshot = read_snapshot(config)
    backends, metering = Backends(host_settings(config.host)), Metering(config.power)
    load(snapshot, backends, lambda *_: None, threading.Event())
    metering.serve(snapshot.families, config.power)
    made = Dispatcher(snapshot, port, backends, metering, lambda: config, Notifier())
    made.begin_serving()
    yield made
    made.refuse_new()
    metering.stop()
    backends.close()


def photograph(request_id: str) -> list[bytes]:
    """A request to classify one of a few pixels."""
    image = cv2.imencode(".png", np.zeros((4, 4, 3), np.uint8))[1].tobytes()
    return [json.dumps({"v": PROTOCOL_VERSION, "type": "classify", "id": request_id}).encode(), image]


def take_in(dispatcher: Dispatcher, count: int) -> None:
    """Have the dispatcher take in so many messages."""
    while count > 0:
        taken = dispatcher.receive()
        count -= taken
        if not taken:
            dispatcher.wait()


def test_the_daemon_s_own_request_comes_before_all_that_wait(dispatcher: Dispatcher, connect: Connect) -> None:
    peer = connect()
    for number in range(WAITING):
        peer.send_multipart(photograph(str(number)))
    take_in(dispatcher, WAITING)
    probe = dispatcher._probe
    assert probe.ask() is not None, "it has only begun"
    piece = dispatcher.next_piece()
    assert piece is not None
    piece()
    assert probe.ask() is None, "it is answered, and nobody else"
    assert peer.poll(0) == 0
    while (piece := dispatcher.next_piece()) is not None:
        piece()
    replies = [json.loads(peer.recv_multipart()[-1]) for _ in range(WAITING)]
    assert [(reply["type"], reply["id"]) for reply in replies] == [("answer", str(n)) for n in range(WAITING)]
