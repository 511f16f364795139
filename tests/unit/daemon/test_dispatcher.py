"""The daemon put together, without a process of its own."""

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
from tests.unit.daemon.ports import LIMIT_S, Connect
from tests.waiting import until


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


def test_the_daemon_s_own_request_is_answered_and_counted_nowhere(dispatcher: Dispatcher, connect: Connect) -> None:
    probe = dispatcher._probe
    assert probe.ask() is not None, "it has only begun"
    dispatcher.workers.start()
    until(lambda: dispatcher.workers.waiting == 0 and probe.ask() is None)
    peer = connect()
    peer.send_multipart(photograph("t"))
    assert json.loads(peer.recv_multipart()[-1])["type"] == "answer"
    peer.send(json.dumps({"v": PROTOCOL_VERSION, "type": "status", "id": "s"}).encode())
    status = json.loads(peer.recv_multipart()[-1])
    assert (status["requests"], status["families"][0]["models"][0]["runs"]) == ({"ok": 1}, 1)
    assert dispatcher.workers.stop(LIMIT_S)
