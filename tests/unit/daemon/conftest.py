"""A port with real peers, and connections by themselves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import zmq

from jetsel.daemon import port as port_module
from jetsel.daemon.listener import Listener
from jetsel.daemon.port import Port
from tests.unit.daemon.accepted import Rig
from tests.unit.daemon.ports import LIMIT_S, LONG_MS, Connect


@pytest.fixture
def port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Port]:
    """A port on an ipc path and on loopback, whose sleepers only a message, a wake or a late reply rouses."""
    monkeypatch.setattr(port_module, "HEARTBEAT_MS", LONG_MS)
    listener = Listener(tmp_path / "j.sock", None)
    opened = Port(listener, "tcp://127.0.0.1:0", 1_000_000)
    yield opened
    opened.close()
    listener.close()


@pytest.fixture
def connect(port: Port) -> Iterator[Connect]:
    """Peers that close with the test."""
    context = zmq.Context()
    peers: list[zmq.Socket[bytes]] = []

    def begin(kind: int = zmq.DEALER, endpoint: int = 0, **options: int) -> zmq.Socket[bytes]:
        peer = context.socket(kind)
        peer.setsockopt(zmq.RCVTIMEO, int(LIMIT_S * 1e3))
        for name, value in options.items():
            peer.setsockopt(getattr(zmq, name), value)
        peer.connect(port.endpoints[endpoint])
        peers.append(peer)
        return peer

    yield begin
    for peer in peers:
        peer.close(linger=0)
    context.term()


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    """Connections that end with the test."""
    with ExitStack() as stack:
        yield Rig(stack, tmp_path / "socket")
