"""A whole message, from a peer's socket to the reply on it: its JSON, then each other frame after BETWEEN."""

from __future__ import annotations

import atexit
import functools
import json
import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import zmq

from jetsel.config import Config, Models, Power, Server
from jetsel.daemon.dispatcher import Dispatcher
from jetsel.daemon.listener import Listener
from jetsel.daemon.loading import load
from jetsel.daemon.metering.metering import Metering
from jetsel.daemon.notify import Notifier
from jetsel.daemon.port import Port
from jetsel.daemon.snapshot import read_snapshot
from jetsel.engines import Backends
from jetsel.errors import InternalError
from jetsel.wire import Answer, Classify, Failure, Pixels, Reload, Status, decode_reply, encode, read_id
from tests.fuzz.mutations import json_mutation as mutation
from tests.fuzz.pictures import files
from tests.unit.daemon.families import calibrate, put_family

MAX_BYTES = 4096
WORDS = (
    b"\0frame\0",
    b'"pixels"',
    b'"explain"',
    b'"deadline_ms"',
    b'"cascade"',
    b'"single:cat-s"',
    b'"cat-l"',
    b'"refuse"',
)
BETWEEN = b"\0frame\0"
MEGAPIXELS = 1.0
LIMIT_S = 30.0

__all__ = ["MAX_BYTES", "WORDS", "mutation", "run", "seeds"]


class Rig(NamedTuple):
    """A daemon without its threads, and a peer of its socket."""

    dispatcher: Dispatcher
    peer: zmq.Socket[bytes]


@functools.cache
def rig() -> Rig:
    """Two models of a few weights each, chosen by a calibration, behind a socket of their own."""
    folder = Path(tempfile.mkdtemp(prefix="jetsel-fuzz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    put_family(folder / "cats", "cats", "cat-s", "cat-l")
    calibrate(folder / "cats", "cats")
    config = Config(
        server=Server(workers=1, max_image_megapixels=MEGAPIXELS),
        models=Models(starter=False, paths=[str(folder / "cats")]),
        power=Power(sensor="none"),
    )
    listener = Listener(folder / "j.sock", None)
    port = Port(listener, None, 1_000_000)
    snapshot = read_snapshot(config)
    backends, metering = Backends(config.host), Metering(config.power)
    load(snapshot, backends, lambda *_: None, threading.Event())
    metering.serve(snapshot.families, config.power)
    dispatcher = Dispatcher(snapshot, port, backends, metering, lambda: config, Notifier())
    dispatcher.begin_serving()
    peer = zmq.Context.instance().socket(zmq.DEALER)
    peer.setsockopt(zmq.RCVTIMEO, int(LIMIT_S * 1e3))
    peer.setsockopt(zmq.LINGER, 0)
    peer.connect(port.endpoints[0])
    return Rig(dispatcher, peer)


def run(data: bytes) -> None:
    """Each message is answered once, under its own id, by no defect; afterwards nothing of it is held."""
    dispatcher, peer = rig()
    frames = data.split(BETWEEN)[:60]
    peer.send_multipart(frames)
    while not dispatcher.receive():
        dispatcher.sleep()
    while (piece := dispatcher.next_piece()) is not None:
        piece()
    reply = decode_reply(peer.recv_multipart()[-1])
    assert peer.poll(0) == 0
    if isinstance(reply, Failure):
        assert reply.code != InternalError.code, reply
    body = frames[1:] if frames[0] == b"" and len(frames) > 1 else frames  # REQ's delimiter is no frame of the message
    assert reply.id == read_id(body[0])
    assert dispatcher.is_drained
    if isinstance(reply, Answer):
        assert reply.ran[-1].model == reply.model


def seeds() -> Iterator[bytes]:
    pictures = list(files())
    raw = Pixels("bgr8", 4, 4, 12)
    for number, picture in enumerate(pictures):
        yield BETWEEN.join((encode(Classify(v=1, id=f"p{number}")), picture))
    photograph = pictures[0]
    for request in (
        Classify(v=1, id="a", family="cats", policy="cascade", deadline_ms=20.5, top_k=3, explain=True),
        Classify(v=1, id="b", model="cat-s", on_doubt="refuse", criterion="top5"),
        Classify(v=1, id="c", policy="single:cat-l", deadline_ms=1e-6),
    ):
        yield BETWEEN.join((encode(request), photograph))
    yield BETWEEN.join((encode(Classify(v=1, id="d", pixels=raw)), bytes(range(48))))
    yield BETWEEN.join((b"", encode(Classify(v=1, id="e")), photograph))  # as REQ frames it
    yield BETWEEN.join((encode(Classify(v=1, id="f")), photograph, b"more"))
    yield encode(Status(v=1, id="g"))
    yield BETWEEN.join((encode(Reload(v=1, id="h")), b"x"))
    yield json.dumps({"v": 1, "id": "i", "type": "classify"}).encode()
