"""Several peers at the socket of a whole daemon: what they write, and when each hangs up, in any order."""

import atexit
import contextlib
import functools
import json
import shutil
import socket
import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from jetsel.base.config import Config, Models, Power, ServerSettings
from jetsel.base.errors import InternalError
from jetsel.base.notify import Notifier
from jetsel.daemon.dispatcher import Dispatcher
from jetsel.daemon.listener import Listener
from jetsel.daemon.metering import Metering
from jetsel.daemon.port import Port
from jetsel.daemon.snapshot import load_snapshot, read_snapshot
from jetsel.engines import Backends
from jetsel.wire import Status, encode
from tests.system.raw import greeting, message, ready
from tests.unit.daemon.families import calibrate, put_family

MAX_BYTES = 4096
WORDS = (
    greeting()[:12],
    b"\x05READY",
    b"\x04PING",
    b'"pixels"',
    b'"explain"',
    b'"deadline_ms"',
    b'"cascade"',
    b'"cat-l"',
)
PEERS = 4
MOST_TURNS = 300  # until the last is heard, whatever the others do
HELLO = greeting() + ready()
QUESTION = message(encode(Status(v=1, id="the last")))

WRITE, GREET, HANG_UP, WORK = range(4)
"""Steps: two bytes, the kind and the peer; WRITE has a third, how many of the bytes that follow it writes."""

__all__ = ["MAX_BYTES", "WORDS", "run"]


class Rig(NamedTuple):
    """A daemon without its threads."""

    dispatcher: Dispatcher
    port: Port
    path: Path

    def connect(self) -> socket.socket:
        peer = socket.socket(socket.AF_UNIX)
        peer.setblocking(False)
        peer.connect(str(self.path))
        return peer

    def work(self) -> None:
        """What the daemon's threads do when there is news."""
        for _ in range(2 * PEERS):  # each hears of one peer, or of one that comes
            for come in self.port.receive(0.0) or []:
                self.dispatcher.pipeline.process(*self.dispatcher.pipeline.take_in(come))


@functools.cache
def rig() -> Rig:
    """Two models of a few weights each, chosen by a calibration, behind a socket of their own."""
    folder = Path(tempfile.mkdtemp(prefix="jetsel-fuzz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    put_family(folder / "cats", "cats", "cat-s", "cat-l")
    calibrate(folder / "cats", "cats")
    config = Config(
        server=ServerSettings(workers=1, max_image_mb=0.004, max_image_megapixels=1.0, peers_mb=1.0),
        models=Models(starter=False, paths=[str(folder / "cats")]),
        power=Power(sensor="none"),
    )
    listener = Listener(folder / "j.sock", None)
    snapshot = read_snapshot(config)
    port = Port(listener, snapshot.limits.max_bytes, config.server)
    backends, metering = Backends(config.host), Metering(config.power)
    load_snapshot(snapshot, backends, lambda *_: None, threading.Event())
    metering.set_families(snapshot.families, config)
    dispatcher = Dispatcher(snapshot, port, backends, metering, lambda: config, Notifier())
    dispatcher.begin_serving()
    return Rig(dispatcher, port, listener.path)


def run(data: bytes) -> None:
    """Whatever some do, another is answered; nothing was a defect; and when all have gone, nothing of them is left."""
    found = rig()
    with ExitStack() as stack:
        peers = [stack.enter_context(found.connect()) for _ in range(PEERS)]
        _act(found, peers, data)
        last = stack.enter_context(found.connect())
        last.send(HELLO + QUESTION)
        requests = json.loads(_heard(found, last))["requests"]
        assert InternalError.code not in requests, requests
        for peer in (*peers, last):
            peer.close()
    for _ in range(MOST_TURNS):
        found.work()
        if not found.port._connections:
            break
    assert not found.port._connections
    assert not found.port._held_bytes
    assert found.dispatcher.is_drained


def _heard(found: Rig, peer: socket.socket) -> bytes:
    """The reply to the last question."""
    said = b""
    for _ in range(MOST_TURNS):
        found.work()
        with contextlib.suppress(BlockingIOError):
            said += peer.recv(100_000)
        if said.endswith(b"}"):
            return said[said.index(b'{"') :]  # a length in front of it may be the number of a brace
    raise AssertionError("one was not heard for the others")


def _act(found: Rig, peers: list[socket.socket], data: bytes) -> None:
    at = 0
    while at + 2 <= len(data):
        kind, index = data[at] % 4, data[at + 1] % PEERS
        at += 2
        with contextlib.suppress(OSError):  # it was hung up on, or nobody reads it
            if kind == WRITE:
                count = data[at] if at < len(data) else 0
                at += 1 + count
                peers[index].send(data[at - count : at])
            elif kind == GREET:
                peers[index].send(HELLO)
            elif kind == HANG_UP:
                peers[index].close()
                peers[index] = found.connect()
            else:
                found.work()
