"""The daemon put together, without a process of its own; and which exceptions mean that memory ran out."""

import gc
import json
import socket
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from jetsel import image
from jetsel.base.config import Power
from jetsel.base.errors import InternalError, NoMemoryError
from jetsel.base.notify import Notifier
from jetsel.daemon import job as job_module
from jetsel.daemon.answer import log_unexpected
from jetsel.daemon.dispatcher import Dispatcher
from jetsel.daemon.identity import UserIdentity
from jetsel.daemon.metering import Metering
from jetsel.daemon.port import Message, Port, Route
from jetsel.daemon.zmtp import ZmtpConnection
from jetsel.engines import Backends
from jetsel.wire import PROTOCOL_VERSION
from tests.unit.daemon.families import config_of, loaded, put_family
from tests.unit.daemon.ports import LIMIT_S, Connect
from tests.waiting import until


@pytest.fixture
def dispatcher(tmp_path: Path, port: Port) -> Iterator[Dispatcher]:
    """A daemon without its threads: a test does their work."""
    folder = put_family(tmp_path / "cats", "cats", "cat-s")
    config = config_of(folder, power=Power(sensor="none"))
    backends, metering = Backends(config.host), Metering(config.power)
    snapshot = loaded(config, backends=backends)
    metering.set_families(snapshot.families, config)
    made = Dispatcher(snapshot, port, backends, metering, lambda: config, Notifier())
    made.begin_serving()
    yield made
    made.refuse_new()
    metering.stop()
    backends.close()


def photograph(request_id: str, **fields: float) -> list[bytes]:
    """A request to classify one of a few pixels."""
    file = cv2.imencode(".png", np.zeros((4, 4, 3), np.uint8))[1].tobytes()
    return [json.dumps({"v": PROTOCOL_VERSION, "type": "classify", "id": request_id, **fields}).encode(), file]


def test_the_daemon_s_own_request_is_answered_and_counted_nowhere(dispatcher: Dispatcher, connect: Connect) -> None:
    probe = dispatcher._probe
    assert probe.ask() is not None, "it has just begun"
    dispatcher.workers.start()
    until(lambda: dispatcher.workers.waiting == 0 and probe.ask() is None)
    peer = connect()
    peer.send_multipart(photograph("t"))
    assert json.loads(peer.recv_multipart()[-1])["type"] == "answer"
    peer.send(json.dumps({"v": PROTOCOL_VERSION, "type": "status", "id": "s"}).encode())
    status = json.loads(peer.recv_multipart()[-1])
    assert (status["requests"], status["families"][0]["models"][0]["runs"]) == ({"ok": 1}, 1)
    assert dispatcher.workers.stop(LIMIT_S)


@pytest.mark.parametrize("fields", [{}, {"deadline_ms": 1e-6}])
def test_a_photograph_is_freed_with_its_reply_and_no_garbage_collection(
    dispatcher: Dispatcher, monkeypatch: pytest.MonkeyPatch, fields: dict[str, float]
) -> None:
    decoded: list[weakref.ref[NDArray[np.uint8]]] = []

    def decode(*arguments: Any) -> image.Photograph:
        found = image.decode(*arguments)
        decoded.append(weakref.ref(found.bgr))
        return found

    monkeypatch.setattr(job_module, "image", SimpleNamespace(**{**vars(image), "decode": decode}))
    ours, theirs = socket.socketpair()
    with ours, theirs:
        route = Route(ZmtpConnection(ours, UserIdentity(0, 0), 1_000_000))
        frames = [memoryview(frame) for frame in photograph("t", **fields)]
        gc.disable()
        try:
            (job,) = dispatcher.pipeline.take_in(Message(route, frames, UserIdentity(0, 0)))
            dispatcher.pipeline.process(job)
            assert theirs.recv(1), "it is answered"
            del job
            assert [photo() is None for photo in decoded] == [True]
        finally:
            gc.enable()


MORE_THAN_THERE_IS = (2**20, 2**20, 2**6)  # 64 TiB


def test_want_of_memory_in_numpy_and_opencv_is_told_to_come_again_and_a_defect_is_not() -> None:
    thin = np.zeros((2**15, 1), np.uint8)
    with pytest.raises(MemoryError) as of_numpy:
        np.empty(MORE_THAN_THERE_IS, np.uint8)
    with pytest.raises(cv2.error) as of_opencv:
        cv2.resize(thin, (2**30, 2**15))
    for error in (of_numpy.value, of_opencv.value):
        assert type(log_unexpected(error, "x")) is NoMemoryError
    with pytest.raises(cv2.error) as defect:
        cv2.cvtColor(thin, cv2.COLOR_BGR2HSV)
    assert type(log_unexpected(defect.value, "x")) is InternalError
